// RMS normalization: a block or a warp reduces a row (kernels/cuda/normalization.cuh).
#include "kernels/cuda/join_lines.cuh"
#include "kernels/cuda/norm_gradients.cuh"
#include "ops/rmsnorm/attributes.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

template <bool kAligned, bool kFloats, class Results>
struct RmsNorm : NormOp<kAligned, 1> {
  WeightVector w;
  Results results;

  INVAR_DEVICE void prefetch() const { prefetch_l2(w, this->n); }
  template <class Row>
  INVAR_DEVICE void operator()(Row& row, int64_t r) const {
    const RowWeightLoader<Row, kFloats> weights(row, w);
    const F squares = row.template reduce<num::INVAR_ISA_NS::SumOp>(
        [](F lane, F v) { return fma(v, v, lane); });                // rmsnorm.1
    const F mean = div(squares, set1(static_cast<float>(this->n)));  // rmsnorm.2
    const F scale = inverse_sqrt(mean, this->epsilon);               // rmsnorm.3
    typename Results::template Of<Row> to(results, this->y, r, this->n);
    row.each([&](int slot, int64_t i, const F* v) {
      F g[Row::kV];
      weights.get(slot, i, g);
#pragma unroll
      for (int k = 0; k < Row::kV; ++k) g[k] = canonicalize(mul(mul(v[k], scale), g[k]));  // rmsnorm.4
      to.take(row, slot, i, g);
    });
    to.end(row);
  }
};

template <bool kAligned, bool kFloats, class Results>
void launch_aligned(const Call& call, const Results& results, Stream stream) {
  const RmsNorm<kAligned, kFloats, Results> fn{
      {call, call.in[1].elements(), RmsnormAttributes(call).epsilon}, weight_vector(call.in[1]), results};
  launch_norm(fn, results, norm_rows(call, 0), call, stream);
}
template <class Results>
void launch_results(const Call& call, const Results& results, Stream stream) {
  const WeightVector w = weight_vector(call.in[1]);
  if (!rows_are_aligned(call, call.in[1].elements()) || !aligned(w))
    return launch_aligned<false, false>(call, results, stream);
  if (w.format == DType::f32) return launch_aligned<true, true>(call, results, stream);
  launch_aligned<true, false>(call, results, stream);
}
void enqueue(const Call& call, Stream stream) {
  launch_results(call, FloatRows{}, stream);
}
void enqueue_rounded(std::span<const Call* const> calls, const RoundedRows& to, Stream stream) {
  launch_results(*calls[0], RoundedNorms{to, norm_rows(*calls[0], 0)}, stream);
}

// The same of rows that ranks join, and mostly add to others: a block joins a row, leaves the sum
// in memory and normalizes it.
template <class Norm>
struct JoinedNorm : Norm {
  JoinWork w;
  INVAR_DEVICE num::INVAR_ISA_NS::ContiguousRow<true> source(int64_t r, int64_t = 0) const {
    join_row(w, r);
    __syncthreads();
    return Norm::source(r);
  }
};
template <bool kFloats>
void launch_joined(const Call& norm, const JoinWork& w, const RoundedRows& to, Stream stream) {
  const int64_t rows = norm_rows(norm, 0), n = norm.in[1].elements();
  using Norm = RmsNorm<true, kFloats, RoundedNorms>;
  const JoinedNorm<Norm> fn{
      {{norm, n, RmsnormAttributes(norm).epsilon}, weight_vector(norm.in[1]), RoundedNorms{to, rows}}, w};
  if (n <= num::kRowSegment) return launch_held_rows<num::kRowLanes, kSteps, 1>(fn, rows, n, stream);
  launch_held_rows<kTeam, kSteps, kMaxTeams>(fn, rows, n, stream);
}

// calls: the join, an addition or none, the normalization.
JoinWork joined_norm_rows(std::span<const Call* const> calls, const GpuJoin& join) {
  const Call& concat = *calls[0];
  JoinWork w = join_work(concat, join, concat.out[0].rank - 1);
  if (calls.size() == 2) return w;
  const Call& sum = *calls[1];
  w.addend = sum.in[sum.in[0].data == concat.out[0].data ? 1 : 0].as<const float>();
  w.out = sum.out[0].as<uint32_t>();
  return w;
}
bool can_round_joined_norm(std::span<const Call* const> calls) {
  const View& out = calls[0]->out[0];
  bool fits = out.dtype == DType::f32 && out.rank > 0 && last_dim(out) > num::kRowLanes;
  for (const View& v : calls[0]->in) fits &= v.rank == out.rank && last_dim(v) < last_dim(out);
  return fits && can_round_norm(calls.last(1));
}
bool takes_joined_norm(std::span<const Call* const> calls, const GpuJoin& join) {
  const JoinWork w = joined_norm_rows(calls, join);
  const Call& norm = *calls.back();
  return joins_quads(w) && are_quads(w.out) && rows_are_aligned(norm, norm.in[1].elements()) &&
         aligned(weight_vector(norm.in[1]));
}
void enqueue_joined_norm(std::span<const Call* const> calls, const GpuJoin& join, const RoundedRows& to,
                         Stream stream) {
  const JoinWork w = joined_norm_rows(calls, join);
  const Call& norm = *calls.back();
  if (norm.in[1].dtype == DType::f32) return launch_joined<true>(norm, w, to, stream);
  launch_joined<false>(norm, w, to, stream);
}

size_t shared_bytes(const Call& call) {
  return row_bytes(norm_rows(call, 0), call.in[1].elements(), 1);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(rmsnorm);
const GpuKernel INVAR_ROW_OF(rmsnorm) = {.op = "rmsnorm",
                                         .isa = INVAR_ISA,
                                         .shared_bytes = INVAR_ISA_NS::shared_bytes,
                                         .enqueue = INVAR_ISA_NS::enqueue,
                                         .can_round = INVAR_ISA_NS::can_round_norm,
                                         .enqueue_rounded = INVAR_ISA_NS::enqueue_rounded};
INVAR_NORM_GRADIENTS(rmsnorm, Rmsnorm, false)
static constexpr std::string_view kJoinedNorm[] = {kJoin, "rmsnorm"},
                                  kJoinedSum[] = {kJoin, kAddition, "rmsnorm"};
static const RoundedJoin joined_norm{INVAR_ISA_NS::can_round_joined_norm, INVAR_ISA_NS::takes_joined_norm,
                                     INVAR_ISA_NS::enqueue_joined_norm};
static const RegisteredRoundedJoin registered_joined_norm(kJoinedNorm, joined_norm),
    registered_joined_sum(kJoinedSum, joined_norm);

}  // namespace invar::ops
