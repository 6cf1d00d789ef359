// CPU topk: a radix-select bound on the keys, then a stable sort of the candidates.
#include "kernels/cpu/row_sort.h"
#include "kernels/cpu/vector_io.h"
#include "ops/topk/topk.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// An upper bound on the keys of the k first elements that admits few others: radix selection, 11
// bits of the keys at a time from the highest, among keys that agree with the k-th so far.
INVAR_INTERNAL uint32_t limit_of(const uint32_t* key, int64_t n, int64_t k) {
  uint32_t count[2048], prefix = 0;
  int64_t wanted = k;  // among the keys that agree
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
  uint32_t flip = s.largest ? 0xffffffff : 0;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = call.in[0].as<const float>() + row / s.inner * s.n * s.inner + row % s.inner;
    int64_t* out = call.out[0].as<int64_t>() + row / s.inner * s.k * s.inner + row % s.inner;
    if (s.inner == 1)
      for (int64_t i = 0; i < s.n; ++i) key[i] = order_key(x[i]) ^ flip;
    else
      for (int64_t i = 0; i < s.n; ++i) key[i] = order_key(x[i * s.inner]) ^ flip;
    int64_t m = 0;
    if (4 * s.k < s.n) {
      // All keys below the limit, and at most k of those equal to it, in ascending index order.
      uint32_t limit = limit_of(key, s.n, s.k);
      for (int64_t i = 0; i < s.n; ++i) {
        pairs[m] = key_index_pair(key[i], i);
        m += key[i] <= limit;
      }
    } else {
      for (; m < s.n; ++m) pairs[m] = key_index_pair(key[m], m);
    }
    const uint64_t* sorted = sort_pairs(pairs, other, m);
    for (int64_t j = 0; j < s.k; ++j) out[j * s.inner] = static_cast<int64_t>(sorted[j] & 0xffffffff);
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW;
const CpuKernel INVAR_ROW = {.op = "topk",
                             .isa = INVAR_ISA,
                             .units = topk_units,
                             .run = INVAR_ISA_NS::topk,
                             .scratch_bytes = topk_scratch};

}  // namespace invar::ops
