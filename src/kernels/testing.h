// For the rooms' tests: one call of a kernel row, all units at once.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "num/env.h"
#include "kernels/kernel.h"

namespace invar::ops::testing {

template <class T>
View view(std::vector<T>& data, DType dtype, std::initializer_list<int64_t> shape) {
  View v;
  v.data = data.data();
  v.dtype = dtype;
  for (int64_t d : shape) v.dim[v.rank++] = d;
  return v;
}

inline void run(const Kernel& k, std::span<const View> in, std::span<const View> out, const Attrs& attrs = {},
                const Epilogue* epilogue = nullptr) {
  num::ArithmeticEnv env;
  Call call{in, out, &attrs};
  call.epilogue = epilogue;
  struct alignas(64) Line {
    char bytes[64];
  };
  std::vector<Line> scratch(k.scratch_bytes ? k.scratch_bytes(call) / sizeof(Line) + 1 : 0);
  std::vector<Line> shared(k.shared_bytes ? k.shared_bytes(call) / sizeof(Line) + 1 : 0);
  call.shared = shared.data();
  for (int phase = 0; phase < k.phases; ++phase) k.run(call, phase, 0, k.units(call, phase), scratch.data());
}

}  // namespace invar::ops::testing
