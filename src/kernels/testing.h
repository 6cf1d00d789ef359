// Helper of the rooms' tests: runs one call of a CPU kernel, all units in one thread.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "kernels/registry.h"
#include "num/env.h"

namespace invar::ops::testing {

template <class T>
View view(std::vector<T>& data, DType dtype, std::initializer_list<int64_t> shape) {
  View v;
  v.data = data.data();
  v.dtype = dtype;
  for (int64_t d : shape) v.dim[v.rank++] = d;
  return v;
}

inline void run(const CpuKernel& k, std::span<const View> in, std::span<const View> out,
                const Attributes& attrs = {}, const Epilogue* epilogue = nullptr) {
  num::ArithmeticEnv env;
  Call call{in, out, &attrs};
  call.cpu.epilogue = epilogue;
  struct alignas(64) CacheLine {
    char bytes[64];
  };
  std::vector<CacheLine> scratch(k.scratch_bytes ? k.scratch_bytes(call) / sizeof(CacheLine) + 1 : 0);
  std::vector<CacheLine> shared(k.shared_bytes ? k.shared_bytes(call) / sizeof(CacheLine) + 1 : 0);
  call.shared = shared.data();
  for (int phase = 0; phase < k.phases; ++phase) k.run(call, phase, 0, k.units(call, phase), scratch.data());
}

}  // namespace invar::ops::testing
