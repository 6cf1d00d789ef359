// How many workers a call is worth. Tuning only: units are never split, so bits do not depend on
// it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace invar::ops {

// Handing work to another thread costs about a microsecond, in which one core moves this many
// bytes.
constexpr int64_t kBytesPerWorker = 16 << 10;

inline int workers_for(int64_t bytes, int at_most) {
  return static_cast<int>(std::clamp<int64_t>(bytes / kBytesPerWorker, 1, at_most));
}

}  // namespace invar::ops
