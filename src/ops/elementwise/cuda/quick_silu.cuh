// silu in the lanes of a warp without branches, for the kernels that round it.
#pragma once
#include "kernels/cuda/launch.h"
#include "ops/elementwise/graphs/activations.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// 1 / a rounded to nearest, for 1 <= a <= 2^126: a step of Newton's method without the branch that
// division has for other numbers. All these a have been compared with division.
__device__ inline float quick_reciprocal(float a) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
  return __fmaf_rn(r, __fmaf_rn(-a, r, 1.0f), r);
}

// The bits of graph::silu() wherever it does not need binary64 (num/exp/fast_path.h), with the
// tables of exp_fast() in the registers of the warp. All its lanes call it at once.
class QuickSilu {
 public:
  __device__ QuickSilu()
      : power_(graph::lanes::kPowers.entry[threadIdx.x % kWarp]),
        rest_(graph::lanes::kRests.entry[threadIdx.x % kWarp]) {
    static_assert(graph::lanes::kTable == kWarp);
  }
  // Whether y is silu(x); it is normal then.
  __device__ bool operator()(float x, float& y) const {
    const float t = __fmaf_rn(x, -0x1.715476p+0f, graph::lanes::kStep), m = t - graph::lanes::kStep;
    const int bits = __float_as_int(t);
    const float power = __shfl_sync(kFullWarp, power_, bits), rest = __shfl_sync(kFullWarp, rest_, bits);
    const float r = __fmaf_rn(m, -0x1.62e43p-1f, -x), low = __fmaf_rn(m, 0x1.05c61p-29f, rest);
    const float p = __fmaf_rn(__fmaf_rn(0x1.5555dcp-5f, r, 0x1.5555c8p-3f), r, 0.5f), e = r * r * p;
    const float s0 = __fmaf_rn(power, r, power), lost = __fmaf_rn(power, r, power - s0);
    const float s = __fmaf_rn(power, e, s0), lo = lost + __fmaf_rn(power, e, s0 - s);
    const float both = __fmaf_rn(s, low, lo);
    const float up = __fmaf_rn(both, 1 + graph::lanes::kErrorOfLo, s),
                down = __fmaf_rn(both, 1 - graph::lanes::kErrorOfLo, s);
    const int n = bits << (23 - graph::lanes::kTableBits) & static_cast<int>(0xff800000);
    y = x * quick_reciprocal(1 + __int_as_float(__float_as_int(up) + n));
    return (up == down) & (fabsf(x) < graph::lanes::kExpNormal) & (fabsf(x) >= 0x1p-100f);
  }

 private:
  float power_, rest_;  // this lane's entries
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
