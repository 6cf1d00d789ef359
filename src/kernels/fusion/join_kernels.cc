#include "kernels/fusion/join_kernels.h"

namespace invar::ops {
namespace {
constinit const RegisteredJoin* join_kernels = nullptr;  // the first of a list
}

RegisteredJoin::RegisteredJoin(const GpuJoinKernel& one) : kernel(one), next(join_kernels) {
  join_kernels = this;
}

const GpuJoinKernel* find_join_kernel(std::string_view op) {
  for (const RegisteredJoin* r = join_kernels; r; r = r->next)
    if (r->kernel.op == op) return &r->kernel;
  return nullptr;
}

}  // namespace invar::ops
