// Sums of f32 in fixed point (spec/ops/fixed.md) and the magnitudes that guard them.
#pragma once
#include "kernels/cpu/vector_io.h"
#include "num/fixed/fixed_point.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// fixed.2. The product is exact, and what it exceeds 2^23 by is whole already.
INVAR_INLINE L fixed_point(F x) {
  const M counts = lt(abs(x), set1(num::kFixedLimit));
  return truncate_wide(round_even(mul(select(counts, x, zero()), set1(num::kFixedScale))));
}

// sum[i] += the fixed point of x[i].
INVAR_INLINE void add_fixed(int64_t* sum, const float* x, int64_t n) {
  int64_t i = 0;
  for (; i + kW <= n; i += kW) store_l(sum + i, add(load_l(sum + i), fixed_point(load(x + i))));
  if (i == n) return;
  alignas(64) int64_t last[kW];
  store_l(last, fixed_point(load_part(x + i, static_cast<int>(n - i))));
  for (int64_t j = i; j < n; ++j)
    sum[j] = static_cast<int64_t>(static_cast<uint64_t>(sum[j]) + static_cast<uint64_t>(last[j - i]));
}

// The bits of numbers without their sign order as their magnitudes, with NaN above all.
INVAR_INLINE uint32_t largest_bits(const float* x, int64_t n) {
  I most = set1_i(0);
  for (int64_t i = 0; i < n; i += kW) {
    const int64_t left = n - i;
    const I v = bits(abs(load_part(x + i, left < kW ? static_cast<int>(left) : kW)));
    most = select(gt(v, most), v, most);
  }
  alignas(64) int32_t lane[kW];
  store_i(lane, most);
  int32_t result = 0;
  for (int32_t v : lane) result = v > result ? v : result;
  return static_cast<uint32_t>(result);
}

// Adds the magnitudes of units: the bits of the largest of part i of unit u are at
// largest[u * unit_step + i * part_step].
INVAR_INLINE uint64_t sum_of_magnitudes(const uint32_t* largest, int64_t units, int64_t parts,
                                        int64_t unit_step, int64_t part_step) {
  uint64_t sum = 0;
  for (int64_t u = 0; u < units; ++u) {
    uint32_t most = 0;
    for (int64_t i = 0; i < parts; ++i) {
      const uint32_t one = largest[u * unit_step + i * part_step];
      most = one > most ? one : most;
    }
    sum += static_cast<uint64_t>(num::fixed_magnitude_of(most));
  }
  return sum;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
