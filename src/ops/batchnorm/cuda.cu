// Batch normalization: a thread takes four neighbouring elements of a channel, or one element.
#include "ops/batchnorm/batchnorm.h"

#include "kernels/cuda/normalization.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

struct BatchNorm {
  const float* x;
  float* y;
  WeightVector weight, bias, mean, variance;
  batchnorm::Geometry g;
  float epsilon;
  bool narrow;  // 32 bits hold every index

  INVAR_DEVICE int64_t channel(int64_t i) const {
    if (narrow)
      return static_cast<uint32_t>(i) / static_cast<uint32_t>(g.spatial) % static_cast<uint32_t>(g.channels);
    return i / g.spatial % g.channels;
  }
};
// The statistics and weights of a channel.
struct Channel {
  F mean, scale, weight, bias;
  INVAR_DEVICE Channel(const BatchNorm& b, int64_t c)
      : mean(ops::INVAR_ISA_NS::weight(b.mean, c)),
        scale(inverse_sqrt(ops::INVAR_ISA_NS::weight(b.variance, c), b.epsilon)),  // batchnorm.2
        weight(ops::INVAR_ISA_NS::weight(b.weight, c)),
        bias(ops::INVAR_ISA_NS::weight(b.bias, c)) {}
  INVAR_DEVICE F value(F x) const {
    return canonicalize(add(mul(mul(sub(x, mean), scale), weight), bias));
  }  // batchnorm.3
};

void enqueue(const Call& call, Stream stream) {
  const View &x = call.in[0], &y = call.out[0];
  const int64_t n = y.elements();
  const BatchNorm b{x.as<const float>(),
                    y.as<float>(),
                    weight_vector(call.in[1]),
                    weight_vector(call.in[2]),
                    weight_vector(call.in[3]),
                    weight_vector(call.in[4]),
                    batchnorm::geometry(call),
                    BatchnormAttributes(call).epsilon,
                    n <= INT32_MAX};
  if (b.g.spatial % 4 == 0 && aligned(x.data) && aligned(y.data))
    return launch_for_each(stream, n / 4, [=] __device__(int64_t i) {
      F v[4];
      num::INVAR_ISA_NS::load_vector<4>(b.x + 4 * i, v);
      const Channel c(b, b.channel(4 * i));
#pragma unroll
      for (F& e : v) e = c.value(e);
      num::INVAR_ISA_NS::store_vector<4>(b.y + 4 * i, v);
    });
  launch_for_each(stream, n,
                  [=] __device__(int64_t i) { b.y[i] = Channel(b, b.channel(i)).value(F{b.x[i]}).v; });
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW;
const GpuKernel INVAR_ROW = {.op = "batchnorm", .isa = INVAR_ISA, .enqueue = INVAR_ISA_NS::enqueue};

}  // namespace invar::ops
