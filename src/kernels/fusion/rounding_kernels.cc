#include "kernels/fusion/rounding_kernels.h"

#include <algorithm>

#include "kernels/registry.h"

namespace invar::ops {
namespace {
constinit const RegisteredRounding* kernels = nullptr;  // the first of a list
}

RegisteredRounding::RegisteredRounding(std::span<const std::string_view> all, const GpuKernel& one)
    : ops(all), kernel(one), next(kernels) {
  kernels = this;
}

const GpuKernel* find_rounding_kernel(std::span<const std::string_view> ops) {
  for (const RegisteredRounding* r = kernels; r; r = r->next)
    if (std::ranges::equal(r->ops, ops)) return &r->kernel;
  const GpuKernel* const own = ops.size() == 1 ? find_gpu_kernel(ops[0]) : nullptr;
  return own && own->can_round ? own : nullptr;
}

}  // namespace invar::ops
