#include "ops/lanes.h"
#include "ops/topk/topk.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// Keys in ascending order are the order of the result; a pair is key << 32 | index, so that sorting by key alone,
// stably, from ascending indices gives topk.3.
INVAR_INLINE uint64_t pair_of(uint32_t key, int64_t index) {
  return static_cast<uint64_t>(key) << 32 | static_cast<uint64_t>(index);
}

// Sorts m pairs by key, stably: bytes from the lowest; a byte in which all agree is passed over. Returns where they are.
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

// The largest key that the k first elements may have: an upper bound that lets few others in. Looks at 11 bits of the keys
// at a time, from the highest, among those that agree with the k-th so far.
INVAR_INTERNAL uint32_t limit_of(const uint32_t* key, int64_t n, int64_t k) {
  uint32_t count[2048], prefix = 0;
  int64_t wanted = k;  // of the keys that agree
  int shift = 32;
  for (int bits : {11, 11, 10}) {
    int above = shift;
    shift -= bits;
    for (uint32_t& c : count) c = 0;
    uint32_t mask = (1u << bits) - 1;
    if (above == 32)
      for (int64_t i = 0; i < n; ++i) ++count[key[i] >> shift];
    else
      for (int64_t i = 0; i < n; ++i)
        if (key[i] >> above == prefix) ++count[key[i] >> shift & mask];
    uint32_t digit = 0;
    while (count[digit] < wanted) wanted -= count[digit++];
    prefix = prefix << bits | digit;
    if (k - wanted + count[digit] <= 2 * k + 64) break;  // few enough to sort
  }
  return shift ? (prefix << shift | ((1u << shift) - 1)) : prefix;
}

void topk(const Call& call, int, int64_t begin, int64_t end, void* scratch) {
  const TopkShape s = topk_shape(call);
  auto* pairs = static_cast<uint64_t*>(scratch);
  uint64_t* other = pairs + s.n;
  auto* key = reinterpret_cast<uint32_t*>(other + s.n);
  uint32_t turn = s.largest ? 0xffffffff : 0;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = call.in[0].as<const float>() + row / s.inner * s.n * s.inner + row % s.inner;
    int64_t* out = call.out[0].as<int64_t>() + row / s.inner * s.k * s.inner + row % s.inner;
    if (s.inner == 1)
      for (int64_t i = 0; i < s.n; ++i) key[i] = rank_of(x[i]) ^ turn;
    else
      for (int64_t i = 0; i < s.n; ++i) key[i] = rank_of(x[i * s.inner]) ^ turn;
    int64_t m = 0;
    if (4 * s.k < s.n) {
      // All below the limit; of those at it no more than k, in ascending order of the indices.
      uint32_t limit = limit_of(key, s.n, s.k);
      for (int64_t i = 0; i < s.n; ++i) {
        pairs[m] = pair_of(key[i], i);
        m += key[i] <= limit;
      }
    } else {
      for (; m < s.n; ++m) pairs[m] = pair_of(key[m], m);
    }
    const uint64_t* sorted = sort_pairs(pairs, other, m);
    for (int64_t j = 0; j < s.k; ++j) out[j * s.inner] = static_cast<int64_t>(sorted[j] & 0xffffffff);
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW;
const Kernel INVAR_ROW = {.op = "topk",
                          .isa = INVAR_ISA,
                          .units = topk_units,
                          .run = INVAR_ISA_NS::topk,
                          .scratch_bytes = topk_scratch};

}  // namespace invar::ops
