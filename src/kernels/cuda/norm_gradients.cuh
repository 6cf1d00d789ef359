// The gradients of layernorm (kCentred) and rmsnorm on a GPU. Included by their cuda.cu.
#pragma once
#include "kernels/cuda/normalization.cuh"
#include "kernels/norm_gradients.h"
#include "kernels/registry.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using num::INVAR_ISA_NS::Pair, num::INVAR_ISA_NS::SumOp;

struct RowStatistics {
  F mean, scale;  // rmsnorm has no mean
};
template <bool kCentred>
INVAR_DEVICE F normalized(F x, const RowStatistics& row) {
  return mul(kCentred ? sub(x, row.mean) : x, row.scale);
}
INVAR_DEVICE F of_x(F v) {
  return v;
}
INVAR_DEVICE F of_x(const Pair& v) {
  return v.b;
}
// By the next reduction of the row.
template <bool kCentred, class Row>
INVAR_DEVICE RowStatistics statistics_of(Row& row, F mean, F count, float epsilon) {
  const F squares = row.template reduce<SumOp>([=](F lane, auto v) {
    const F d = kCentred ? sub(of_x(v), mean) : of_x(v);
    return fma(d, d, lane);
  });
  return {mean, inverse_sqrt(div(squares, count), epsilon)};
}

// The elements (grad[i] * weight[i], x[i]) of a row.
template <bool kAligned, bool kFloats>
struct WeightedRow {
  static constexpr bool kVectors = kAligned;
  using Element = Pair;
  const float *grad, *x;
  WeightVector w;
  INVAR_DEVICE const float* at(int64_t i) const { return grad + i; }
  template <int kV>
  INVAR_DEVICE void load(int64_t i, Pair* v) const {
    F g[kV], e[kV], h[kV];
    num::INVAR_ISA_NS::load_vector<kV>(grad + i, g);
    num::INVAR_ISA_NS::load_vector<kV>(x + i, e);
    load_weights<kV, kFloats>(w, i, h);
#pragma unroll
    for (int k = 0; k < kV; ++k) v[k] = {mul(g[k], h[k]), e[k]};
  }
};
// The statistics of rows for kernels that follow: with a mean two floats a row, else one. Null: for
// none.
template <bool kCentred>
struct KeptStatistics {
  float* at;
  INVAR_DEVICE void keep(int64_t r, const RowStatistics& s) const {
    if constexpr (kCentred)
      reinterpret_cast<float2*>(at)[r] = {s.scale.v, s.mean.v};
    else
      at[r] = s.scale.v;
  }
  INVAR_DEVICE RowStatistics row(int64_t r) const {
    if constexpr (kCentred) {
      const float2 both = reinterpret_cast<const float2*>(at)[r];
      return {{both.y}, {both.x}};
    }
    return {zero(), {at[r]}};
  }
};
// Rows of a block that starts later are asked for ahead: their blocks find them in the L2, so that
// memory does not wait while this block reduces. For rmsnorm, which reduces less, it does not pay
// (8192 rows of 8192 on an H200: layernorm 0.69 to 0.56 ms, rmsnorm 0.49 to 0.52).
constexpr int64_t kRowsAhead = 264, kLongRow = 2048;  // about as many blocks as run at once; elements
INVAR_DEVICE void prefetch_row(const float* x, int64_t n) {
  constexpr int kLine = 32;  // floats
  for (int64_t i = int64_t{threadIdx.x} * kLine; i < n; i += int64_t{blockDim.x} * kLine)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(x + i));
}
template <bool kCentred, bool kVectors, bool kFloats>
struct NormBackward {
  static constexpr bool kAligned = kVectors, kStoresRow = true;
  static constexpr int kReductions = kCentred ? 4 : 2;
  template <int>
  using Join = SumOp;
  const float *grad, *x;
  WeightVector w;
  float* dx;
  int64_t n, prefetched;  // rows
  float epsilon;
  KeptStatistics<kCentred> kept;

