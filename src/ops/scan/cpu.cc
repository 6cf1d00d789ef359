// CPU cumsum and cumprod: blocked scans of contiguous rows, or of columns.
#include "kernels/cpu/vector_io.h"
#include "num/reduce/binary64.h"
#include "num/reduce/scan.h"
#include "ops/scan/scan.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

namespace lanes = num::INVAR_ISA_NS;

// A contiguous row, block by block; a reversed row is copied in and out backwards.
template <class Join>
INVAR_INLINE void scan_row(const ScanShape& s, const float* x, float* y) {
  alignas(64) float block[num::kScanBlock], value[num::kScanBlock + 1];
  float carry = Join::kStart;
  float* inclusive = value + 1;
  inclusive[num::kScanBlock - 1] = Join::kStart;  // the identity precedes the row
  for (int64_t begin = 0; begin < s.n; begin += num::kScanBlock) {
    int64_t n = s.n - begin < num::kScanBlock ? s.n - begin : num::kScanBlock;
    value[0] = inclusive[num::kScanBlock - 1];
    const float* from = x + begin;
    if (s.reverse || n < num::kScanBlock) {
      for (int64_t i = 0; i < n; ++i) block[i] = x[scan_position(s, begin + i)];
      for (int64_t i = n; i < num::kScanBlock; ++i) block[i] = Join::kStart;
      from = block;
    }
    lanes::scan_block<Join>(from, inclusive, carry);
    const float* result = s.exclusive ? value : inclusive;
    float* to = s.reverse ? block : y + begin;
    strip(
        to,
        n, [&](int64_t i, int count) __attribute__((always_inline)) { return load_part(result + i, count); });
    if (s.reverse)
      for (int64_t i = 0; i < n; ++i) y[scan_position(s, begin + i)] = block[i];
  }
}

template <class Join>
INVAR_INLINE void scan_floats(const Call& call, const ScanShape& s, int64_t begin, int64_t end, float* work) {
  for (int64_t u = begin; u < end; ++u) {
    int64_t at = block_begin(s, u, s.n), width = block_width(s, u);
    const float* x = call.in[0].as<const float>() + at;
    float* y = call.out[0].as<float>() + at;
    if (s.inner == 1) {
      scan_row<Join>(s, x, y);
      continue;
    }
    if (s.exclusive && s.n)
      strip_exact(
          y + scan_position(s, 0) * s.inner, width,
          [](int64_t, int) __attribute__((always_inline)) { return set1(Join::kStart); });
    lanes::scan_columns<Join>(
        s.n,
        width, [&](int64_t i) __attribute__((always_inline)) { return x + scan_position(s, i) * s.inner; },
        [&](int64_t i, int64_t c, F v, int count) __attribute__((always_inline)) {
          i += s.exclusive;
          if (i >= s.n) return;
          float* to = y + scan_position(s, i) * s.inner + c;
          store_part(to, canonicalize(v), count);
        },
        work);
  }
}

// Integers wrap, so their order is free (scan.3). U: unsigned.
template <bool kProduct, class U>
INVAR_INLINE void scan_integers(const Call& call, const ScanShape& s, int64_t begin, int64_t end) {
  for (int64_t u = begin; u < end; ++u) {
    for (int64_t c = 0; c < block_width(s, u); ++c) {
      int64_t at = block_begin(s, u, s.n) + c;
      const U* x = call.in[0].as<const U>() + at;
      U* y = call.out[0].as<U>() + at;
      U all = kProduct;
      for (int64_t i = 0; i < s.n; ++i) {
        int64_t place = scan_position(s, i) * s.inner;
        U before = all;
        all = kProduct ? all * x[place] : all + x[place];
        y[place] = s.exclusive ? before : all;
      }
    }
  }
}

// scan.5
template <class Join>
INVAR_INLINE void scan_binary64(const Call& call, const ScanShape& s, int64_t begin, int64_t end) {
  for (int64_t u = begin; u < end; ++u) {
    for (int64_t c = 0; c < block_width(s, u); ++c) {
      const int64_t at = block_begin(s, u, s.n) + c;
      const double* x = call.in[0].as<const double>() + at;
      double* y = call.out[0].as<double>() + at;
      double before = Join::kStart;
      lanes::scan64<Join>(
          s.n, [&](int64_t i) { return x[scan_position(s, i) * s.inner]; },
          [&](int64_t i, double v) {
            y[scan_position(s, i) * s.inner] = num::canonicalize64(s.exclusive ? before : v);
            before = v;
          });
    }
  }
}

template <bool kProduct, class Join>
void run(const Call& call, int, int64_t begin, int64_t end, void* scratch) {
  const ScanShape s = scan_shape(call);
  if (call.in[0].dtype == DType::i64)
    scan_integers<kProduct, uint64_t>(call, s, begin, end);
  else if (call.in[0].dtype == DType::i32)
    scan_integers<kProduct, uint32_t>(call, s, begin, end);
  else if (call.in[0].dtype == DType::f64)
    scan_binary64<std::conditional_t<kProduct, lanes::Product64, lanes::Sum64>>(call, s, begin, end);
  else
    scan_floats<Join>(call, s, begin, end, static_cast<float*>(scratch));
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_SCAN(name, product, Join)                                                             \
  extern const CpuKernel INVAR_ROW_OF(name);                                                        \
  const CpuKernel INVAR_ROW_OF(name) = {.op = #name,                                                \
                                        .isa = INVAR_ISA,                                           \
                                        .units = scan_units,                                        \
                                        .run = INVAR_ISA_NS::run<product, num::INVAR_ISA_NS::Join>, \
                                        .scratch_bytes = scan_scratch};
INVAR_SCAN(cumsum, false, SumOp)
INVAR_SCAN(cumprod, true, ProductOp)

}  // namespace invar::ops
