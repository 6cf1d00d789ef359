// The result of an exact sum of two rounded rows with scales ea and eb (exact16.4, exact16.5).
#pragma once
#include "kernels/cuda/launch.h"
#include "num/exact16/quantize.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

__device__ inline float rounded_result(int64_t sum, int32_t ea, int32_t eb) {
  if (ea == num::kExact16NoIntegers || eb == num::kExact16NoIntegers) return __uint_as_float(0x7fc00000);
  const double power = num::exact16_wide_power(ea) * num::exact16_wide_power(eb);
  const double y = static_cast<double>(__ll2float_rn(sum)) * power;
  if (fabs(y) < 0x1p-126) return sum < 0 ? -0.0f : 0.0f;
  return __double2float_rn(y);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
