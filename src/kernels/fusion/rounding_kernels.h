// GPU kernels that run a chain of operations, of which each uses the result of the one before, and
// round the rows that the last one makes (GpuKernel::enqueue_rounded).
#pragma once

#include "kernels/gpu_kernel.h"

namespace invar::ops {

// The kernel whose can_round and enqueue_rounded take calls of these operations: for one operation
// its own, if that has them. Null: none in this build.
const GpuKernel* find_rounding_kernel(std::span<const std::string_view> ops);

// Makes a kernel of several operations known: a static in a file that some row's functions are in,
// or no program would contain it.
class RegisteredRounding {
 public:
  RegisteredRounding(std::span<const std::string_view> ops, const GpuKernel& kernel);
  const std::span<const std::string_view> ops;
  const GpuKernel& kernel;
  const RegisteredRounding* const next;
};

}  // namespace invar::ops