  INVAR_DEVICE WeightedRow<kVectors, kFloats> source(int64_t r, int64_t = 0) const {
    return {grad + r * n, x + r * n, w};
  }
  template <class Row>
  INVAR_DEVICE void operator()(Row& row, int64_t r) const {
    if (kAligned && kCentred && r + kRowsAhead < prefetched) {
      prefetch_row(grad + (r + kRowsAhead) * n, n);
      prefetch_row(x + (r + kRowsAhead) * n, n);
    }
    const F count = set1(static_cast<float>(n));
    F mean = zero(), average = zero();
    if constexpr (kCentred) {
      const Pair sums = row.template reduce_both<SumOp>([](F lane, const Pair& v) { return add(lane, v.b); },
                                                        [](F lane, const Pair& v) { return add(lane, v.a); });
      mean = div(sums.a, count), average = div(sums.b, count);
    }
    const RowStatistics s = statistics_of<kCentred>(row, mean, count, epsilon);
    const F slope = div(row.template reduce<SumOp>([=](F lane, const Pair& v) {
      return fma(v.a, normalized<kCentred>(v.b, s), lane);
    }),
                        count);
    row.give(dx + r * n, [=](const Pair& v) {
      const F u = kCentred ? sub(v.a, average) : v.a;
      return mul(fma(neg(normalized<kCentred>(v.b, s)), slope, u), s.scale);
    });
    if (kept.at && row.leader()) kept.keep(r, s);
  }
};
template <bool kCentred, bool kAligned, bool kFloats>
void launch_norm_backward(const Call& call, float epsilon, KeptStatistics<kCentred> kept, void* shared,
                          Stream stream) {
  const int64_t rows = norm_backward_rows(call, 0), n = call.in[2].elements();
  const NormBackward<kCentred, kAligned, kFloats> fn{
      .grad = call.in[0].as<const float>(),
      .x = call.in[1].as<const float>(),
      .w = weight_vector(call.in[2]),
      .dx = call.out[0].as<float>(),
      .n = n,
      .prefetched = n >= kLongRow && !splits_rows(n) ? rows : 0,
      .epsilon = epsilon,
      .kept = kept};
  launch_norm(fn, rows, shared, stream);
}
template <bool kCentred>
void enqueue_norm_backward_to(const Call& call, float epsilon, KeptStatistics<kCentred> kept, void* shared,
                              Stream stream) {
  const WeightVector w = weight_vector(call.in[2]);
  if (!rows_are_aligned(call, call.in[2].elements()) || !aligned(call.in[1].data) || !aligned(w))
    return launch_norm_backward<kCentred, false, false>(call, epsilon, kept, shared, stream);
  if (w.format == DType::f32)
    return launch_norm_backward<kCentred, true, true>(call, epsilon, kept, shared, stream);
  launch_norm_backward<kCentred, true, false>(call, epsilon, kept, shared, stream);
}
template <bool kCentred, class A>
void enqueue_norm_backward(const Call& call, Stream stream) {
  enqueue_norm_backward_to<kCentred>(call, A(call).epsilon, {}, call.shared, stream);
}
template <bool kCentred>
size_t norm_backward_bytes(const Call& call) {
  return row_bytes(norm_backward_rows(call, 0), call.in[2].elements(), kCentred ? 4 : 2);
}

// The statistics of each row, for the gradient of the weight.
template <bool kCentred, bool kVectors>
struct NormStatistics {
  static constexpr bool kAligned = kVectors, kStoresRow = false;
  static constexpr int kReductions = kCentred ? 2 : 1;
  template <int>
  using Join = SumOp;
  const float* x;
  KeptStatistics<kCentred> kept;
  int64_t n;
  float epsilon;

