// A run -> its receipt. Plain data of the stages before: this stage knows no session and no model
// folder, so a verifier links it without them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "receipt/receipt.h"

namespace invar::receipt {

// The checkpoint as a receipt names it, besides its weights.
struct ModelIdentity {
  std::string name, revision;               // labels
  Digest config, tokenizer, chat_template;  // receipt.2, receipt.19
  std::string unicode;                      // version of the tokenizer's tables
  std::string text_of = {};                 // Receipt::text_of
  std::string adapter_name = {};            // Receipt::adapter_name
  Digest adapter = {};                      // Receipt::adapter
};
struct Input {
  std::string prompt;
  std::vector<int32_t> tokens;
  int64_t max_new_tokens = 0;
  std::vector<int32_t> stop_tokens;
  sample::Params sampling;
  std::vector<std::string> stop_strings;
  std::string chat = {};  // receipt.35
  std::vector<int32_t> decoder_tokens = {};
  Digest audio = {};  // receipt.46
  int64_t audio_start = 0;
  bool stop_in_answer = false;
  std::vector<int32_t> stop_token_ids = {};
  bool ignore_eos = false;
};
struct Output {
  std::vector<int32_t> tokens;
  std::string text, finish_reason;
  std::vector<Digest> logits;
};

// Model and program fields alone, in a format: what `run` seals and what `verify` compares a claim
// with. bad_input: the plan does not name its program, which format 2 binds.
Result<Receipt> describe(const ModelIdentity&, const plan::Plan&, int format = 2);
// The whole receipt of an answer; `described` comes from describe().
Receipt seal(Receipt described, Input, Output, std::map<std::string, std::string> execution);
// The whole receipt of a computation of tensors, given in any order; `described` comes from
// describe() with kTensorFormat.
Receipt seal(Receipt described, std::vector<TensorDigest> inputs, std::vector<TensorDigest> outputs,
             std::map<std::string, std::string> execution);

// Adds the key's signature; one that it has made before stays.
Status sign(Receipt&, const signature::PrivateKey&);
// receipt.27: the same receipt, with the same hash, that does not show the prompt. bad_input: it
// has no salt, so a guess of the prompt could be confirmed; or it is redacted already.
Result<Receipt> redact(const Receipt&);

}  // namespace invar::receipt
