// The policy of a verification: what is compared, in which order, and what each operation set
// promises. Finding the model, compiling it and computing again are elsewhere.
#include "generate/verify.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "generate/execution.h"
#include "generate/model/find_model.h"
#include "generate/model_folder.h"
#include "generate/replay/replay.h"
#include "generate/task_cache.h"
#include "num/env.h"
#include "receipt/seal.h"

namespace invar::generate {
namespace {

using nlohmann::json;

// What a verdict is called, where it holds and where not.
struct Words {
  const char *good, *bad;
};
constexpr Words kValid{"VALID", "NOT VALID"}, kVerified{"VERIFIED", "NOT VERIFIED"},
    kRepeated{"REPEATED ON THIS MACHINE", "NOT REPEATED"};

Verdict named(const Words& words, Verdict v) {
  v.verdict = v.ok() ? words.good : words.bad;
  return v;
}

// A receipt whose structure and hashes hold, and what is found out about it.
struct Verification {
  const receipt::Receipt& claimed;
  OperationSet set;  // the claimed one
  Verdict verdict;

  bool failed() const { return !verdict.ok(); }
  void compared(const char* what, std::string with) { verdict.compared.emplace_back(what, std::move(with)); }
  void finding(std::string field, std::string expected, std::string found) {
    verdict.findings.push_back({std::move(field), std::move(expected), std::move(found)});
  }
  Error refused(const std::string& why) const { return not_covered(verdict.receipt + ": " + why); }
  std::string execution(const std::string& key) const {
    const auto it = claimed.execution.find(key);
    return it == claimed.execution.end() ? "" : it->second;
  }
};

// receipt.18: how the run went that is to be repeated.
Result<ExecutionOptions> as_it_was(const Verification& v, ExecutionOptions o) {
  const std::string chunk = v.execution("prefill_chunk"), cache = v.execution("kv_cache");
  const auto [end, error] = std::from_chars(chunk.data(), chunk.data() + chunk.size(), o.prefill_chunk);
  if (error != std::errc() || end != chunk.data() + chunk.size() || o.prefill_chunk < 1 ||
      (cache != "yes" && cache != "no"))
    return v.refused(
        "its execution section does not say prefill_chunk and kv_cache, without which a run of "
        "the operation set deterministic cannot be repeated");
  o.no_kv_cache = cache == "no";
  return o;
}

// Whether this is the kind of machine that the receipt's promise is about.
Status check_kind(const Verification& v, const run::Session& session) {
  std::string differing;
  for (const auto& [key, here] : describe_kind(session))
    if (const std::string there = v.execution(key); there != here)
      differing += (differing.empty() ? "" : "; ") + key + ": the receipt has '" + there + "', here it is '" +
                   here + "'";
  if (differing.empty()) return {};
  return v.refused(
      "the operation set deterministic promises the same bits on the same hardware and software "
      "alone, and this is other: " +
      differing);
}

// receipt.15: the claimed texts must be what the claimed tokens say.
void compare_texts(Verification& v, const ModelFolder& model) {
  const receipt::Receipt& claimed = v.claimed;
  auto prompt_tokens = model.tokenizer.encode(claimed.prompt);
  if (!prompt_tokens || *prompt_tokens != claimed.prompt_tokens)
    v.finding("input.tokens", "the tokens of input.prompt", "others");
  const std::string text = model.tokenizer.decode(claimed.tokens);
  if (text != claimed.text)
    v.finding("output.text", json(text).dump(-1, ' ', false, json::error_handler_t::replace),
              json(claimed.text).dump());
  if (ascending(claimed.stop_tokens) != model.stop_tokens)
    v.finding("input.stop_tokens", json(model.stop_tokens).dump(), json(claimed.stop_tokens).dump());
}

// receipt.16, receipt.18: the tokens and logits, computed again. Returns the steps that were
// compared.
Result<int64_t> recompute(Verification& v, const ModelLocation& location, CompiledModel compiled,
                          const receipt::Receipt& mine, ExecutionOptions execution, Observer& observer) {
  const receipt::Receipt& claimed = v.claimed;
  const bool repeats = v.set == OperationSet::deterministic;
  const int64_t total = static_cast<int64_t>(claimed.prompt_tokens.size() + claimed.tokens.size());
  if (repeats) {
    INVAR_TRY(execution, as_it_was(v, execution));
  }
  const auto loading = observer.phase("load");
  run::Options options = session_options(execution, total);
  options.hashed = compiled.hashed.get();
  INVAR_TRY(run::Session session, run::Session::open(std::move(compiled.plan), compiled.folder, options));
  if (repeats) {
    INVAR_CHECK_OK(check_kind(v, session));
  }
  loading->done(location.name + ", weights " + to_hex(mine.weights).substr(0, 16));
  report_threads(session.threads(), execution, observer);
  const auto computing = observer.phase("recompute");
  INVAR_TRY(receipt::Verdict verdict,
            receipt::verify(claimed, mine,
                            repeats ? repeat_steps(session, claimed.prompt_tokens.size(), *computing)
                                    : forward_pass(session, execution.prefill_chunk, *computing),
                            session.vocab()));
  INVAR_CHECK_OK(session.weights_unchanged());
  v.verdict.findings = verdict.findings;
  computing->done(std::to_string(verdict.steps_compared) + " steps, " +
                  (repeats ? "as the receipt took them" : "one forward pass") + " of " +
                  std::to_string(total - 1) + " tokens");
  return verdict.steps_compared;
}

// All that needs the model. What is compared first decides whether the rest is worth computing.
Status examine(Verification& v, ModelOptions options, const ExecutionOptions& execution, Observer& observer) {
  const receipt::Receipt& claimed = v.claimed;
  const std::string given_plan = options.plan;
  if (given_plan.empty()) options.operation_set = v.set;
  INVAR_TRY(const FoundModel found, find_model(options.model_name, claimed));
  INVAR_TRY(const ModelFolder model, open_model(found.location));
  // A task folder may be damaged, so the plan is compiled from the checkpoint here and now.
  INVAR_TRY(CompiledModel compiled, prepare(found.location, options, observer, CachePolicy::none));
  INVAR_TRY(receipt::Receipt mine, receipt::describe(model.identity, compiled.plan, claimed.format));
  mine.model_name = claimed.model_name;  // labels: check_name() says what is known of them
  mine.revision = claimed.revision;

  v.compared("folder", found.location.folder + " (" + found.source + ")");
  v.verdict.findings = receipt::compare_model(claimed, mine);
  if (v.failed()) return {};
  const NameCheck name = check_name(found.location, claimed);
  v.verdict.findings = name.findings;
  if (v.failed()) return {};
  compare_texts(v, model);
  if (v.failed()) return {};

  if (v.set == OperationSet::any)
    return v.refused(
        "nobody can verify a run of the operation set default, which promises nothing about bits: model, "
        "program, prompt and texts are those of the receipt, tokens and logits were not computed again");
  const size_t total = claimed.prompt_tokens.size() + claimed.tokens.size();
  if (static_cast<int64_t>(total) > model.context) {
    v.finding("output.tokens", "at most " + std::to_string(model.context) + " positions with the prompt",
              std::to_string(total));
    return {};
  }
  INVAR_TRY(const int64_t steps,
            recompute(v, found.location, std::move(compiled), mine, execution, observer));

  const bool has_template = mine.chat_template != sha256("");  // receipt.19
  v.compared("model", std::to_string(mine.tensors.size()) + " tensors, config, tokenizer" +
                          (has_template ? ", template: equal" : ": equal; neither has a chat template"));
  v.compared("weights", to_hex(mine.weights));
  v.compared("named", name.text);
  v.compared("program", (mine.recipe.empty() ? "plan " : mine.recipe + ", ") + to_hex(mine.program).substr(0, 16) +
                            " (numerics " + mine.numerics + "), " +
                            (given_plan.empty() ? "compiled from this folder: equal"
                                                : "the plan " + given_plan + ", as it was given: equal"));
  v.compared("steps", std::to_string(steps) + " of " + std::to_string(claimed.tokens.size()) +
                          " recomputed: logits commitments and tokens equal");
  if (v.set == OperationSet::deterministic)
    v.compared("promise", "operation set deterministic: this hardware with this software (" +
                              v.execution("processor") + "; libraries: " + v.execution("libraries") +
                              ") repeats the bits; nothing is said of any other");
  return {};
}

// Structure and hashes, in both commands.
Result<Verdict> read_claim(std::string_view text, const std::string& name, receipt::Receipt& claimed) {
  Verdict v;
  v.receipt = name;
  INVAR_TRY(v.findings, receipt::validate(text, name, &claimed));
  if (v.ok()) v.receipt_hash = to_hex(receipt::receipt_hash(claimed));
  return v;
}

OperationSet set_of(const receipt::Receipt& valid) {
  return operation_set_from(valid.operation_set).value();  // validate knows it
}

}  // namespace

Result<Verdict> validate(std::string_view text, const std::string& name) {
  receipt::Receipt claimed;
  INVAR_TRY(Verdict v, read_claim(text, name, claimed));
  if (!v.ok()) return named(kValid, std::move(v));
  const OperationSet set = set_of(claimed);
  v.compared.emplace_back("structure", "every bound field matches its digest, the digests match the hash");
  v.compared.emplace_back(
      "note", set == OperationSet::reproducible ? "nothing was recomputed: `invar verify` does that"
              : set == OperationSet::any
                  ? "operation set " + claimed.operation_set + ": no run can verify it"
                  : "operation set " + claimed.operation_set +
                        ": `invar verify` can repeat it on the same hardware and software alone");
  return named(kValid, std::move(v));
}

Result<Verdict> verify(std::string_view text, const std::string& name, const ModelOptions& model,
                       const ExecutionOptions& execution, Observer& observer) {
  const num::ArithmeticEnv env;
  receipt::Receipt claimed;
  INVAR_TRY(Verdict read, read_claim(text, name, claimed));
  if (!read.ok()) return named(kVerified, std::move(read));
  Verification v{claimed, set_of(claimed), std::move(read)};
  INVAR_CHECK_OK(examine(v, model, execution, observer));
  return named(v.set == OperationSet::reproducible ? kVerified : kRepeated, std::move(v.verdict));
}

}  // namespace invar::generate
