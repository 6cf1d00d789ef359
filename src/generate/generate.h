// Prompts -> answers, each with its receipt: export, compile, encode, infer, decode and seal in one
// go. What `invar run` and Python's invar.generate() are made of.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "generate/observer.h"
#include "generate/options.h"
#include "receipt/receipt.h"
#include "run/session.h"

namespace invar::generate {

struct Prompt {
  std::string text;                         // UTF-8
  std::optional<std::string> receipt_path;  // absent: no file is written
};
// JSON lines: a string or an object with "prompt" in each. The receipts of several are r.1.json,
// r.2.json, ...
Result<std::vector<Prompt>> read_prompt_file(const std::string& path, const std::string& receipt_path);
// Chat messages are refused until a chat template can be applied (receipt.19). `where` names them.
Error messages_not_covered(const std::string& where);

struct Request {
  ModelOptions model;
  ExecutionOptions execution;
  SamplingOptions sampling;
  std::vector<Prompt> prompts;     // at least one; their receipts lie in one folder
  bool record_model_path = false;  // into the receipt's execution section
  std::vector<std::string> sign;   // files of the private keys that sign every receipt (receipt.26)
  bool salt_prompt = false;        // so that the prompt can be withheld later (receipt.27)
  Digest previous{};               // receipt_hash of the turn before (receipt.25); zeros: none
};

struct Answer {
  receipt::Receipt receipt;  // prompt, parameters, tokens and text are in it
  std::string receipt_hash;
  double prefill_seconds = 0;           // until the first token
  double decode_tokens_per_second = 0;  // of those after it
};

class AnswerStream;

// A model that is ready to answer the prompts of a request. One answer at a time, in any order.
class Generator {
 public:
  // Checks all of the request before anything is computed, finds or makes the plan, loads the
  // weights.
  static Result<Generator> open(Request, Observer&);
  Generator(Generator&&) noexcept;
  ~Generator();

  // Begins the answer to this prompt of the request. The generator outlives the stream.
  AnswerStream stream(size_t prompt);
  const run::Session& session() const;

  struct Impl;  // generate/generate.cc

 private:
  explicit Generator(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

// The text of an answer as it is computed: whoever wants a piece pulls it.
class AnswerStream {
 public:
  AnswerStream(AnswerStream&&) noexcept;
  ~AnswerStream();
  // The next piece of the text, which may be empty (a token that ends no character); none behind
  // the last.
  Result<std::optional<std::string>> next();
  // After the last piece: checks that the weights' files have not changed, seals the receipt and
  // writes it.
  Result<Answer> finish(Observer&);

 private:
  friend class Generator;
  struct Impl;
  explicit AnswerStream(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace invar::generate
