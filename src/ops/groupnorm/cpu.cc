// CPU groupnorm: moments of each row, then scale, weight and bias per channel, over lanes.
#include "ops/groupnorm/groupnorm.h"

#include "kernels/cpu/vector_io.h"
#include "num/reduce/lanes.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

template <class W, class B>
INVAR_INLINE void rows(const Call& call, int64_t begin, int64_t end) {
  const groupnorm::Geometry g = groupnorm::geometry(call);
  const int64_t n = g.channels * g.spatial;
  float epsilon = GroupnormAttributes(call).epsilon;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = call.in[0].as<const float>() + row * n;
    float* y = call.out[0].as<float>() + row * n;
    auto w = call.in[1].as<const typename W::T>() + row % g.groups * g.channels;
    auto b = call.in[2].as<const typename B::T>() + row % g.groups * g.channels;
    auto moments = num::INVAR_ISA_NS::row_moments(x, n);  // groupnorm.2
    F mean = set1(moments.mean);
    F scale = inverse_sqrt(set1(moments.variance), epsilon);  // groupnorm.3
    auto value = [&](int64_t i, int lanes, F weight, F bias) __attribute__((always_inline)) {
      F v = load_part(x + i, lanes);
      return add(mul(mul(sub(v, mean), scale), weight), bias);  // groupnorm.4
    };
    if (g.spatial == 1) {  // lanes are channels
      strip(
          y, n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
            return value(i, lanes, get_part<W>(w + i, lanes), get_part<B>(b + i, lanes));
          });
      continue;
    }
    for (int64_t c = 0; c < g.channels; ++c) {
      F weight = set1(W::one(w[c])), bias = set1(B::one(b[c]));
      strip(
          y + c * g.spatial, g.spatial, [&](int64_t i, int lanes) __attribute__((always_inline)) {
            return value(c * g.spatial + i, lanes, weight, bias);
          });
    }
  }
}

void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  with_format(call.in[1].dtype, [&](auto weight) {
    with_format(call.in[2].dtype,
                [&](auto bias) { rows<decltype(weight), decltype(bias)>(call, begin, end); });
  });
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW;
const CpuKernel INVAR_ROW = {
    .op = "groupnorm", .isa = INVAR_ISA, .units = groupnorm::units, .run = INVAR_ISA_NS::run};

}  // namespace invar::ops
