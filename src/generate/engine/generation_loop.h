// The generation loop: prompt tokens -> answer tokens and a commitment to the logits of each.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash/sha256.h"
#include "base/status.h"
#include "generate/engine/stop_strings.h"
#include "generate/options.h"
#include "generate/speculate/drafter.h"
#include "run/session.h"
#include "sample/logprobs.h"
#include "sample/sample.h"

namespace invar::generate {

struct Generation {
  std::vector<int32_t> tokens;
  std::vector<Digest> logits;                         // one per token
  std::vector<sample::StepLogprobs> logprobs;         // one per token where the task asks for them
  std::vector<sample::StepLogprobs> prompt_logprobs;  // of the tokens after the first
  double prefill_seconds = 0;                         // until the first token
  double decode_tokens_per_second = 0;                // of those after it; 0 where there are none
  std::string finish_reason;          // "stop": a stop token or a stop string ends it; "length"
  int64_t drafted = 0, accepted = 0;  // tokens that a drafter proposed; those that came
};

// The start of a generation. The spans outlive the loop.
struct GenerationTask {
  std::span<const int32_t> prompt;
  int64_t max_new;  // tokens at most
  sample::Params params;
  std::span<const int32_t> stop_tokens;
  std::optional<StopStrings> stop_strings = {};  // without them tokens alone end it
  Drafter* drafter = nullptr;                    // null: every step makes one token
  run::Source source = {};                       // what the encoder reads first; empty: there is none
  std::optional<int32_t> logprobs = {};          // of so many most likely tokens, too
  bool prompt_logprobs = false;                  // of the prompt's tokens, too, by prefill() alone
};

// One sequence, a token at a time: whoever wants the answer as it is computed pulls it. The
// sequence of the session belongs to the loop as long as that lives.
class GenerationLoop {
 public:
  // The session outlives the loop. The first `kept` tokens of the prompt, not all of them, are in
  // the sequence's memory already.
  GenerationLoop(run::Session&, GenerationTask, size_t kept = 0, int64_t sequence = 0);
  GenerationLoop(const GenerationLoop&) = delete;
  ~GenerationLoop();
  // The next token; none behind the last, and then the generation is complete. An error ends the
  // loop.
  Result<std::optional<int32_t>> next();
  // A token more of each of these loops, or of a single one with a drafter several; none of them is
  // complete, each of another sequence of the session: several prompts but for their last tokens in
  // shared passes, then all in one step (plan.11). The commitments of those that are complete stand
  // behind session.finish_overlapped().
  // A row of logits that no token can be picked from is its own loop's problem() alone.
  static Status advance(run::Session&, std::span<GenerationLoop* const>);
  // The same in two calls, of loops that decode: the step is in flight between them. Steps are
  // finished in the order in which they were started.
  static Status start(run::Session&, std::span<GenerationLoop* const>);
  static Status finish(run::Session&, std::span<GenerationLoop* const>);
  bool in_flight() const { return in_flight_; }
  // Whether it needs a token's step alone.
  bool decodes() const { return unfed_.size() <= 1 && !task_.drafter && task_.source.empty(); }
  // So many of the tokens that a loop has yet to compute, but not the last one.
  struct Part {
    GenerationLoop* loop;
    size_t tokens;
  };
  // Computes these in shared passes. advance() does the rest.
  static Status prefill(run::Session&, std::span<const Part>);
  // Tokens that are left for prefill(); a drafter sees a prompt whole.
  size_t unfed() const { return unfed_.empty() || task_.drafter ? 0 : unfed_.size() - 1; }
  // The loop gets another sequence, which has the first session.position() tokens of prompt and
  // answer, not all of them. What is missing is computed again, which changes no bit (plan.11).
  void resume(int64_t sequence);
  // The sequence has so many more tokens than before, which somebody else has computed.
  void skip(size_t tokens) { unfed_ = unfed_.subspan(tokens); }
  // Whether it wants all rows of its prompt's logits, and has yet to see some.
  bool wants_prompt_rows() const {
    return task_.prompt_logprobs && generation_.prompt_logprobs.size() + 1 < task_.prompt.size();
  }
  const GenerationTask& task() const { return task_; }
  bool complete() const { return !generation_.finish_reason.empty(); }
  // Why it ended without an answer, if it did.
  const std::optional<Error>& problem() const { return problem_; }
  int64_t sequence() const { return sequence_; }
  const Generation& generation() const { return generation_; }

 private:
  using Clock = std::chrono::steady_clock;
  // Logits of a step, a row for each loop in their order -> a token more of each.
  static Status take(run::Session&, std::span<const float> logits, std::span<GenerationLoop* const>);
  // The last token that is not computed, and those before it.
  std::span<const int32_t> not_computed() const {
    return unfed_.empty() ? std::span(generation_.tokens).last(1) : unfed_;
  }
  Status take_first();
  Status step_with_drafts();
  std::vector<int32_t> draft(int64_t unfed);
  void append(int32_t token);
  Status prefill_rows(size_t count);
  Status encode();

  run::Session& session_;
  GenerationTask task_;
  std::vector<int32_t> known_;      // of resume(): prompt and answer
  std::span<const int32_t> unfed_;  // tokens before the next step's; empty: the last one is next
  int64_t sequence_;
  bool encoded_ = false, in_flight_ = false;
  Generation generation_;
  std::optional<Error> problem_;
  size_t returned_ = 0;  // tokens that next() has given
  DraftLength draft_length_;
  std::vector<float> draft_logits_;
  Clock::time_point start_, first_;
};

// Settings without a checkpoint: what nobody says is off.
Result<sample::Params> sampling_params(const SamplingOptions&);

// All of it at once.
Result<Generation> generate(run::Session&, std::span<const int32_t> prompt, int64_t max_new,
                            const sample::Params&, std::span<const int32_t> stop_tokens);

// The same for many sequences, advanced together. The first result has the times of all of them.
// `made` gets the number of all new tokens after each step.
Result<std::vector<Generation>> generate_many(run::Session&, std::span<const std::vector<int32_t>> prompts,
                                              int64_t max_new, const sample::Params&,
                                              std::span<const int32_t> stop_tokens,
                                              const std::function<void(int64_t tokens)>& made = {},
                                              std::span<const run::Source> sources = {});

// The logits of every given token, sequence after sequence, as little-endian binary32. No token is
// generated. sources: what an encoder reads for each sequence, or none.
Result<std::string> all_logits(run::Session&, std::span<const std::vector<int32_t>> sequences,
                               std::span<const run::Source> sources = {});

}  // namespace invar::generate
