// Stable sort of rows by 32-bit keys. Compiled once per instruction set, as kernels/cpu/vector_io.h
// is.
#pragma once
#include <cstdint>

#include "num/inline.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// A pair is key << 32 | index. A stable sort by key of pairs with ascending indices puts the lower
// index first among equal keys.
INVAR_INLINE uint64_t key_index_pair(uint32_t key, int64_t index) {
  return static_cast<uint64_t>(key) << 32 | static_cast<uint64_t>(index);
}

// Stable LSD radix sort of m pairs by key, one byte at a time (insertion sort for few). A byte that
// all keys share is skipped. Returns whichever buffer holds the result.
INVAR_INTERNAL uint64_t* sort_pairs(uint64_t* pairs, uint64_t* other, int64_t m) {
  if (m <= 32) {
    for (int64_t i = 1; i < m; ++i) {
      uint64_t p = pairs[i];
      int64_t j = i;
      for (; j > 0 && pairs[j - 1] > p; --j) pairs[j] = pairs[j - 1];
      pairs[j] = p;
    }
    return pairs;
  }
  uint32_t count[4][256];
  for (auto& byte : count)
    for (uint32_t& c : byte) c = 0;
  for (int64_t i = 0; i < m; ++i)
    for (int b = 0; b < 4; ++b) ++count[b][pairs[i] >> (32 + 8 * b) & 255];
  for (int b = 0; b < 4; ++b) {
    int shift = 32 + 8 * b;
    if (count[b][pairs[0] >> shift & 255] == static_cast<uint32_t>(m)) continue;
    uint32_t at = 0;
    for (uint32_t& c : count[b]) {
      uint32_t n = c;
      c = at, at += n;
    }
    for (int64_t i = 0; i < m; ++i) other[count[b][pairs[i] >> shift & 255]++] = pairs[i];
    uint64_t* swap = pairs;
    pairs = other, other = swap;
  }
  return pairs;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