  INVAR_DEVICE num::INVAR_ISA_NS::ContiguousRow<kVectors> source(int64_t r, int64_t = 0) const {
    return {x + r * n};
  }
  template <class Row>
  INVAR_DEVICE void operator()(Row& row, int64_t r) const {
    const F count = set1(static_cast<float>(n));
    F center = zero();
    if constexpr (kCentred)
      center = div(row.template reduce<SumOp>([](F lane, F v) { return add(lane, v); }), count);
    const RowStatistics s = statistics_of<kCentred>(row, center, count, epsilon);
    if (row.leader()) kept.keep(r, s);
  }
};
// The elements of a column: grad * (x normalized), and grad itself.
template <bool kCentred>
struct ScaledColumn {
  static constexpr bool kVectors = false;
  using Element = Pair;
  const float *grad, *x;
  KeptStatistics<kCentred> kept;
  int64_t stride;
  template <int>
  INVAR_DEVICE void load(int64_t i, Pair* v) const {
    const F g{grad[i * stride]}, h = normalized<kCentred>({x[i * stride]}, kept.row(i));
    *v = {canonicalize(mul(g, canonicalize(h))), g};
  }
};
// The gradient of the weight and, with kBias, that of the bias.
template <bool kCentred, bool kBias>
struct NormBackwardWeight {
  static constexpr int kReductions = kBias ? 2 : 1;
  static constexpr bool kStoresRow = false;
  template <int>
  using Join = SumOp;
  const float *grad, *x;
  KeptStatistics<kCentred> kept;
  float *dw, *db;
  int64_t n;

  INVAR_DEVICE ScaledColumn<kCentred> source(int64_t, int64_t column) const {
    return {grad + column, x + column, kept, n};
  }
  template <class Row>
  INVAR_DEVICE void operator()(Row& row, int64_t r) const {
    const auto products = [](F lane, const Pair& v) { return add(lane, v.a); };
    Pair totals{};
    if constexpr (kBias)
      totals =
          row.template reduce_both<SumOp>(products, [](F lane, const Pair& v) { return add(lane, v.b); });
    else
      totals.a = row.template reduce<SumOp>(products);
    if (!row.leader()) return;
    store_canonical(dw + r, totals.a);
    if (kBias) store_canonical(db + r, totals.b);
  }
};
// Columns are not split among blocks where half of the multiprocessors have one anyway.
inline ColumnBlocks weight_columns(const NormWeightRows& r) {
  ColumnBlocks c = column_blocks(1, r.n, r.rows);
  c.shares = c.shares && ceil_div(r.n, 8) < 64;
  return c;
}
template <bool kCentred, bool kBias>
void launch_weight_columns(const Call& call, KeptStatistics<kCentred> kept, float* dw, float* db,
                           void* shared, Stream stream) {
  const NormWeightRows r = norm_weight_rows(call);
  launch_columns(NormBackwardWeight<kCentred, kBias>{call.in[0].as<const float>(),
                                                     call.in[1].as<const float>(), kept, dw, db, r.n},
                 weight_columns(r), shared, stream);
}

// Call::shared: the statistics, then what the reductions of rows and of columns need, in turn.
inline size_t bytes_after_statistics(const NormWeightRows& r, size_t of_rows, int sums) {
  const size_t of_columns = column_bytes(weight_columns(r), sums);
  return static_cast<size_t>(2 * r.rows) * sizeof(float) + (of_rows > of_columns ? of_rows : of_columns);
}
template <bool kCentred>
size_t norm_backward_weight_bytes(const Call& call) {
  const NormWeightRows r = norm_weight_rows(call);
  return bytes_after_statistics(r, row_bytes(r.rows, r.n, kCentred ? 2 : 1), 1);
}
template <bool kCentred, class A>
void enqueue_norm_backward_weight(const Call& call, Stream stream) {
  const NormWeightRows r = norm_weight_rows(call);
  const auto* x = call.in[1].as<const float>();
  const KeptStatistics<kCentred> kept{static_cast<float*>(call.shared)};
  float* const room = kept.at + 2 * r.rows;
  const float epsilon = A(call).epsilon;
  if (r.n % 4 == 0 && aligned(x))
    launch_rows(NormStatistics<kCentred, true>{x, kept, r.n, epsilon}, r.rows, r.n, room, stream);
  else
    launch_unaligned_rows(NormStatistics<kCentred, false>{x, kept, r.n, epsilon}, r.rows, r.n, room, stream);
  launch_weight_columns<kCentred, false>(call, kept, call.out[0].as<float>(), nullptr, room, stream);
}

