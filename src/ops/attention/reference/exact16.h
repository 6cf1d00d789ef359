// The arithmetic of a block of attention_exact16: spec/attention-exact16.md.
#pragma once
#include <algorithm>
#include <cmath>

#include "num/exact16/reference.h"
#include "num/reference.h"

namespace invar::ops {
namespace {

class ExactBlock {
 public:
  // attention_exact16.2: the product of a query and a key.
  static float product(const float* q, const float* k, int64_t d) {
    const auto left = [&](int64_t i) { return q[i]; };
    const auto right = [&](int64_t i) { return k[i]; };
    const int32_t eq = num::reference::exact16_row_scale(d, left),
                  ek = num::reference::exact16_row_scale(d, right);
    if (eq == num::kExact16NoIntegers || ek == num::kExact16NoIntegers) return NAN;
    int64_t sum = 0;
    for (int64_t i = 0; i < d; ++i)
      sum += num::reference::exact16_integer(q[i], eq) * num::reference::exact16_integer(k[i], ek);
    return num::reference::exact16_result(sum, eq, ek);
  }

  // The weights of the visible keys of a block with the scores s, and its sum l_b. The row of
  // values of key j begins at v + j * stride.
  float weigh(const float* s, const bool* seen, int count, float mb, const float* v, int64_t stride,
              int64_t dv) {
    n_ = count, largest_ = kNone;
    int64_t sum = 0;
    for (int j = 0; j < count; ++j) {
      value_scale_[j] = kNone;
      if (!seen[j] || s[j] == -INFINITY) continue;  // attention_exact16.3
      weight(s[j] - mb, j);
      sum += num::reference::exact16_integer(p_[j], -22);
      const float* row = v + j * stride;
      if (std::all_of(row, row + dv, [](float x) { return x == 0; })) continue;
      value_scale_[j] = num::reference::exact16_row_scale(dv, [&](int64_t i) { return row[i]; });
      largest_ = value_scale_[j] == num::kExact16NoIntegers ? num::kExact16NoIntegers
                                                            : std::max(largest_, power_[j] + value_scale_[j]);
    }
    return std::isfinite(mb) ? static_cast<float>(sum) * 0x1p-22f : NAN;  // attention_exact16.4
  }

  // attention_exact16.5: O_b of one column, whose values are `stride` apart.
  float column(const float* v, int64_t stride) const {
    if (largest_ == kNone) return 0;
    if (largest_ == num::kExact16NoIntegers) return NAN;
    int64_t sum = 0;
    for (int j = 0; j < n_; ++j)
      if (value_scale_[j] != kNone)
        sum += num::reference::exact16_integer(p_[j], largest_ - value_scale_[j] - 14) *
               num::reference::exact16_integer(v[j * stride], value_scale_[j]);
    return num::reference::exact16_result(sum, largest_, -14);
  }

 private:
  static constexpr int32_t kNone = -num::kExact16NoIntegers;  // hidden keys and rows of zeros
  // attention_exact16.3
  void weight(float difference, int j) {
    constexpr float kLog2E = 0x1.715476p+0f, kRound = 0x1.8p23f;
    const float x = difference > -87.0f ? difference : -87.0f;  // of NaN nothing is used
    const float n = std::fma(x, kLog2E, kRound) - kRound, f = std::fma(x, kLog2E, -n);
    float y = num::f32_from_bits(0x3c1d0166);
    for (const uint32_t c : {0x3d64fe23u, 0x3e7601bcu, 0x3f317096u, 0x3f800000u})
      y = std::fma(y, f, num::f32_from_bits(c));
    power_[j] = static_cast<int32_t>(n), p_[j] = std::ldexp(y, power_[j]);
  }

  int n_ = 0;
  int32_t largest_ = kNone;  // E
  float p_[128];
  int32_t power_[128], value_scale_[128];  // n[j], e[j]
};

}  // namespace
}  // namespace invar::ops
