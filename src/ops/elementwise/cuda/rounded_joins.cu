// Rows that ranks make together and a product of each reads rounded: one kernel makes the rank's
// part, of an activation or a product if there is one, exchanges it in lines
// (kernels/cuda/join_lines.cuh), and writes the whole rows as integers of 16 bits. For the rows of
// steps that generate; longer ones join in pieces.
#include "kernels/call.h"
#include "kernels/cuda/join_lines.cuh"
#include "ops/elementwise/cuda/rounded_products.cuh"
#include "ops/elementwise/cuda/rounded_products.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

struct JoinedRows {
  JoinWork join;
  const float *a, *b;  // what the own part is made of; b of products alone
  int64_t count;
};

// The part as it is.
struct Part {
  static constexpr bool kMultiplies = false;
  struct Quick {};
};
template <class Fn>
struct Multiplied : Fn {
  static constexpr bool kMultiplies = true;
};
// Elements of the own part under the store rule. All lanes of a warp call it at once.
template <class Fn>
__device__ Quad own_quad(const typename Fn::Quick& quick, const JoinedRows& from, int64_t at, bool inside) {
  Quad x{}, y{};
  if (inside) x = load_pack<kQuad>(from.a + at);
  if constexpr (Fn::kMultiplies) {
    if (inside) y = load_pack<kQuad>(from.b + at);
    x = products<Fn>(quick, x, y);
    for (float& one : x.v) one = canonicalize(F{one}).v;
  }
  return x;
}

__device__ uint4 bits_of(const Quad& x) {
  return {__float_as_uint(x.v[0]), __float_as_uint(x.v[1]), __float_as_uint(x.v[2]), __float_as_uint(x.v[3])};
}
__device__ Quad floats_of(const uint4& x) {
  return {__uint_as_float(x.x), __uint_as_float(x.y), __uint_as_float(x.z), __uint_as_float(x.w)};
}

// A cluster of blocks for each row, a warp for chunks of kRoundedK elements. A thread sends all
// that it has before it waits for others. It keeps its elements, one quad in registers, more of
// them in shared memory, until the scale is known.
template <class Fn>
__global__ void __launch_bounds__(kMostWarps* kWarp, 2)
    joined_rows_kernel(const __grid_constant__ JoinedRows from, RoundedRows to, bool one_turn) {
  extern __shared__ float4 made[];
  trigger_next_grid();
  const JoinWork& w = from.join;
  const JoinPart& mine = w.part[w.rank];
  const int blocks = gridDim.x, part = blockIdx.x;
  ClusterLargest cluster(blocks);
  const typename Fn::Quick quick;
  const int warps = blockDim.x / kWarp, warp = threadIdx.x / kWarp;
  const int chunks = static_cast<int>(to.chunks), each = (chunks + blocks - 1) / blocks;
  const int end = min(part * each + each, chunks) * kRoundedK, step = warps * kRoundedK;
  const int first = (part * each + warp) * kRoundedK + threadIdx.x % kWarp * kQuad;
  auto* const own = reinterpret_cast<Quad*>(made) + threadIdx.x;
  cluster.meet();
  wait_for_previous_grid();
  const uint32_t mark = *w.base + w.number;
  for (int64_t r = blockIdx.y; r < from.count; r += gridDim.y) {
    Quad last{};
    uint32_t largest = 0;
    const auto keep = [&](Quad* to_own, const Quad& x) {
      for (const float one : x.v) largest = largest_of(largest, one);
      last = x;
      if (!one_turn) *to_own = x;
    };
    const auto in = [](const JoinPart& p, int i) { return i >= p.first && i < p.first + p.columns; };
    Quad* to_own = own;
#pragma unroll 1
    for (int i = first; i < end; i += step, to_own += blockDim.x) {
      if (!__any_sync(kFullWarp, in(mine, i))) continue;
      const int64_t at = r * mine.columns + i - mine.first;
      const Quad x = own_quad<Fn>(quick, from, at, in(mine, i));
      if (!in(mine, i)) continue;
      send_quad(w, at, bits_of(x), mark);
      keep(to_own, x);
    }
    to_own = own;
#pragma unroll 1
    for (int i = first; i < end; i += step, to_own += blockDim.x) {
      if (in(mine, i)) continue;
      Quad x{};
      for (int s = 0; s < w.ranks; ++s)
        if (in(w.part[s], i))
          x = floats_of(receive_quad(w, s, r * w.part[s].columns + i - w.part[s].first, mark));
      keep(to_own, x);
    }
    const int32_t e = num::exact16_scale(cluster.of(largest));
    const RoundedRow out(to, r, e);
    to_own = own;
#pragma unroll 1
    for (int i = first; i < end; i += step, to_own += blockDim.x)
      out.store<kQuad>(i, one_turn ? last.v : to_own->v);
    if (part == 0 && threadIdx.x == 0) to.scales[r] = e;
    if (part == 0 && r == 0) clear_scales(to, from.count, threadIdx.x, blockDim.x);
  }
}

