// invar validate, invar verify: a receipt -> a verdict.
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/text/display.h"
#include "base/file/file.h"
#include "commands.h"
#include "console.h"
#include "find_model.h"
#include "generate.h"
#include "model.h"
#include "prepare.h"
#include "seal.h"

namespace invar::cli {
namespace {

using nlohmann::json;

struct Outcome {
  std::vector<receipt::Finding> findings;
  nlohmann::ordered_json compared = nlohmann::ordered_json::object();  // what with what, for the report
};

// What a verdict is called. Only what holds on any machine is VERIFIED.
struct Words {
  const char *good, *bad;
};
constexpr Words kValid{"VALID", "NOT VALID"}, kVerified{"VERIFIED", "NOT VERIFIED"},
    kRepeated{"REPEATED ON THIS MACHINE", "NOT REPEATED"};

int report(const Words& words, const ReceiptCommand& c, const Outcome& o, const std::string& hash) {
  if (c.json) {
    nlohmann::ordered_json j = {{"ok", o.findings.empty()},
                                {"verdict", o.findings.empty() ? words.good : words.bad},
                                {"receipt", c.receipt},
                                {"receipt_hash", hash},
                                {"compared", o.compared}};
    j["findings"] = json::array();
    for (const auto& f : o.findings)
      j["findings"].push_back({{"field", f.field}, {"expected", f.expected}, {"found", f.found}});
    std::fputs(line_of(j).c_str(), stdout);
  } else if (o.findings.empty()) {
    std::printf("%s  %s\n", words.good, printable(c.receipt).c_str());
    for (const auto& [what, how] : o.compared.items())
      std::printf("  %-9s %s\n", what.c_str(), printable(how.get<std::string>()).c_str());
    std::printf("  %-9s %s\n", "receipt", hash.c_str());
  } else {
    std::printf("%s  %s\n", words.bad, printable(c.receipt).c_str());
    if (o.compared.contains("folder"))
      std::printf("  %-9s %s\n", "folder", printable(o.compared["folder"].get<std::string>()).c_str());
    for (const auto& f : o.findings)
      std::printf("  %s: expected %s, found %s\n", printable(f.field).c_str(), printable(f.expected).c_str(),
                  printable(f.found).c_str());
  }
  std::fflush(stdout);
  return o.findings.empty() ? 0 : static_cast<int>(Code::failed);
}

std::string said(const receipt::Receipt& claimed, const std::string& key) {
  const auto it = claimed.execution.find(key);
  return it == claimed.execution.end() ? "" : it->second;
}

// receipt.18: how the run went that is to be repeated.
Result<ExecutionOptions> as_it_was(const ReceiptCommand& c, const receipt::Receipt& claimed) {
  ExecutionOptions o = c.execution;
  const std::string chunk = said(claimed, "prefill_chunk"), cache = said(claimed, "kv_cache");
  const auto [end, error] = std::from_chars(chunk.data(), chunk.data() + chunk.size(), o.prefill_chunk);
  if (error != std::errc() || end != chunk.data() + chunk.size() || o.prefill_chunk < 1 ||
      (cache != "yes" && cache != "no"))
    return not_covered(
        c.receipt +
        ": its execution section does not say prefill_chunk and kv_cache, without which a run of "
        "the operation set deterministic cannot be repeated");
  o.no_kv_cache = cache == "no";
  return o;
}

// Whether this is the kind of machine that the receipt's promise is about.
Status check_kind(const ReceiptCommand& c, const receipt::Receipt& claimed, const run::Session& session) {
  std::string differing;
  for (const auto& [key, here] : describe_kind(session))
    if (const std::string there = said(claimed, key); there != here)
      differing += (differing.empty() ? "" : "; ") + key + ": the receipt has '" + there + "', here it is '" +
                   here + "'";
  if (differing.empty()) return {};
  return not_covered(
      c.receipt +
      ": the operation set deterministic promises the same bits on the same hardware and software "
      "alone, and this is other: " +
      differing);
}

Result<Outcome> recompute(const ReceiptCommand& c, const receipt::Receipt& claimed, OperationSet set) {
  ModelOptions options = c.model;
  if (options.plan.empty()) options.operation_set = claimed.operation_set;
  INVAR_TRY(const FoundModel found, find_model(options.model_name, claimed));
  INVAR_TRY(Model model, open_model(found.place));
  // A task folder may be damaged, so the plan is compiled from the checkpoint here and now.
  INVAR_TRY(Prepared prepared, prepare(found.place, options, c.json, Cache::none));
  receipt::Receipt mine = describe(model, prepared.plan);
  mine.model_name = claimed.model_name;  // labels: check_name() says what is known of them
  mine.revision = claimed.revision;

  Outcome outcome;
  outcome.compared["folder"] = found.place.folder + " (" + found.source + ")";
  outcome.findings = receipt::compare_model(claimed, mine);
  if (!outcome.findings.empty()) return outcome;
  const NameCheck name = check_name(found.place, claimed);
  outcome.findings = name.findings;
  if (!outcome.findings.empty()) return outcome;

  // The claimed texts must be what the claimed tokens say.
  auto prompt_tokens = model.tokenizer.encode(claimed.prompt);
  if (!prompt_tokens || *prompt_tokens != claimed.prompt_tokens)
    outcome.findings.push_back({"input.tokens", "the tokens of input.prompt", "others"});
  const std::string text = model.tokenizer.decode(claimed.tokens);
  if (text != claimed.text)
    outcome.findings.push_back({"output.text",
                                json(text).dump(-1, ' ', false, json::error_handler_t::replace),
                                json(claimed.text).dump()});
  if (claimed.stop_tokens != model.stop_tokens)
    outcome.findings.push_back(
        {"input.stop_tokens", json(model.stop_tokens).dump(), json(claimed.stop_tokens).dump()});
  if (!outcome.findings.empty()) return outcome;

  if (set == OperationSet::any)
    return not_covered(
        c.receipt +
        ": nobody can verify a run of the operation set default, which promises nothing about bits: model, "
        "program, prompt and texts are those of the receipt, tokens and logits were not computed again");

  const int64_t total = static_cast<int64_t>(claimed.prompt_tokens.size() + claimed.tokens.size());
  if (total > model.context)
    return Outcome{
        {{"output.tokens", "at most " + std::to_string(model.context) + " positions with the prompt",
          std::to_string(total)}},
        outcome.compared};
  const bool repeats = set == OperationSet::deterministic;
  ExecutionOptions execution = c.execution;
  if (repeats) {
    INVAR_TRY(execution, as_it_was(c, claimed));
  }
  Phase loading("load", c.json);
  run::Options session_with = session_options(execution, total);
  session_with.hashed = prepared.hashed.get();
  INVAR_TRY(run::Session session,
            run::Session::open(std::move(prepared.plan), prepared.folder, session_with));
  if (repeats) {
    INVAR_CHECK_OK(check_kind(c, claimed, session));
  }
  loading.done(found.place.name + ", weights " + to_hex(mine.weights).substr(0, 16));
  report_threads(session.threads(), execution);
  Phase computing("recompute", c.json);
  const auto forward = [&](std::span<const int32_t> tokens,
                           const std::function<void(int64_t, std::span<const float>)>& deliver) -> Status {
    const size_t vocab = static_cast<size_t>(session.vocab());
    const size_t chunk = c.execution.prefill_chunk > 0 ? c.execution.prefill_chunk : 256;
    session.reset();
    for (size_t begin = 0; begin < tokens.size(); begin += chunk) {
      const auto part = tokens.subspan(begin, std::min(chunk, tokens.size() - begin));
      INVAR_TRY(std::span<const float> logits, session.step(part, /*all=*/true));
      for (size_t i = 0; i < part.size(); ++i)
        deliver(static_cast<int64_t>(begin + i), logits.subspan(i * vocab, vocab));
      computing.progress(static_cast<int64_t>(begin + part.size()), static_cast<int64_t>(tokens.size()));
    }
    return {};
  };
  // The bits of a position depend on its step there, so the steps are those of the run.
  const auto replay = [&](std::span<const int32_t> tokens,
                          const std::function<void(int64_t, std::span<const float>)>& deliver) -> Status {
    session.reset();
    size_t next = claimed.prompt_tokens.size();
    for (std::span<const int32_t> step = tokens.first(next); !step.empty();
         step = tokens.subspan(next, next < tokens.size()), next += step.size()) {
      INVAR_TRY(std::span<const float> logits, session.step(step));
      deliver(static_cast<int64_t>(next) - 1, logits);
      computing.progress(static_cast<int64_t>(next), static_cast<int64_t>(tokens.size()));
    }
    return {};
  };
  INVAR_TRY(receipt::Verdict verdict, repeats ? receipt::verify(claimed, mine, replay, session.vocab())
                                              : receipt::verify(claimed, mine, forward, session.vocab()));
  INVAR_CHECK_OK(session.weights_unchanged());
  outcome.findings = verdict.findings;
  const std::string steps = std::to_string(verdict.steps_compared);
  computing.done(steps + " steps, " + (repeats ? "as the receipt took them" : "one forward pass") + " of " +
                 std::to_string(total - 1) + " tokens");
  outcome.compared["model"] =
      std::to_string(mine.tensors.size()) + " tensors, config, tokenizer, template: equal";
  outcome.compared["weights"] = to_hex(mine.weights);
  outcome.compared["named"] = name.text;
  outcome.compared["program"] =
      to_hex(mine.program).substr(0, 16) + " (numerics " + mine.numerics + "), " +
      (options.plan.empty() ? "compiled from this folder: equal"
                            : "the plan " + options.plan + ", as it was given: equal");
  outcome.compared["steps"] = steps + " of " + std::to_string(claimed.tokens.size()) +
                              " recomputed: logits commitments and tokens equal";
  if (repeats)
    outcome.compared["promise"] = "operation set deterministic: this hardware with this software (" +
                                  said(claimed, "processor") + "; libraries: " + said(claimed, "libraries") +
                                  ") repeats the bits; nothing is said of any other";
  return outcome;
}

int check(const ReceiptCommand& c, bool execute) {
  auto text = read_file(c.receipt, kReceiptFile);
  if (!text) return fail(text.error());
  receipt::Receipt claimed;
  auto findings = receipt::validate(*text, c.receipt, &claimed);
  if (!findings) return fail(findings.error());
  Outcome outcome{*findings, {}};
  if (!outcome.findings.empty()) return report(execute ? kVerified : kValid, c, outcome, "");
  const OperationSet set = operation_set_from(claimed.operation_set).value();  // validate knows it
  const std::string hash = to_hex(receipt::receipt_hash(claimed));
  if (!execute) {
    outcome.compared["structure"] = "every bound field matches its digest, the digests match the hash";
    outcome.compared["note"] = "nothing was recomputed: `invar verify` does that";
    if (set != OperationSet::reproducible)
      outcome.compared["note"] =
          "operation set " + claimed.operation_set +
          (set == OperationSet::any
               ? ": no run can verify it"
               : ": `invar verify` can repeat it on the same hardware and software alone");
    return report(kValid, c, outcome, hash);
  }
  auto recomputed = recompute(c, claimed, set);
  if (!recomputed) return fail(recomputed.error());
  return report(set == OperationSet::reproducible ? kVerified : kRepeated, c, *recomputed, hash);
}

}  // namespace

int validate(const ReceiptCommand& c) {
  return check(c, false);
}
int verify(const ReceiptCommand& c) {
  return check(c, true);
}

}  // namespace invar::cli
