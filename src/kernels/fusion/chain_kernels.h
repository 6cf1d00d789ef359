// GPU kernels that run neighbouring operations as one: each of them is done element by element, and
// may read what one before it makes. The bits are those of the operations one by one.
#pragma once

#include "kernels/gpu_kernel.h"

namespace invar::ops {

constexpr size_t kLongestChain = 8;

struct ChainLink {
  std::string_view op;
  const Call* call;
};
struct ChainKernel {
  bool (*knows)(std::string_view op);
  // Whether it takes links of these shapes, of operations that it knows. Those of larger results
  // are better run one by one.
  bool (*fits)(std::span<const ChainLink>);
  void (*enqueue)(std::span<const ChainLink>, Stream);
};

// The kernel that knows an operation. Null: none in this build.
const ChainKernel* find_chain_kernel(std::string_view op);

// Makes a kernel known: a static in a file that some row's functions are in, or no program would
// contain it.
class RegisteredChain {
 public:
  explicit RegisteredChain(const ChainKernel& kernel);
  const ChainKernel& kernel;
  const RegisteredChain* const next;
};

}  // namespace invar::ops
