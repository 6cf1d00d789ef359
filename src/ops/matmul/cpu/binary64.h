// binary64 products (matmul.5): one unit is one row of A, 16 columns at a time. Included by
// cpu.cc only.
#pragma once
#include "num/contract/binary64.h"
#include "ops/matmul/matmul.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

INVAR_INTERNAL void run_binary64(const Call& call, const matmul::Shape& s, int64_t begin, int64_t end) {
  constexpr int kColumns = 16;
  for (int64_t row = begin; row < end; ++row) {
    const matmul::Offsets at = matmul::offsets(s, row / s.m);
    const int64_t i = row % s.m, step = s.trans_a ? s.m : 1;
    const double* a = call.in[0].as<const double>() + at.a + (s.trans_a ? i : i * s.k);
    double* y = call.out[0].as<double>() + row * s.n;
    auto left = [=](int64_t k) { return a[k * step]; };
    for (int64_t j = 0; j < s.n; j += kColumns) {
      const int n = s.n - j < kColumns ? static_cast<int>(s.n - j) : kColumns;
      const double* b = call.in[1].as<const double>() + at.b + (s.trans_b ? j * s.k : j);
      if (s.trans_b)
        num::INVAR_ISA_NS::contract64<kColumns>(
            s.k, n, left, [=](int64_t k, int c) { return b[c * s.k + k]; }, y + j);
      else
        num::INVAR_ISA_NS::contract64<kColumns>(
            s.k, n, left, [=](int64_t k, int c) { return b[k * s.n + c]; }, y + j);
    }
    notify_epilogue(call, {row * s.n, s.n, 1, 0});
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
