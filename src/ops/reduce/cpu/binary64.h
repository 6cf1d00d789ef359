// binary64 reductions (reduce.13). Included by the rows of all instruction sets.
#pragma once
#include "kernels/cpu/vector_io.h"
#include "num/reduce/binary64.h"
#include "ops/reduce/reduce.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

namespace lanes = num::INVAR_ISA_NS;

// Adds an element to a lane, and finishes the total of n elements.
struct Sums64 {
  using Join = lanes::Sum64;
  INVAR_INLINE double step(double lane, double x) { return lane + x; }
  INVAR_INLINE double finish(double total, int64_t) { return total; }
};
struct Mean64 : Sums64 {
  INVAR_INLINE double finish(double total, int64_t n) { return total / static_cast<double>(n); }
};
struct Magnitudes64 : Sums64 {
  INVAR_INLINE double step(double lane, double x) { return lane + num::abs64(x); }
};
struct Squares64 : Sums64 {
  INVAR_INLINE double step(double lane, double x) { return __builtin_fma(x, x, lane); }
};
struct Length64 : Squares64 {
  INVAR_INLINE double finish(double total, int64_t) { return __builtin_sqrt(total); }
};
template <class Joining>
struct Joins64 : Sums64 {
  using Join = Joining;
  INVAR_INLINE double step(double lane, double x) { return Join::join(lane, x); }
};

// Phase 0: the segments of split rows into call.shared [segment][output], or whole rows into the
// result. Phase 1: joins the segments.
template <class Op>
INVAR_INLINE void run_binary64(const Call& call, int phase, int64_t first, int64_t last) {
  using Join = typename Op::Join;
  const Reduction r = reduction_of(call);
  const double* x = call.in[0].as<const double>();
  double *out = call.out[0].as<double>(), *partial = static_cast<double*>(call.shared);
  auto put = [&](int64_t row, double total) { out[row] = num::canonicalize64(Op::finish(total, r.n)); };
  if (phase == 1) {
    const int64_t to = last * kChunk < r.outputs ? last * kChunk : r.outputs;
    for (int64_t o = first * kChunk; o < to; ++o) {
      double total = Join::kStart;
      for (int64_t g = 0; g < r.segments; ++g) total = Join::join(total, partial[g * r.outputs + o]);
      put(o, total);
    }
    return;
  }
  const bool line = !r.columnwise && r.reduced.count <= 1;
  auto segment = [&](const double* p, int64_t g) {
    const int64_t begin = g * num::kRowSegment,
                  end = begin + num::kRowSegment < r.n ? begin + num::kRowSegment : r.n;
    if (line)
      return lanes::segment64<Join>(begin, end, [&](double lane, int64_t i) { return Op::step(lane, p[i]); });
    return lanes::segment64<Join>(begin, end, [&](double lane, int64_t i) {
      return Op::step(lane, p[StridedDims::offset(r.reduced, i)]);
    });
  };
  auto one = [&](const double* p, int64_t row, int64_t g) {
    if (r.split) {
      partial[g * r.outputs + row] = segment(p, g);
      return;
    }
    double total = Join::kStart;
    for (int64_t s = 0; s < r.segments; ++s) total = Join::join(total, segment(p, s));
    put(row, total);
  };
  for (int64_t u = first; u < last; ++u) {
    const int64_t block = r.split ? u / r.segments : u, g = r.split ? u % r.segments : 0;
    if (!r.columnwise) {
      const int64_t rows = r.split ? 1 : r.rows;
      for (int64_t row = block * rows; row < (block + 1) * rows && row < r.outputs; ++row)
        one(x + StridedDims::offset(r.kept, row), row, g);
      continue;
    }
    const int64_t outer = block / r.blocks, from = block % r.blocks * r.width;
    for (int64_t c = from; c < from + r.width && c < r.inner; ++c)
      one(x + StridedDims::offset(r.kept, outer) + c, outer * r.inner + c, g);
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
