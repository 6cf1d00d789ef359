// Steps of optimisers: one pass over parameters, gradients and state, an element a thread.
#include "kernels/cuda/launch.h"
#include "ops/optim/attributes.h"
#include "ops/optim/updates.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

template <class Step>
struct StepOfElement {
  const float* in[Step::kIn];
  const float* scalars;
  float* out;
  int64_t n, nesterov;

  __device__ void operator()(int64_t i) const {
    F x[Step::kIn], s[Step::kScalars], y[Step::kOut];
#pragma unroll
    for (int k = 0; k < Step::kIn; ++k) x[k] = F{in[k][i]};
#pragma unroll
    for (int k = 0; k < Step::kScalars; ++k) s[k] = F{scalars[k]};
    Step::step(x, s, nesterov, y);
#pragma unroll
    for (int k = 0; k < Step::kOut; ++k) out[k * n + i] = canonicalize(y[k]).v;
  }
};

template <class Step>
void enqueue(const Call& call, Stream stream) {
  StepOfElement<Step> one{};
  for (int k = 0; k < Step::kIn; ++k) one.in[k] = call.in[static_cast<size_t>(k)].as<const float>();
  one.scalars = call.in[Step::kIn].template as<const float>();
  one.out = call.out[0].as<float>();
  one.n = call.in[0].dim[0], one.nesterov = MomentumStepAttributes(call).nesterov;
  launch_for_each(stream, one.n, one);
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_STEP(name, ...)                \
  extern const GpuKernel INVAR_ROW_OF(name); \
  const GpuKernel INVAR_ROW_OF(name) = {     \
      .op = #name, .isa = INVAR_ISA, .enqueue = INVAR_ISA_NS::enqueue<INVAR_ISA_NS::__VA_ARGS__>};
INVAR_OPTIM_STEPS(INVAR_STEP)

}  // namespace invar::ops
