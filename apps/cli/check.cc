// invar validate, invar verify: a receipt -> a verdict.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "commands.h"
#include "console.h"
#include "generate.h"
#include "model.h"
#include "prepare.h"
#include "seal.h"

namespace invar::cli {
namespace {

using nlohmann::json;

struct Outcome {
  std::vector<receipt::Finding> findings;
  json compared = json::object();  // what was compared, for the report
};

int report(const char* good, const ReceiptCommand& c, const Outcome& o, const std::string& hash) {
  if (c.json) {
    json j = {
        {"ok", o.findings.empty()}, {"receipt", c.receipt}, {"receipt_hash", hash}, {"compared", o.compared}};
    j["findings"] = json::array();
    for (const auto& f : o.findings)
      j["findings"].push_back({{"field", f.field}, {"expected", f.expected}, {"found", f.found}});
    std::printf("%s\n", j.dump().c_str());
  } else if (o.findings.empty()) {
    std::printf("%s  %s\n", good, c.receipt.c_str());
    for (const auto& [what, how] : o.compared.items())
      std::printf("  %-9s %s\n", what.c_str(), how.get<std::string>().c_str());
    std::printf("  %-9s %s\n", "receipt", hash.c_str());
  } else {
    std::printf("%s  %s\n", good[0] == 'V' && good[1] == 'E' ? "NOT VERIFIED" : "NOT VALID",
                c.receipt.c_str());
    for (const auto& f : o.findings)
      std::printf("  %s: expected %s, found %s\n", f.field.c_str(), f.expected.c_str(), f.found.c_str());
  }
  std::fflush(stdout);
  return o.findings.empty() ? 0 : static_cast<int>(Code::failed);
}

Result<Outcome> recompute(const ReceiptCommand& c, const receipt::Receipt& claimed) {
  ModelOptions options = c.model;
  if (options.model_name.empty()) {
    const auto it = claimed.execution.find("model_path");
    options.model_name = it == claimed.execution.end() ? claimed.model_name : it->second;
  }
  auto place = resolve(options.model_name);
  if (!place) return bad_input(place.error().message + " (pass the receipt's model with --model-name)");
  INVAR_TRY(Model model, open_model(options.model_name));
  INVAR_TRY(Prepared prepared, prepare(*place, options, c.json));
  receipt::Receipt mine = describe(model, prepared.plan);
  mine.model_name = claimed.model_name;  // a name is a label: what it stands for is compared digest by digest
  mine.revision = claimed.revision;

  Outcome outcome;
  outcome.findings = receipt::compare_model(claimed, mine);
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

  const int64_t total = static_cast<int64_t>(claimed.prompt_tokens.size() + claimed.tokens.size());
  if (total > model.context)
    return Outcome{
        {{"output.tokens", "at most " + std::to_string(model.context) + " positions with the prompt",
          std::to_string(total)}},
        {}};
  Phase loading("load", c.json);
  INVAR_TRY(run::Session session,
            open_session(std::move(prepared.plan), prepared.folder, c.execution, total));
  loading.done(claimed.model_name + ", weights " + to_hex(mine.weights).substr(0, 16));
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
  INVAR_TRY(receipt::Verdict verdict, receipt::verify(claimed, mine, forward, session.vocab()));
  outcome.findings = verdict.findings;
  const std::string steps = std::to_string(verdict.steps_compared);
  computing.done(steps + " steps, one forward pass of " + std::to_string(total) + " tokens");
  outcome.compared["model"] =
      std::to_string(mine.tensors.size()) + " tensors, config, tokenizer, template: equal";
  outcome.compared["program"] =
      to_hex(mine.program).substr(0, 16) + " (numerics " + mine.numerics + "): equal";
  outcome.compared["steps"] = steps + " of " + std::to_string(claimed.tokens.size()) +
                              " recomputed: logits commitments and tokens equal";
  return outcome;
}

int check(const ReceiptCommand& c, bool execute) {
  auto text = read_file(c.receipt);
  if (!text) return fail(text.error());
  receipt::Receipt claimed;
  auto findings = receipt::validate(*text, c.receipt, &claimed);
  if (!findings) return fail(findings.error());
  Outcome outcome{*findings, {}};
  if (!outcome.findings.empty()) return report(execute ? "VERIFIED" : "VALID", c, outcome, "");
  const std::string hash = to_hex(receipt::receipt_hash(claimed));
  if (!execute) {
    outcome.compared["structure"] = "every bound field matches its digest, the digests match the hash";
    outcome.compared["note"] = "nothing was recomputed: `invar verify` does that";
    return report("VALID", c, outcome, hash);
  }
  auto recomputed = recompute(c, claimed);
  if (!recomputed) return fail(recomputed.error());
  return report("VERIFIED", c, *recomputed, hash);
}

}  // namespace

int validate(const ReceiptCommand& c) {
  return check(c, false);
}
int verify(const ReceiptCommand& c) {
  return check(c, true);
}

}  // namespace invar::cli
