#include "receipt/seal.h"

#include <algorithm>
#include <utility>

#include "plan/program_text.h"
#include "receipt/fields/fields.h"
#include "receipt/signatures/signatures.h"

namespace invar::receipt {

Result<Receipt> describe(const ModelIdentity& m, const plan::Plan& plan, int format) {
  if (format > 1 && !plan.source)
    return bad_input(
        "the plan does not say which program it was compiled from, so no receipt can be written: compile the "
        "model again");
  Receipt r;
  r.format = format;
  r.model_name = m.name;
  r.revision = m.revision;
  r.config = m.config;
  r.tokenizer = m.tokenizer;
  r.chat_template = m.chat_template;
  r.text_of = m.text_of;
  if (format > 1) r.adapter_name = m.adapter_name, r.adapter = m.adapter;
  const std::vector<plan::Weight>& tensors = format > 1 ? plan.source->tensors : plan.weights;
  for (const plan::Weight& w : tensors)
    r.tensors.push_back({w.name, std::string(name_of(w.dtype)), w.shape, w.sha256});
  std::sort(r.tensors.begin(), r.tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  r.weights = plan::weights_digest(tensors);
  r.program = format > 1 ? plan.source->program : plan::digest(plan);
  if (format > 1) r.recipe = plan.source->recipe, r.profile = name_of(plan::profile_of(plan.choices));
  r.numerics = plan.numerics;
  r.operation_set = name_of(plan.operation_set);
  r.unicode = m.unicode;
  return r;
}

Receipt seal(Receipt described, Input in, Output out, std::map<std::string, std::string> execution) {
  Receipt r = std::move(described);
  r.prompt = std::move(in.prompt);
  r.prompt_tokens = std::move(in.tokens);
  r.max_new_tokens = in.max_new_tokens;
  r.stop_tokens = std::move(in.stop_tokens);
  r.stop_token_ids = std::move(in.stop_token_ids), r.ignore_eos = in.ignore_eos;
  r.sampling = std::move(in.sampling);
  r.stop_strings = std::move(in.stop_strings);
  r.chat = std::move(in.chat);
  r.decoder_tokens = std::move(in.decoder_tokens);
  r.audio = in.audio, r.audio_start = in.audio_start;
  r.stop_in_answer = in.stop_in_answer;
  r.tokens = std::move(out.tokens);
  r.text = std::move(out.text);
  r.finish_reason = std::move(out.finish_reason);
  r.logits = std::move(out.logits);
  r.execution = std::move(execution);
  return r;
}

Status sign(Receipt& r, const signature::PrivateKey& key) {
  return add(r.signatures, kSignedReceipt, receipt_hash(r), key);
}

Result<Receipt> redact(const Receipt& r) {
  if (!r.withheld.empty()) return bad_input("the receipt is redacted already");
  if (r.salt == Digest{})
    return bad_input(
        "the receipt has no salt, so its digests would confirm a guess of the prompt: only a receipt of "
        "`invar run --salt-prompt` can be redacted");
  Receipt redacted = r;
  for (const Field& f : fields(r)) {
    if (!may_be_withheld(f)) continue;
    redacted.withheld.emplace(f.path(), leaf(f, r));
    clear(f, redacted);
  }
  return redacted;
}

Receipt seal(Receipt described, std::vector<TensorDigest> inputs, std::vector<TensorDigest> outputs,
             std::map<std::string, std::string> execution) {
  const auto by_name = [](const TensorDigest& a, const TensorDigest& b) { return a.name < b.name; };
  std::sort(inputs.begin(), inputs.end(), by_name);
  std::sort(outputs.begin(), outputs.end(), by_name);
  Receipt r = std::move(described);
  r.input_tensors = std::move(inputs);
  r.output_tensors = std::move(outputs);
  r.execution = std::move(execution);
  return r;
}

}  // namespace invar::receipt
