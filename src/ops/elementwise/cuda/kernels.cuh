// The registry rows of the operations in INVAR_KINDS; each calls a map of maps.cuh.
#pragma once
#include "ops/elementwise/cuda/maps.cuh"
#include "ops/elementwise/cuda/rounded_products.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

template <const TypedMaps* kind>
void enqueue(const Call& call, Stream stream) {
  MapCall map_call{call, stream, {}};
  for (int k = 0; k < kScalars && kind->scalar[k]; ++k)
    map_call.scalar[k] = elementwise::scalar(call, kind->scalar[k]);
  map_of(*kind, call.in[call.in.size() - 1].dtype)(map_call);
}

constexpr bool is_mul(std::string_view op) {
  return op == "mul";
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_EACH(how, name, ...)                                                                       \
  extern const GpuKernel INVAR_ROW_OF(name);                                                             \
  const GpuKernel INVAR_ROW_OF(name) = {                                                                 \
      .op = #name,                                                                                       \
      .isa = INVAR_ISA,                                                                                  \
      .enqueue = INVAR_ISA_NS::enqueue<&INVAR_ISA_NS::k_##name>,                                         \
      .can_round = INVAR_ISA_NS::is_mul(#name) ? INVAR_ISA_NS::can_round_products : nullptr,             \
      .enqueue_rounded = INVAR_ISA_NS::is_mul(#name) ? INVAR_ISA_NS::enqueue_rounded_products : nullptr, \
      .is_addition = std::string_view(#name) == "add"};
INVAR_KINDS(INVAR_EACH)
#undef INVAR_EACH

}  // namespace invar::ops
