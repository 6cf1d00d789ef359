// CPU layernorm: moments of each row, then scale, weight and bias, over lanes.
#include "kernels/cpu/norm_gradients.h"
#include "ops/layernorm/attributes.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// Nothing is added where there is no bias, not even +0, which would change -0.
template <bool kBias, class W, class B>
INVAR_INLINE void rows(const Call& call, int64_t begin, int64_t end) {
  int64_t n = call.in[1].elements();
  float epsilon = LayernormAttributes(call).epsilon;
  auto w = call.in[1].as<const typename W::T>();
  auto b = kBias ? call.in[2].as<const typename B::T>() : nullptr;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = call.in[0].as<const float>() + row * n;
    auto moments = num::INVAR_ISA_NS::row_moments(x, n);  // layernorm.2
    F mean = set1(moments.mean);
    F scale = inverse_sqrt(set1(moments.variance), epsilon);  // layernorm.3
    strip(
        call.out[0].as<float>() + row * n, n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
          __builtin_prefetch(x + n + i);  // the next row: the reduction order defeats the hardware prefetcher
          F v = load_part(x + i, lanes);
          F g = get_part<W>(w + i, lanes);
          F y = mul(mul(sub(v, mean), scale), g);  // layernorm.4
          if constexpr (kBias) y = add(y, get_part<B>(b + i, lanes));
          return y;
        });
  }
}

void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  with_format(call.in[1].dtype, [&](auto weight) {
    using W = decltype(weight);
    if (call.in.size() == 2) return rows<false, W, F32>(call, begin, end);
    with_format(call.in[2].dtype, [&](auto bias) { rows<true, W, decltype(bias)>(call, begin, end); });
  });
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW_OF(layernorm);
const CpuKernel INVAR_ROW_OF(layernorm) = {
    .op = "layernorm", .isa = INVAR_ISA, .units = norm_rows, .run = INVAR_ISA_NS::run};
INVAR_NORM_GRADIENTS(layernorm, Layernorm, true)

}  // namespace invar::ops