size_t shared_of(const RowBlocks& at) {
  return at.turns == 1 ? 0 : at.bytes();
}
JoinedRows joined_rows(std::span<const Call* const> calls, const GpuJoin& join) {
  const Call& concat = *calls.back();
  JoinedRows rows{join_work(concat, join, concat.out[0].rank - 1), nullptr, nullptr,
                  row_count(concat.out[0])};
  if (calls.size() == 1) {
    rows.a = reinterpret_cast<const float*>(rows.join.own);
    return rows;
  }
  const Call& mul = *calls[calls.size() - 2];
  rows.a = mul.in[0].as<const float>(), rows.b = mul.in[1].as<const float>();
  if (calls.size() > 2) {
    if (rows.a != calls[0]->out[0].as<const float>()) rows.b = rows.a;  // the activation is in[1]
    rows.a = calls[0]->in[0].as<const float>();
  }
  return rows;
}

// Parts of whole quads of at least two ranks, along the last axis.
bool can_round_join(std::span<const Call* const> calls) {
  const Call& concat = *calls.back();
  const View& out = concat.out[0];
  bool fits = out.dtype == DType::f32 && out.rank > 0 && last_dim(out) > 0 && last_dim(out) <= kLongestRow &&
              concat.in.size() > 1;
  for (const View& v : concat.in)
    fits &= v.rank == out.rank && last_dim(v) > 0 && last_dim(v) < last_dim(out) && last_dim(v) % kQuad == 0;
  return fits;
}
// Few rows, to which every rank adds.
bool takes_join(std::span<const Call* const> calls, const GpuJoin& join) {
  const JoinedRows rows = joined_rows(calls, join);
  const JoinWork& w = rows.join;
  return joins_quads(w) && is_aligned<kQuad>(rows.a) && (!rows.b || is_aligned<kQuad>(rows.b)) &&
         shared_of(row_blocks(w.width, rows.count)) <=
             static_cast<size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
}

template <class Fn>
void enqueue_joined(std::span<const Call* const> calls, const GpuJoin& join, const RoundedRows& to,
                    Stream stream) {
  const JoinedRows rows = joined_rows(calls, join);
  const RowBlocks at = row_blocks(rows.join.width, rows.count);
  const dim3 grid(static_cast<unsigned>(at.blocks), static_cast<unsigned>(rows.count));
  const dim3 threads(static_cast<unsigned>(at.warps * kWarp));
  if (at.blocks > 1)
    launch_clusters(joined_rows_kernel<Fn>, static_cast<unsigned>(at.blocks), grid, threads, shared_of(at),
                    stream, rows, to, at.turns == 1);
  else
    launch_dependent(joined_rows_kernel<Fn>, grid, threads, shared_of(at), stream, rows, to, at.turns == 1);
}

template <class Fn>
constexpr RoundedJoin kKernelOf{can_round_join, takes_join, enqueue_joined<Fn>};

}  // namespace

const RoundedJoin join_of_part = kKernelOf<Part>, join_of_product = kKernelOf<Multiplied<Product>>,
                  join_of_silu = kKernelOf<Multiplied<Silu>>, join_of_gelu = kKernelOf<Multiplied<Gelu>>,
                  join_of_gelu_tanh = kKernelOf<Multiplied<GeluTanh>>,
                  join_of_relu = kKernelOf<Multiplied<Relu>>,
                  join_of_sigmoid = kKernelOf<Multiplied<Sigmoid>>;

}  // namespace INVAR_ISA_NS
}  // namespace invar::ops
