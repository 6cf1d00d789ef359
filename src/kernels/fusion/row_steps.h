// Operations that follow a kernel, on rows of its results that are not where tensors are: the
// kernel has them in a buffer, and only what the last of these operations makes of them reaches
// memory. The bits are those of the operations one by one.
#pragma once

#include <cstddef>

#include "kernels/call.h"

namespace invar::ops {

inline constexpr int64_t kRow = 1024;  // elements of a row, at most

// One operation on rows, or two in turn.
struct RowStep {
  // Computes elements [at, at + n) of the result of `call`, n <= kRow, to `to`. Those of operand
  // `operand` (of the first of two) are at `from`, which is no part of `to`.
  void (*run)(const RowStep&, int64_t at, int64_t n, const void* from, void* to) = nullptr;
  const Call* call = nullptr;
  const Call* first = nullptr;  // of two in turn the first; null: there is one
  int operand = 0;
  alignas(8) std::byte kept[64] = {};  // what CpuKernel::append_row_step leaves for run()

  template <class T>
  [[gnu::always_inline]] void keep(const T& x) {
    static_assert(sizeof x <= sizeof kept && alignof(T) <= 8);
    __builtin_memcpy(kept, &x, sizeof x);
  }
  template <class T>
  [[gnu::always_inline]] T get() const {
    T x;
    __builtin_memcpy(&x, kept, sizeof x);
    return x;
  }
};

// Where steps leave rows for the next one.
struct SpareRows {
  alignas(64) std::byte bytes[2][kRow * sizeof(float)];
};

// The steps that the kernel of `call` runs on its rows; null: none.
INVAR_INLINE const Epilogue* row_steps_of(const Call& call) {
  return call.cpu.epilogue && call.cpu.epilogue->steps ? call.cpu.epilogue : nullptr;
}
// Runs the steps on n elements of the kernel's result, from element `at` on, which are at `from`.
INVAR_INLINE void store_row(const Epilogue& e, int64_t at, int64_t n, const void* from, SpareRows& spare) {
  const View& out = e.steps[e.step_count - 1].call->out[0];
  for (int i = 0; i < e.step_count; ++i) {
    const bool last = i + 1 == e.step_count;
    void* const to =
        last ? out.as<std::byte>() + at * static_cast<int64_t>(size_of(out.dtype)) : spare.bytes[i % 2];
    e.steps[i].run(e.steps[i], at, n, from, to);
    from = to;
  }
}

}  // namespace invar::ops
