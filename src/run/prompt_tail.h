// Whether the logits behind a prompt come with its last tokens, or in a pass of their own.
#pragma once

#include <cstdint>

#include "run/session.h"

namespace invar::run {

// A step of up to so many tokens of a sequence computes the logits of all and returns the last.
// This is cheaper than a second pass over the weights for the last row alone. A GPU sends the
// logits of more rows in pieces (Stage::read_output).
constexpr int64_t kTailRows = 8;
// The same of several sequences, which have memory for that, on a GPU with the whole decoder.
constexpr int64_t kDeviceTailRows = 128;

inline int64_t one_pass_rows(bool on_gpu, bool in_one_part, int64_t sequences) {
  return on_gpu && in_one_part && sequences > 1 ? kDeviceTailRows : kTailRows;
}
inline int64_t one_pass_rows(const Session& s) {
  return one_pass_rows(s.gpu() != nullptr, s.placement().empty(), s.sequences());
}

}  // namespace invar::run
