// Reductions of f32 by row_reduction.cuh; other types by cuda/binary64.cuh and cuda/unordered.cuh.
#include "ops/reduce/cpu/float_ops.h"
#include "ops/reduce/cuda/binary64.cuh"
#include "ops/reduce/cuda/unordered.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

template <class Op, bool = Op::kCentred>
struct FirstOf {
  using Join = typename Op::Join;
};
template <class Op>
struct FirstOf<Op, true> {
  using Join = typename Op::First::Join;
};

// Operations that differ only in how they finish the total share their kernels; `which` selects
// one.
template <class Op, class... Others>
struct Reduce {
  static constexpr int kReductions = Op::kCentred ? 2 : 1;
  static constexpr bool kStoresRow = false;
  template <int k>
  using Join = std::conditional_t<k == 0, typename FirstOf<Op>::Join, typename Op::Join>;
  const float* x;
  float* out;
  ElementCount n;
  int which;

  template <class Row>
  INVAR_DEVICE void operator()(Row& row, int64_t r) const {
    F centre = zero();
    if constexpr (Op::kCentred)
      centre = Op::centre(
          row.template reduce<Join<0>>([](F lane, F v) { return Op::First::step(lane, v, zero()); }), n);
    const F total =
        row.template reduce<typename Op::Join>([=](F lane, F v) { return Op::step(lane, v, centre); });
    if (!row.leader()) return;
    F y = Op::finish(total, n, centre);
    int other = 0;
    ((++other == which ? void(y = Others::finish(total, n, centre)) : void()), ...);
    store_canonical(out + r, y);
  }
};
using Sums = Reduce<SumOp, MeanOp, LogSumOp>;
using Squares = Reduce<SquareOp, L2Op>;
using Variances = Reduce<VarOp, StdOp>;

template <class Family, bool kAligned>
struct ContiguousRows : Family {
  int64_t length;
  INVAR_DEVICE lanes::ContiguousRow<kAligned> source(int64_t r, int64_t = 0) const {
    return {this->x + r * length};
  }
};
template <class Family>
struct StridedRows : Family {
  Reduction r;
  INVAR_DEVICE StridedElements<float> source(int64_t outer, int64_t column = 0) const {
    return {this->x + StridedDims::offset(r.kept, outer) + column, &r.reduced, r.n <= INT32_MAX};
  }
};

template <class Family, class Op, int which>
void enqueue(const Call& call, Stream stream) {
  if constexpr (!std::is_void_v<typename Op::Wide>)
    if (call.in[0].dtype == DType::f64) return enqueue_binary64<typename Op::Wide>(call, stream);
  if constexpr (Op::kIntegerOp != IntegerOp::none)
    if (call.in[0].dtype != DType::f32) return enqueue_integers<Op::kIntegerOp>(call, stream);
  const Reduction r = reduction_of(call);
  const Family fn{call.in[0].as<const float>(), call.out[0].as<float>(), count_of(call, r), which};
  if (r.columnwise)
    return launch_columns(StridedRows<Family>{fn, r}, column_blocks(r.outer, r.inner, r.n), call.shared,
                          stream);
  const bool line = r.reduced.count <= 1;
  if (line && r.n % 4 == 0 && aligned(fn.x))
    return launch_rows(ContiguousRows<Family, true>{fn, r.n}, r.outputs, r.n, call.shared, stream);
  if (line && r.n <= kShortRow)
    return launch_unaligned_rows(ContiguousRows<Family, false>{fn, r.n}, r.outputs, r.n, call.shared, stream);
  launch_scattered_rows(StridedRows<Family>{fn, r}, r.outputs, r.n, call.shared, stream);
}

template <class Family>
size_t shared_bytes(const Call& call) {
  if (call.in[0].dtype != DType::f32) return 0;
  const Reduction r = reduction_of(call);
  if (r.columnwise) return column_bytes(column_blocks(r.outer, r.inner, r.n), Family::kReductions);
  return row_bytes(r.outputs, r.n, Family::kReductions);
}

}  // namespace
}  // namespace INVAR_ISA_NS

// The registry row of operation Op, number `which` of its family.
#define INVAR_REDUCTION(name, Op, Family, which)                        \
  extern const GpuKernel INVAR_ROW_OF(name);                            \
  const GpuKernel INVAR_ROW_OF(name) = {                                \
      .op = #name,                                                      \
      .isa = INVAR_ISA,                                                 \
      .shared_bytes = INVAR_ISA_NS::shared_bytes<INVAR_ISA_NS::Family>, \
      .enqueue = INVAR_ISA_NS::enqueue<INVAR_ISA_NS::Family, INVAR_ISA_NS::Op, which>};
INVAR_REDUCTION(reduce_sum, SumOp, Sums, 0)
INVAR_REDUCTION(reduce_mean, MeanOp, Sums, 1)
INVAR_REDUCTION(reduce_log_sum, LogSumOp, Sums, 2)
INVAR_REDUCTION(reduce_sum_square, SquareOp, Squares, 0)
INVAR_REDUCTION(reduce_l2, L2Op, Squares, 1)
INVAR_REDUCTION(reduce_var, VarOp, Variances, 0)
INVAR_REDUCTION(reduce_std, StdOp, Variances, 1)
INVAR_REDUCTION(reduce_prod, ProdOp, Reduce<INVAR_ISA_NS::ProdOp>, 0)
INVAR_REDUCTION(reduce_max, MaxOp, Reduce<INVAR_ISA_NS::MaxOp>, 0)
INVAR_REDUCTION(reduce_min, MinOp, Reduce<INVAR_ISA_NS::MinOp>, 0)
INVAR_REDUCTION(reduce_l1, L1Op, Reduce<INVAR_ISA_NS::L1Op>, 0)
INVAR_REDUCTION(reduce_log_sum_exp, LogSumExpOp, Reduce<INVAR_ISA_NS::LogSumExpOp>, 0)

#define INVAR_ARG(name, ...)                 \
  extern const GpuKernel INVAR_ROW_OF(name); \
  const GpuKernel INVAR_ROW_OF(name) = {     \
      .op = #name, .isa = INVAR_ISA, .enqueue = INVAR_ISA_NS::enqueue_arg<__VA_ARGS__>};
INVAR_ARG(argmax, true)
INVAR_ARG(argmin, false)
INVAR_ARG(hardmax, true, true)

}  // namespace invar::ops
