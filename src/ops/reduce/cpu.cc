// CPU reductions: rows along memory or columns across it, whole or split into segments.
#include "num/reduce/columns.h"
#include "ops/reduce/cpu/arg.h"
#include "ops/reduce/cpu/float_ops.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// Segments are functions of their own: inlined wherever they are used, they take twice the time to
// compile and are no faster (docs/notebook/2026-11-24-build-time.md).

// Segment g of a row along memory: contiguous, or gathered first.
template <class Op>
[[gnu::noinline]] float segment_contiguous(const Reduction& r, const float* x, int64_t g, F centre,
                                           float* gathered) {
  int64_t begin = g * num::kRowSegment;
  int64_t n = r.n - begin < num::kRowSegment ? r.n - begin : num::kRowSegment;
  const float* p = x + begin;
  if (r.reduced.count > 1) {
    int64_t run = r.reduced.dim[r.reduced.count - 1];
    for (int64_t i = 0; i < n;) {
      int64_t rest = run - (begin + i) % run, length = rest < n - i ? rest : n - i;
      const float* from = x + StridedDims::offset(r.reduced, begin + i);
      for (int64_t k = 0; k < length; ++k) gathered[i + k] = from[k];
      i += length;
    }
    p = gathered;
  }
  if constexpr (Op::Join::kExtreme) return lanes::row_extreme<typename Op::Join>(p, n);
  return lanes::reduce_segment<typename Op::Join>(
      n,
      [&](F acc, int64_t i, int count) __attribute__((always_inline)) {
        F c = Op::kFillCentre && count < kW ? lanes::first_lanes(centre, count) : centre;
        return Op::step(acc, lanes::load_or_start<typename Op::Fill>(p + i, count), c);
      },
      p == gathered ? nullptr : p + n);
}

// All segments of a row along memory, joined.
template <class Op>
INVAR_INLINE float row_contiguous(const Reduction& r, const float* x, F centre, float* gathered) {
  float total = Op::Join::kStart;
  for (int64_t g = 0; g < r.segments; ++g)
    total = Op::Join::join(total, segment_contiguous<Op>(r, x, g, centre, gathered));
  return total;
}

// Segment g of `width` columns -> lane[0 ... width). centre: per column, if the operation has one.
template <class Op>
[[gnu::noinline]] void segment_columns(const Reduction& r, const float* x, int64_t width, int64_t g,
                                       const float* centre, float* lane) {
  int64_t begin = g * num::kRowSegment;
  int64_t n = r.n - begin < num::kRowSegment ? r.n - begin : num::kRowSegment;
  if constexpr (!Op::kCentred)
    if (r.dense)
      return lanes::reduce_dense<typename Op::Join>(
          n, width, x + begin * width,
          [](F acc, F v) __attribute__((always_inline)) { return Op::step(acc, v, zero()); }, lane);
  bool one = r.reduced.count <= 1;
  int64_t stride = r.reduced.count ? r.reduced.stride[0] : 0;
  lanes::reduce_wide<typename Op::Join>(
      n, width,
      [&](int64_t i) __attribute__((always_inline)) {
        return x + (one ? (begin + i) * stride : StridedDims::offset(r.reduced, begin + i));
      },
      [&](F acc, F v, int64_t c, int count) __attribute__((always_inline)) {
        if constexpr (Op::kCentred) return Op::step(acc, v, load_part(centre + c, count));
        return Op::step(acc, v, zero());
      },
      lane);
}

// to[c] = the joined segments of `width` columns.
template <class Op>
INVAR_INLINE void rows_columns(const Reduction& r, const float* x, int64_t width, const float* centre,
                               float* lane, float* to) {
  for (int64_t c = 0; c < width; ++c) to[c] = Op::Join::kStart;
  for (int64_t g = 0; g < r.segments; ++g) {
    segment_columns<Op>(r, x, width, g, centre, lane);
    strip_exact(
        to, width, [&](int64_t c, int count) __attribute__((always_inline)) {
          F total = load_part(to + c, count);
          return Op::Join::join(total, load_part(lane + c, count));
        });
  }
}

// Phase 0: the segments of split rows into call.shared [segment][output], or whole rows into the
// result.
template <class Op>
INVAR_INLINE void reduce(const Call& call, const Reduction& r, int64_t begin, int64_t end, float* scratch,
                         float* partial, const float* centre) {
  const float* x = call.in[0].as<const float>();
  float* out = call.out[0].as<float>();
  const ElementCount n = count_of(call, r);
  for (int64_t u = begin; u < end; ++u) {
    int64_t block = r.split ? u / r.segments : u, g = r.split ? u % r.segments : 0;
    if (!r.columnwise) {
      int64_t row = block * (r.split ? 1 : r.rows), last = r.split ? row + 1 : row + r.rows;
      for (; row < last && row < r.outputs; ++row) {
        const float* p = x + StridedDims::offset(r.kept, row);
        if (r.split) {
          partial[g * r.outputs + row] =
              segment_contiguous<Op>(r, p, g, Op::kCentred ? set1(centre[row]) : zero(), scratch);
          continue;
        }
        F middle = zero();
        if constexpr (Op::kCentred)
          middle = Op::centre(set1(row_contiguous<typename Op::First>(r, p, zero(), scratch)), n);
        F total = set1(row_contiguous<Op>(r, p, middle, scratch));
        store_canonical_n(out + row, Op::finish(total, n, middle), 1);
      }
      continue;
    }
    int64_t outer = block / r.blocks, from = block % r.blocks * r.width;
    int64_t width = r.inner - from < r.width ? r.inner - from : r.width, at = outer * r.inner + from;
    const float* p = x + StridedDims::offset(r.kept, outer) + from;
    float *middle = scratch, *total = scratch + r.width, *lane = scratch + 2 * r.width;
    if (r.split) {
      segment_columns<Op>(r, p, width, g, Op::kCentred ? centre + at : nullptr, lane);
      strip_exact(
          partial + g * r.outputs + at, width, [&](int64_t c, int count) __attribute__((always_inline)) {
            return load_part(lane + c, count);
          });
      continue;
    }
    if constexpr (Op::kCentred) {
      rows_columns<typename Op::First>(r, p, width, nullptr, lane, middle);
      strip_exact(
          middle, width, [&](int64_t c, int count) __attribute__((always_inline)) {
            return Op::centre(load_part(middle + c, count), n);
          });
    }
    rows_columns<Op>(r, p, width, middle, lane, total);
    strip(
        out + at, width, [&](int64_t c, int count) __attribute__((always_inline)) {
          F m = !Op::kCentred ? zero() : load_part(middle + c, count);
          return Op::finish(load_part(total + c, count), n, m);
        });
  }
}

