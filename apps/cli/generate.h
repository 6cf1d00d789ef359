// The generation loop: prompt tokens -> answer tokens, logits commitments, text as it is produced.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/hash/sha256.h"
#include "base/status.h"
#include "commands.h"
#include "run/session.h"
#include "sample/sample.h"

namespace invar::cli {

struct Generation {
  std::vector<int32_t> tokens;
  std::vector<Digest> logits;           // one per token
  double prefill_seconds = 0;           // until the first token
  double decode_tokens_per_second = 0;  // of those after it; 0 where there are none
  std::string finish_reason;            // "stop": the last token is a stop token; "length"
};

// What sessions and functions have in common of them.
run::Options run_options(const ExecutionOptions&);
// Of a session with memory for `sequences` of `capacity` positions each.
run::Options session_options(const ExecutionOptions&, int64_t capacity, int64_t sequences = 1);

// Says so on stderr where the system started fewer threads than were wanted.
void report_threads(int started, const ExecutionOptions&);

// Generates up to max_new tokens.
Result<Generation> generate(run::Session&, std::span<const int32_t> prompt, int64_t max_new,
                            const sample::Params&, std::span<const int32_t> stop_tokens,
                            const std::function<void(int32_t token)>& on_token);

// The same for many sequences, all that are not done in every step after their prompts. What it says of times is all of
// them together, in the first.
Result<std::vector<Generation>> generate_many(run::Session&, std::span<const std::vector<int32_t>> prompts,
                                              int64_t max_new, const sample::Params&,
                                              std::span<const int32_t> stop_tokens);

}  // namespace invar::cli
