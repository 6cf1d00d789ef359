// Contraction y = sum over k of a(k) b(k): the scalar reference of profile fp32-1
// (spec/contraction.md).
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

// The contraction over only those of k > 0 terms that each(term) provides, ascending: term(i, a,
// b). Skipped terms are 0 times a finite number (contraction.5).
template <class T = float, class Each>
static T contract_some(int64_t k, Each each) {
  T segment[kSegments] = {}, chain = 0;
  int64_t block = 0;
  auto close = [&] {
    T& sum = segment[block_position(block, k).segment];
    sum = sum + chain, chain = 0;
  };
  each([&](int64_t i, T a, T b) {
    if (i / kChain != block) close(), block = i / kChain;
    chain = std::fma(a, b, chain);
  });
  close();
  return join_segments(segment);
}

}  // namespace invar::num::reference
