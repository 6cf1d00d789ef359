// Instruction sets whose exact16 products of many rows are those of few: they multiply pairs alone.
#pragma once
#include "kernels/cpu/exact16/layout.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr bool kWideProducts = false;
constexpr int64_t kWideFewest = INT64_MAX, kWideRows = 0, kWideStep = 256;
struct WideRow {
  explicit WideRow(int64_t) {}
  int64_t words() const { return 0; }
};
INVAR_INLINE void write_wide_row(const int32_t*, int64_t, int64_t, const WideRow&, int32_t*) {}
constexpr size_t wide_scratch_bytes() {
  return 0;
}
INVAR_INLINE void sum_exact_wide(const WideRow&, const int32_t*, int64_t, const int32_t*, int64_t, int64_t,
                                 int64_t, double*, void*) {}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
