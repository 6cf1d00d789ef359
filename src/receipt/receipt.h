// Receipts: what a run consisted of, its text form and hashes, and verification (spec/receipt.md).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash/sha256.h"
#include "base/status.h"
#include "plan/plan.h"
#include "sample/sample.h"
#include "signature/signature.h"

namespace invar::receipt {

struct TensorDigest {
  std::string name, dtype;
  std::vector<int64_t> shape;
  Digest sha256;
};

// A signature of a receipt's or a batch's hash (receipt.26).
struct KeySignature {
  signature::PublicKey key;
  signature::Signature signature;
};
// The format of receipts of tensors (receipt.40): of a program that takes and gives tensors.
inline constexpr int kTensorFormat = 1001;

struct Receipt {
  // receipt.1: 2, or 1, which is read and verified but no longer written; or kTensorFormat, whose
  // receipts have no field of texts and tokens
  int format = 2;
  // model
  std::string model_name, revision;
  Digest weights;  // Merkle root over tensors
  std::vector<TensorDigest> tensors;
  std::string text_of;  // model_type of a larger model, of which this is the language model; "": of none
  // Of an adapter that was added to the model (receipt.44): a label, and the digest of its files.
  std::string adapter_name{};
  Digest adapter{};                         // zeros: there is none
  Digest config, tokenizer, chat_template;  // of the files' bytes; chat_template: of its text, or of ""
  // program; format 1 has the digest of the plan, and neither recipe nor profile
  std::string recipe;
  Digest program;
  std::string numerics, profile, operation_set, unicode;
  // input
  std::string prompt;
  std::vector<int32_t> prompt_tokens;
  int64_t max_new_tokens = 0;
  std::vector<int32_t> stop_tokens;
  std::vector<int32_t> stop_token_ids{};  // of stop_tokens those that the model does not name
  bool ignore_eos = false;                // stop_tokens has none that the model names
  sample::Params sampling;
  std::vector<std::string> stop_strings{};  // sampling.20; ascending, each once
  bool stop_in_answer = false;              // they begin there, not in the prompt
  std::string chat;  // what the prompt was rendered from (receipt.35); "": nothing, it was text
  // Of a model with an encoder, which was given prompt_tokens: what its decoder was given before
  // the answer (receipt.43). Empty: there is none.
  std::vector<int32_t> decoder_tokens{};
  // Of a model that hears, in the place of prompt and prompt_tokens: the recording's samples, and
  // the first one that it heard (receipt.46). Zeros: there is none.
  Digest audio{};
  int64_t audio_start = 0;
  Digest previous{};  // receipt_hash of the turn before (receipt.25); zeros: none
  Digest salt{};      // 32 random bytes, with which the prompt can be withheld (receipt.27); zeros: none
  // output
  std::vector<int32_t> tokens;
  std::string text, finish_reason;  // "stop" or "length"
  std::vector<Digest> logits;       // per generated token: SHA-256 of its logits row, little-endian fp32
  // input and output of kTensorFormat, ascending by name
  std::vector<TensorDigest> input_tensors, output_tensors;
  // execution: informational, outside the receipt hash (key -> value, e.g. device, isa, threads,
  // version)
  std::map<std::string, std::string> execution;
  std::vector<KeySignature> signatures;    // of the hash, outside of it; each key once
  std::map<std::string, Digest> withheld;  // of a redacted receipt: path -> leaf, without the value

  // The tokens that the answer continues.
  const std::vector<int32_t>& continued() const {
    return decoder_tokens.empty() ? prompt_tokens : decoder_tokens;
  }
};

// Digest of one logits row.
Digest commit(std::span<const float> logits);
// The digests of several rows, in less time than one after another.
void commit(std::span<const std::span<const float>> rows, std::span<Digest> digests);
// The digest of all bound fields: a Merkle root over the digests of single fields
// (spec/receipt.md).
Digest receipt_hash(const Receipt&);
// Pretty-printed JSON with receipt_hash and the digest of every bound field.
std::string print(const Receipt&);

// One finding: the field's path in the receipt (e.g. "output.tokens[12]"). `found` is what the
// receipt says, everywhere. `expected` is what this machine computes, or else what a rule requires.
struct Finding {
  std::string field, expected, found;
  bool computed = false;
};
// "FIELD: the receipt says FOUND, this machine computes EXPECTED". The words of every command.
std::string text_of(const Finding&);
// The texts of them all. Of many in one list, such as the tensors of a wrong model, the first
// stands for the others.
std::vector<std::string> texts_of(std::span<const Finding>);

// A receipt with more findings has these, and another one that says so.
inline constexpr size_t kMostFindings = 100;
// Checks structure, ranges and hashes, without the model. Error: not a receipt at all. An empty
// list: valid. `out`, if not null and the structure allows, receives the content.
Result<std::vector<Finding>> validate(std::string_view json, std::string_view file_name_for_errors,
                                      Receipt* out = nullptr);

// The result of comparing a receipt with this machine's model and computation.
struct Verdict {
  std::vector<Finding> findings;  // empty: verified
  int64_t steps_compared = 0;     // logits rows compared
  int64_t tensors_compared = 0;
};
// The logits of `count` positions from `first` on, vocab floats each.
struct Rows {
  int64_t first, count;
  std::span<const float> logits;
};
// forward(tokens, positions, deliver): delivers the logits of these positions (ascending, the last
// one is the last token's) in their order. It may deliver other positions, too.
using Forward = std::function<Status(std::span<const int32_t> tokens, std::span<const int64_t> positions,
                                     const std::function<void(const Rows&)>& deliver)>;
// Calls f(0) ... f(count - 1), in any order and up to so many at a time.
struct ForEach {
  std::function<void(int count, const std::function<void(int)>& f)> run;
  int at_once = 1;
};
// Compares the models only; `mine` is the receipt of this machine. Names each tensor or digest that
// differs.
std::vector<Finding> compare_model(const Receipt& claimed, const Receipt& mine);
// The differences of receipts of tensors, in ascending order of names: what was given, and what was
// computed.
std::vector<Finding> compare_inputs(const Receipt& claimed, const Receipt& mine);
std::vector<Finding> compare_outputs(const Receipt& claimed, const Receipt& mine);
// The steps of an answer that are computed again.
struct StepSelection {
  int64_t spot = 0;  // so many, chosen by the receipt's hash and `salt` (receipt.23); 0: no choice
  std::string salt;
  std::optional<std::pair<int64_t, int64_t>> range;  // from the first up to, and without, the second
  bool all() const { return spot == 0 && !range; }
};
// Ascending. bad_input: a range outside of the answer, or more steps than it has.
Result<std::vector<int64_t>> select_steps(const Receipt&, const StepSelection&);

// The token that a step of the receipt picks from its logits, with the tokens before it.
Result<int32_t> pick_token(const Receipt&, std::span<const float> logits, size_t step);

// Recomputes steps of the answer from one forward pass over prompt and answer (prefill bits =
// decode bits) and compares their logits commitments and tokens. `mine` has the model, program and
// execution fields of this machine. Stops at the first difference, named by step. Computes nothing
// if the models differ or, with `vocab`, a token id is outside [0, vocab). The caller compares the
// fields that need the tokenizer: input.tokens with the encoded prompt, output.text with the
// decoded tokens. for_each: checks the steps that are delivered together; without: one after
// another.
Result<Verdict> verify(const Receipt& claimed, const Receipt& mine, const Forward& forward, int64_t vocab = 0,
                       const StepSelection& = {}, const ForEach& for_each = {});

}  // namespace invar::receipt