// Phase 1: joins the segments; f(total, o, count) stores outputs o ... to `to`.
template <class Join, class Fn>
INVAR_INLINE void fold_split(const Reduction& r, int64_t begin, int64_t end, const float* partial, Fn f) {
  int64_t to = end * kChunk < r.outputs ? end * kChunk : r.outputs;
  for (int64_t o = begin * kChunk; o < to; o += kW) {
    int count = to - o < kW ? static_cast<int>(to - o) : kW;
    F total = set1(Join::kStart);
    for (int64_t g = 0; g < r.segments; ++g) {
      const float* p = partial + g * r.outputs + o;
      total = Join::join(total, load_part(p, count));
    }
    f(total, o, count);
  }
}

template <class Op>
void run(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  if constexpr (!std::is_void_v<typename Op::Wide>)
    if (call.in[0].dtype == DType::f64) return run_binary64<typename Op::Wide>(call, phase, begin, end);
  if constexpr (Op::kIntegerOp != IntegerOp::none)
    if (call.in[0].dtype != DType::f32) return run_integers<Op::kIntegerOp>(call, phase, begin, end, scratch);
  const Reduction r = reduction_of(call);
  float *partial = static_cast<float*>(call.shared),
        *centre = partial + (r.split ? r.segments * r.outputs : 0);
  float* out = call.out[0].as<float>();
  const ElementCount n = count_of(call, r);
  if constexpr (Op::kCentred) {
    using First = typename Op::First;
    if (phase == 0) return reduce<First>(call, r, begin, end, static_cast<float*>(scratch), partial, nullptr);
    if (phase == 1)
      return fold_split<typename First::Join>(r, begin, end, partial, [&](F total, int64_t o, int count) {
        store_n(centre + o, Op::centre(total, n), count);
      });
    phase -= 2;
  }
  if (phase == 0) return reduce<Op>(call, r, begin, end, static_cast<float*>(scratch), partial, centre);
  fold_split<typename Op::Join>(r, begin, end, partial, [&](F total, int64_t o, int count) {
    F m = Op::kCentred ? load_n(centre + o, count) : zero();
    store_canonical_n(out + o, Op::finish(total, n, m), count);
  });
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_REDUCTION(name, Op)                                                                           \
  extern const CpuKernel INVAR_ROW_OF(name);                                                                \
  const CpuKernel INVAR_ROW_OF(name) = {.op = #name,                                                        \
                                        .isa = INVAR_ISA,                                                   \
                                        .phases = INVAR_ISA_NS::Op::kCentred ? 4 : 2,                       \
                                        .units = INVAR_ISA_NS::Op::kCentred ? centred_units : reduce_units, \
                                        .run = INVAR_ISA_NS::run<INVAR_ISA_NS::Op>,                         \
                                        .scratch_bytes = reduce_scratch,                                    \
                                        .shared_bytes = reduce_shared};
INVAR_REDUCTION(reduce_sum, SumOp)
INVAR_REDUCTION(reduce_mean, MeanOp)
INVAR_REDUCTION(reduce_prod, ProdOp)
INVAR_REDUCTION(reduce_max, MaxOp)
INVAR_REDUCTION(reduce_min, MinOp)
INVAR_REDUCTION(reduce_l1, L1Op)
INVAR_REDUCTION(reduce_l2, L2Op)
INVAR_REDUCTION(reduce_sum_square, SquareOp)
INVAR_REDUCTION(reduce_log_sum, LogSumOp)
INVAR_REDUCTION(reduce_log_sum_exp, LogSumExpOp)
INVAR_REDUCTION(reduce_var, VarOp)
INVAR_REDUCTION(reduce_std, StdOp)

#define INVAR_ARG(name, Extreme)                            \
  extern const CpuKernel INVAR_ROW_OF(name);                \
  const CpuKernel INVAR_ROW_OF(name) = {.op = #name,        \
                                        .isa = INVAR_ISA,   \
                                        .units = arg_units, \
                                        .run = INVAR_ISA_NS::arg<num::INVAR_ISA_NS::Extreme>};
INVAR_ARG(argmax, Largest)
INVAR_ARG(argmin, Smallest)

extern const CpuKernel INVAR_ROW_OF(hardmax);
const CpuKernel INVAR_ROW_OF(hardmax) = {
    .op = "hardmax", .isa = INVAR_ISA, .units = arg_units, .run = INVAR_ISA_NS::hardmax};

}  // namespace invar::ops
