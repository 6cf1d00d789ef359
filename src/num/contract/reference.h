// Contraction y = sum over k of a(k) b(k), the scalar truth of profile fp32-1 (spec/contraction.md).
#pragma once

#include <cmath>

#include "num/contract/schedule.h"

namespace invar::num::reference {

// a and b: functions from k to the exactly widened operand. The result is not yet stored.
template <class T = float, class A, class B>
static T contract(int64_t k, A a, B b) {
  T segment[kSegments];
  for (int s = 0; s < kSegments; ++s) {
    segment[s] = 0;
    Range blocks = segment_blocks(s, k);
    for (int64_t block = blocks.begin; block < blocks.end; ++block) {
      T chain = 0;
      Range r = block_range(block, k);
      for (int64_t i = r.begin; i < r.end; ++i) chain = std::fma(a(i), b(i), chain);  // contraction.2
      segment[s] = segment[s] + chain;                                                // contraction.3
    }
  }
  return join_segments(segment);  // contraction.4
}

}  // namespace invar::num::reference
