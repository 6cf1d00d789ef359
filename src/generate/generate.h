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
#include "prompt/chat.h"
#include "receipt/receipt.h"
#include "run/session.h"

namespace invar::generate {

struct Prompt {
  std::string text;                         // UTF-8
  std::optional<std::string> receipt_path;  // absent: no file is written
  // The object of chat.1 (spec/chat.md) as JSON, which the model's chat template makes the text of;
  // "": the text is the prompt.
  std::string chat = {};
  std::string name = {};              // what errors call it; "" = prompt, prompt 1, ...
  std::optional<Error> problem = {};  // of a line of a file: why there is no such prompt
};
// JSON lines: a string, a list of messages, or an object with "prompt" or with "messages" and other
// members of chat.1 in each. The receipts of several are r.1.json, r.2.json, ... A bad line is a
// prompt with a problem.
Result<std::vector<Prompt>> read_prompt_file(const std::string& path, const std::string& receipt_path,
                                             const ChatOptions& = {});
// Messages, or an object of chat.1, and the user's options -> the object of chat.1.
Result<std::string> chat_input(std::string_view json, const std::string& name, const ChatOptions&);
// The content of a file of messages or tools.
Result<std::string> read_chat_file(const std::string& path);
// The file of --tools into the options; "": none.
Status read_tools(const std::string& path, ChatOptions&);

struct Request {
  ModelOptions model;
  ExecutionOptions execution;
  SamplingOptions sampling;
  std::vector<Prompt> prompts;     // at least one; their receipts lie in one folder
  bool record_model_path = false;  // into the receipt's execution section
  std::vector<std::string> sign;   // files of the private keys that sign every receipt (receipt.26)
  bool salt_prompt = false;        // so that the prompt can be withheld later (receipt.27)
  Digest previous{};               // receipt_hash of the turn before (receipt.25); zeros: none
  // Of a conversation: `prompts` may be empty, more are added, and the memory holds so many
  // positions. 0: what the prompts need.
  int64_t conversation = 0;
  int64_t batch_size = 1;  // so many prompts are computed together by Generator::batch()
};

struct Answer {
  receipt::Receipt receipt;  // prompt, parameters, tokens and text are in it
  std::string receipt_hash;
  double prefill_seconds = 0;           // until the first token
  double decode_tokens_per_second = 0;  // of those after it
};

class AnswerBatch;
class AnswerStream;

// A model that is ready to answer the prompts of a request. One answer at a time, in any order.
class Generator {
 public:
  // Checks all of the request before anything is computed, finds or makes the plan, loads the
  // weights.
  static Result<Generator> open(Request, Observer&);
  Generator(Generator&&) noexcept;
  ~Generator();

  // Another prompt of a conversation, behind those of the request; the error is of the prompt
  // alone. Of the tokens before, those that it begins with are not computed again.
  Status add(Prompt);
  const prompt::ChatTemplates& chat_templates() const;
  // Why a prompt of several has no answer; null: it has one.
  const Error* problem(size_t prompt) const;
  // The prompt as the model gets it: of a chat what the template made.
  const Prompt& prompt(size_t prompt) const;
  // Begins the answer to this prompt of the request. Generator and observer outlive the stream.
  AnswerStream stream(size_t prompt, Observer&);
  // Begins the answers to all prompts of the request that have no problem. Generator and observer
  // outlive the batch, and no stream is open beside it.
  AnswerBatch batch(Observer&);
  const run::Session& session() const;
  // Positions that the memory holds: of a conversation, all that it may take.
  int64_t positions() const;

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
  Result<Answer> finish();

 private:
  friend class Generator;
  struct Impl;
  explicit AnswerStream(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

// The answers to many prompts, request.batch_size of them computed in each step: a prompt joins as
// soon as another's answer is complete. Tokens, texts and receipts of a reproducible program are
// those of one prompt at a time (plan.11).
class AnswerBatch {
 public:
  struct Complete {
    size_t prompt;
    Answer answer;
  };
  AnswerBatch(AnswerBatch&&) noexcept;
  ~AnswerBatch();
  // The answer that is complete next, in no order of the prompts; its receipt is written. None
  // behind the last.
  Result<std::optional<Complete>> next();

 private:
  friend class Generator;
  struct Impl;
  explicit AnswerBatch(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace invar::generate
