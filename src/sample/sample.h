// logits -> token: argmax or seeded sampling. Part of the numerics (spec/sampling.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "sample/processors.h"

namespace invar::sample {

struct Params {
  bool do_sample = false;    // false: argmax, lowest index on ties
  float temperature = 1.0f;  // > 0
  int32_t top_k = 0;         // 0 = off
  float top_p = 1.0f;        // (0, 1]; 1 = off
  float min_p = 0;           // [0, 1]; 0 = off
  float epsilon_cutoff = 0;  // [0, 1); 0 = off
  uint64_t seed = 0;
  uint64_t stream = 0;      // of the random numbers of one seed: of answer j of n, j (sampling.24)
  Processors processors{};  // before all of these, also where nothing is drawn
};

// The first parameter whose value is outside the ranges above.
std::optional<OutOfRange> out_of_range(const Params&);
// Refuses it: "PARAMETER: why".
Status check(const Params&);

// "greedy", or "temperature 0.8, top-k 50, top-p 1, seed 7": one line for people.
std::string describe(const Params&);

// The next token of a generation: its processors, then a choice with the random number of this
// position. A pure function of its arguments. Error: logits that are all NaN or all
// -Inf.
Result<int32_t> pick(std::span<const float> logits, const Params&, const Context&);

// The choice alone, from logits that no processor changes.
Result<int32_t> choose(std::span<const float> logits, const Params&, uint64_t position);

}  // namespace invar::sample