// All gradients of a normalization: of x, of the weight and, with a bias, of that, which is
// reduce_sum of grad over the rows. The statistics are computed once, and columns are read once.
template <class A, class Weight>
bool fits_norm_group(std::span<const Call* const> calls) {
  const Call &dx = *calls[0], &dw = *calls[1];
  const NormWeightRows r = norm_weight_rows(dw);
  bool fits = dw.in[0].data == dx.in[0].data && dw.in[1].data == dx.in[1].data && r.rows > 0 &&
              r.rows == norm_backward_rows(dx, 0) && Weight(dw).epsilon == A(dx).epsilon;
  if (calls.size() > 2) {
    const Call& db = *calls[2];
    fits = fits && db.in[0].data == dx.in[0].data && db.in[0].dtype == DType::f32 &&
           db.out[0].elements() == r.n && sums_leading_axes(db, dx.in[0].rank - dx.in[2].rank);
  }
  return fits;
}
template <bool kCentred>
size_t norm_group_bytes(std::span<const Call* const> calls) {
  const NormWeightRows r = norm_weight_rows(*calls[1]);
  return bytes_after_statistics(r, norm_backward_bytes<kCentred>(*calls[0]), calls.size() > 2 ? 2 : 1);
}
template <bool kCentred, class A>
void enqueue_norm_group(std::span<const Call* const> calls, Stream stream) {
  const Call &dx = *calls[0], &dw = *calls[1];
  const KeptStatistics<kCentred> kept{static_cast<float*>(dx.shared)};
  float* const room = kept.at + 2 * norm_weight_rows(dw).rows;
  enqueue_norm_backward_to<kCentred>(dx, A(dx).epsilon, kept, room, stream);
  auto* const to = dw.out[0].as<float>();
  if (calls.size() > 2)
    launch_weight_columns<kCentred, true>(dw, kept, to, calls[2]->out[0].as<float>(), room, stream);
  else
    launch_weight_columns<kCentred, false>(dw, kept, to, nullptr, room, stream);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS

// The registry rows of both operations, and of their group. Name: the beginning of the names of
// their attributes.
#define INVAR_NORM_GRADIENTS(name, Name, centred)                                              \
  extern const GpuKernel INVAR_ROW_OF(name##_backward), INVAR_ROW_OF(name##_backward_weight);  \
  namespace {                                                                                  \
  const std::string_view kGradientsOf_##name[] = {#name "_backward", #name "_backward_weight", \
                                                  kSumOperation};                              \
  const GpuGroup kGroup_##name{                                                                \
      kGradientsOf_##name,                                                                     \
      INVAR_ISA_NS::fits_norm_group<Name##BackwardAttributes, Name##BackwardWeightAttributes>, \
      INVAR_ISA_NS::norm_group_bytes<centred>,                                                 \
      INVAR_ISA_NS::enqueue_norm_group<centred, Name##BackwardAttributes>};                    \
  const RegisteredGroup kRegistered_##name(kGroup_##name);                                     \
  }                                                                                            \
  const GpuKernel INVAR_ROW_OF(name##_backward) = {                                            \
      .op = #name "_backward",                                                                 \
      .isa = INVAR_ISA,                                                                        \
      .shared_bytes = INVAR_ISA_NS::norm_backward_bytes<centred>,                              \
      .enqueue = INVAR_ISA_NS::enqueue_norm_backward<centred, Name##BackwardAttributes>};      \
  const GpuKernel INVAR_ROW_OF(name##_backward_weight) = {                                     \
      .op = #name "_backward_weight",                                                          \
      .isa = INVAR_ISA,                                                                        \
      .shared_bytes = INVAR_ISA_NS::norm_backward_weight_bytes<centred>,                       \
      .enqueue = INVAR_ISA_NS::enqueue_norm_backward_weight<centred, Name##BackwardWeightAttributes>};
