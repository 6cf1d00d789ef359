// A model that is loaded, with the memory of its sequences: requests -> answers, one at a time or
// many together, each with its receipt. What `invar run`, `invar chat` and Python's
// InferenceSession are made of.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "generate/model/model.h"
#include "generate/observer.h"
#include "generate/options.h"
#include "generate/requests/request.h"
#include "receipt/receipt.h"
#include "run/session.h"
#include "sample/logprobs.h"

namespace invar::generate {

struct Answer {
  receipt::Receipt receipt;  // prompt, parameters, tokens and text are in it
  std::string receipt_hash;
  std::vector<sample::StepLogprobs> logprobs;         // one per token where the settings ask for them
  std::vector<sample::StepLogprobs> prompt_logprobs;  // RequestOptions::prompt_logprobs
  std::chrono::steady_clock::time_point begun = {};   // of a scheduler: when it first had a sequence
  double prefill_seconds = 0;                         // until the first token
  double decode_tokens_per_second = 0;                // of those after it
  int64_t drafted = 0, accepted = 0;  // tokens that ExecutionOptions::speculate proposed; that came
  int64_t cached_tokens = 0;          // of the prompt, whose keys and values an earlier request had computed
};

// "149 of 205 drafted tokens accepted"
std::string describe_drafts(int64_t drafted, int64_t accepted);

struct EngineOptions {
  // So many requests are computed together by a scheduler; fewer, where fewer are given first.
  int64_t batch_size = 1;
  int64_t positions = 0;  // of each sequence, at least; 0: what the first requests need
};

class AnswerStream;

// Not thread-safe: one stream or one scheduler at a time.
class Engine {
 public:
  // Finds or makes the plan where the model has none yet, takes the space of the receipts of these
  // requests, and loads the weights: the only time that it does, but for a later prompt that has
  // the other program of a model with LongRoPE. not_covered: the requests have both.
  static Result<Engine> open(std::shared_ptr<Model>, ExecutionOptions, const EngineOptions&,
                             std::span<Request> first, Observer&);
  Engine(Engine&&) noexcept;
  ~Engine();

  const Model& model() const;
  const run::Session& session() const;
  // Positions that the memory of a sequence holds.
  int64_t positions() const;
  // Makes ready for a later request: takes more memory where it needs more positions, and then
  // forgets what the memory holds, and takes the space of its receipt. Loads its program where
  // that is another one.
  Status admit(Request&, Observer&);
  // The same within the memory that there is: the answer is cut to what the prompt leaves. The
  // error is of the prompt alone.
  Status fit(Request&, Observer&);
  // Of requests that lack their language: the model hears it in the first of each recording
  // (speech.8). It forgets what the memory holds.
  Status hear_languages(std::span<Request>);
  // Begins an answer. Of the tokens before, those that the prompt begins with are not computed
  // again. Engine, request and observer outlive the stream.
  AnswerStream stream(Request&, Observer&);

  struct Impl;  // generate/engine/engine_impl.h

 private:
  friend class Scheduler;
  explicit Engine(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

// The text of an answer as it is computed: whoever wants a piece pulls it. Its destructor ends the
// computation, wherever that is.
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
  friend class Engine;
  struct Impl;
  explicit AnswerStream(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

// Many answers, as many of them computed in each step as the engine has sequences: a request joins
// between two steps, as soon as a sequence is free. Tokens, texts and receipts of a reproducible
// program are those of one request at a time (plan.11).
class Scheduler {
 public:
  struct Complete {
    size_t request;
    Answer answer;
  };
  // What one step has brought.
  struct Step {
    struct Token {
      size_t request;
      int32_t token;
      std::optional<sample::StepLogprobs> logprobs;  // where the settings ask for them
    };
    struct Failed {
      size_t request;
      Error error;
    };
    std::vector<Token> tokens;
    std::vector<Complete> complete;  // whose last tokens came in this step or one before
    std::vector<Failed> failed;      // the others go on
  };
  // At most so many tokens of prompts are computed between two steps of answers, so that those need
  // not wait for a long prompt; 0: all. by_time: so many that answers wait for about two of their
  // own steps (scheduling/prompt_pace.h). It changes no bit. Engine and observer outlive it.
  Scheduler(Engine&, Observer&, int64_t prompt_tokens = 0, bool by_time = false);
  Scheduler(Scheduler&&) noexcept;
  ~Scheduler();
  // Whose turn it is among those that wait: the lowest priority, then the client that has had the
  // fewest tokens, then whoever came first.
  struct Turn {
    int64_t priority = 0;
    uint64_t client = 0;
    bool anew = false;  // it takes nothing that other requests have computed, such as a check of one
  };
  // The number of a request, which waits for its turn. It outlives its answer.
  size_t add(Request&, Turn);
  size_t add(Request& request) { return add(request, Turn()); }
  // Its answer never comes, and its sequence is free for the next one. Nothing where the answer is
  // complete.
  void cancel(size_t request);
  // Requests without an answer: those that a sequence computes, and those that wait for one.
  size_t running() const;
  size_t waiting() const;
  struct Figures {
    uint64_t preemptions = 0;                      // requests that gave way, and began again
    uint64_t prefix_queries = 0, prefix_hits = 0;  // tokens of prompts; those that needed no computation
    double kv_cache_usage = 0;                     // from 0 to 1
  };
  Figures figures() const;
  // A token more of each answer whose prompt is computed. An error is one of all requests.
  Result<Step> step();
  // The answer that is complete next, in no order; its receipt is written. None where no request
  // waits.
  Result<std::optional<Complete>> next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace invar::generate
