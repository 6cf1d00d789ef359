// CPU steps of optimisers: one pass over parameters, gradients and state.
#include "ops/optim/attributes.h"
#include "ops/optim/updates.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int64_t kUnit = 512;  // elements, of each operand
int64_t step_units(const Call& call, int) {
  return (call.in[0].dim[0] + kUnit - 1) / kUnit;
}

template <class Step>
void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const int64_t n = call.in[0].dim[0], to = end * kUnit < n ? end * kUnit : n;
  const int64_t nesterov = MomentumStepAttributes(call).nesterov;
  const float* in[Step::kIn];
  for (int k = 0; k < Step::kIn; ++k) in[k] = call.in[static_cast<size_t>(k)].as<const float>();
  F s[Step::kScalars];
  for (int k = 0; k < Step::kScalars; ++k) s[k] = set1(call.in[Step::kIn].template as<const float>()[k]);
  float* out = call.out[0].as<float>();
  for (int64_t i = begin * kUnit; i < to; i += kW) {
    const int lanes = to - i < kW ? static_cast<int>(to - i) : kW;
    F x[Step::kIn], y[Step::kOut];
    for (int k = 0; k < Step::kIn; ++k) x[k] = load_part(in[k] + i, lanes);
    Step::step(x, s, nesterov, y);
    for (int k = 0; k < Step::kOut; ++k) store_part(out + k * n + i, canonicalize(y[k]), lanes);
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_STEP(name, ...)                                              \
  extern const CpuKernel INVAR_ROW_OF(name);                               \
  const CpuKernel INVAR_ROW_OF(name) = {.op = #name,                       \
                                        .isa = INVAR_ISA,                  \
                                        .units = INVAR_ISA_NS::step_units, \
                                        .run = INVAR_ISA_NS::run<INVAR_ISA_NS::__VA_ARGS__>};
INVAR_OPTIM_STEPS(INVAR_STEP)

}  // namespace invar::ops
