// logits -> token: argmax or seeded sampling. Part of the numerics (spec/sampling.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace invar::sample {

struct Params {
  bool do_sample = false;    // false: argmax, lowest index on ties
  float temperature = 1.0f;  // > 0
  int32_t top_k = 0;         // 0 = off
  float top_p = 1.0f;        // (0, 1]; 1 = off
  uint64_t seed = 0;
};

// Refuses values outside the ranges above, naming the parameter.
Status check(const Params&);

// "greedy", or "temperature 0.8, top-k 50, top-p 1, seed 7": one line for people.
std::string describe(const Params&);

// The token at `position` (0 = first generated) with the random numbers `stream`. A pure function
// of its arguments. Error: logits that are all NaN or all -Inf.
Result<int32_t> pick(std::span<const float> logits, const Params&, uint64_t position, uint64_t stream = 0);

}  // namespace invar::sample
