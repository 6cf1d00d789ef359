// The attention kernel of a GPU and its choice of kernels. Decoding (few rows of a key head) splits
// the key blocks among warps or thread blocks, and combines the parts by a last kernel or a
// cluster. Prefill (many rows) goes by tiles; heads wider than one chain of a contraction go row by
// row.
#include <bit>

#include "kernels/forced_route.h"
#include "ops/attention/cuda/append.cuh"
#include "ops/attention/cuda/backward.cuh"
#include "ops/attention/cuda/decode_blocks.cuh"
#include "ops/attention/cuda/decode_cluster.cuh"
#include "ops/attention/cuda/prefill_tile.cuh"
#include "ops/attention/cuda/split_kv.cuh"
#include "ops/attention/cuda/wide_heads.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int64_t kFewRows = 16;
constexpr int64_t kMaxPartialBytes = 256 << 20;  // beyond that tiles do not split their keys

size_t state_bytes(const Call& call, int64_t capacity) {
  const Geometry g = attention::geometry(call);
  const int64_t blocks = ceil_div(capacity > g.keys ? capacity : g.keys, kBlock);
  return static_cast<size_t>(g.kv_heads * blocks * kBlock * (g.d + g.dv_padded)) * sizeof(float);
}

// Rows of a prefill tile; the small tile is for devices with less shared memory.
constexpr int kTileRows = 64, kTileRowsSmall = 32;

// The kernels of a call. Its result's bits do not depend on them. The order of Route is that of the
// forced routes of tests.
struct KernelPlan {
  enum Route {
    automatic,
    split_kv,
    tiles,
    small_tiles,
    split_tiles,
    wide_heads,
    decode_cluster,
    decode_blocks,
    count
  } route;
  int64_t columns, splits;              // of tiles: value columns of a thread block; see prefill_tile_kernel
  bool splits_keys;                     // whether combine_splits_kernel combines partial results
  int64_t queries, partials, max_sums;  // floats of Call::shared
};
// Calls f with the number of rows of a group, as a constant.
template <class Fn>
auto with_group_rows(int64_t rows, Fn f) {
  if (rows == 1) return f(std::integral_constant<int, 1>{});
  if (rows == 2) return f(std::integral_constant<int, 2>{});
  if (rows <= 4) return f(std::integral_constant<int, 4>{});
  return f(std::integral_constant<int, 8>{});
}
int64_t row_groups(const Geometry& g) {
  return with_group_rows(g.rows, [&](auto r) { return g.batch * g.kv_heads * ceil_div(g.rows, r); });
}
template <bool kBoth>
size_t smem_bytes(const Geometry& g) {
  return with_group_rows(
      g.rows, [&](auto r) { return static_cast<size_t>(SmemLayout<r, kBoth>(g).all) * sizeof(float); });
}
// Whether a thread block's shared memory holds a SmemKvBlock; whether a cluster holds all key
// blocks.
template <bool kBoth>
bool fits_smem(const Geometry& g) {
  return smem_bytes<kBoth>(g) + kFewRows * sizeof(IndexedRow) <=
         static_cast<size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
}
bool fits_cluster(const Geometry& g) {
  return supports_dependent_launch() && g.seen <= kMaxClusterBlocks && fits_smem<true>(g);
}
KernelPlan plan_kernel(const Geometry& g) {
  KernelPlan p{static_cast<KernelPlan::Route>(variant() % KernelPlan::count), 0, 1, false, 0, 0, 0};
  if (g.d > num::kChain) p.route = KernelPlan::wide_heads;
  if (p.route == KernelPlan::decode_cluster && !fits_cluster(g)) p.route = KernelPlan::decode_blocks;
  if (p.route == KernelPlan::decode_blocks && !fits_smem<false>(g)) p.route = KernelPlan::split_kv;
  if (p.route == KernelPlan::automatic)
    p.route = g.rows > kFewRows ? KernelPlan::tiles
              : row_groups(g) * g.seen <= 2 * multiprocessors() && fits_cluster(g)
                  ? KernelPlan::decode_cluster
              : fits_smem<false>(g) ? KernelPlan::decode_blocks
                                    : KernelPlan::split_kv;
  const int64_t heads = g.batch * g.kv_heads, partials = heads * g.rows * g.seen;
  p.splits_keys = p.route == KernelPlan::split_kv || p.route == KernelPlan::decode_blocks;
  if (p.route == KernelPlan::tiles || p.route == KernelPlan::small_tiles ||
      p.route == KernelPlan::split_tiles) {
    p.columns = g.dv > kBlock / 2 ? kBlock : kBlock / 2;
    p.queries = heads * ceil_div(g.rows, kTileRows) * kTileRows * g.d;
    // Two thread blocks on each multiprocessor, and at least two key blocks for each of them.
    const int64_t blocks = heads * ceil_div(g.rows, kTileRows) * ceil_div(g.dv, p.columns);
    int64_t splits = blocks ? num::min_i64(2 * multiprocessors() / blocks, g.seen / 2) : 1;
    if (splits > 1 && partials * (g.dv_padded + 2) * static_cast<int64_t>(sizeof(float)) > kMaxPartialBytes)
      splits = 1;
    if (p.route == KernelPlan::split_tiles && splits < 2) splits = 2;
    p.splits_keys = splits > 1;
    if (p.splits_keys) p.splits = splits;
  }
  if (p.splits_keys) p.partials = partials * g.dv_padded, p.max_sums = 2 * partials;
  return p;
}
size_t shared_bytes(const Call& call) {
  const KernelPlan p = plan_kernel(attention::geometry(call));
  return static_cast<size_t>(p.queries + p.partials + p.max_sums) * sizeof(float);
}

AttentionParams attention_params(const Call& call, const Geometry& g, const KernelPlan& p) {
  AttentionParams s = attention_params(call, g);
  s.queries_t = static_cast<float*>(call.shared);
  s.partials = s.queries_t + p.queries, s.max_sums = s.partials + p.partials;
  return s;
}

dim3 grid(int64_t blocks, int64_t y = 1) {
  return dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(y));
}

template <int R>
void launch_split_kv(const AttentionParams& s, Stream stream) {
  const Geometry& g = s.g;
  const int64_t units = g.batch * g.kv_heads * ceil_div(g.rows, R) * g.seen;
  launch_dependent(split_kv_kernel<R>,
                   grid(num::min_i64(ceil_div(units, kSplitWarps), 4 * multiprocessors())),
                   dim3(kSplitThreads), 0, stream, s);
}
template <int R>
void launch_decode_cluster(const AttentionParams& s, Stream stream) {
  const Geometry& g = s.g;
  const unsigned cluster = std::bit_ceil(static_cast<unsigned>(g.seen));
  launch_clusters(decode_cluster_kernel<R>, cluster, grid(row_groups(g) * cluster), dim3(kSmemThreads),
                  smem_bytes<true>(g), stream, s);
}
template <int R>
void launch_decode_blocks(const AttentionParams& s, Stream stream) {
  const Geometry& g = s.g;
  const size_t bytes = smem_bytes<false>(g);
  const int64_t per_multiprocessor =
      device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) /
      static_cast<int64_t>(bytes + sizeof(IndexedRow) * R +
                           device_attribute(cudaDevAttrReservedSharedMemoryPerBlock));
  launch_dependent(decode_blocks_kernel<R>,
                   grid(num::min_i64(row_groups(g) * g.seen, per_multiprocessor * multiprocessors())),
                   dim3(kSmemThreads), bytes, stream, s);
}
template <int kRows, int kColumns>
void launch_tiles(const AttentionParams& s, int64_t splits, Stream stream) {
  const Geometry& g = s.g;
  using T = Tile<kRows, kColumns>;
  const int64_t heads = g.batch * g.kv_heads;
  const int count = static_cast<int>(ceil_div(g.rows, kRows));
  launch(transpose_queries_kernel<kRows>, grid(heads * count * ceil_div(g.d, kTileColumns)),
         dim3(kAppendThreads), 0, stream, s, count);
  launch(prefill_tile_kernel<kRows, kColumns>, grid(heads * count * splits, ceil_div(g.dv, kColumns)),
         dim3(T::kThreads), sizeof(typename T::Shared), stream, s, count, static_cast<int>(splits));
}

void enqueue(const Call& call, Stream stream) {
  const Geometry g = attention::geometry(call);
  const KernelPlan p = plan_kernel(g);
  const AttentionParams s = attention_params(call, g, p);
  const int64_t heads = g.batch * g.kv_heads;
  if (p.route != KernelPlan::split_kv && p.route != KernelPlan::decode_cluster &&
      p.route != KernelPlan::decode_blocks) {
    const int64_t blocks = g.keys ? ceil_div(g.keys, kBlock) + 1 : 0;
    launch(append_kernel, grid(heads * blocks * (ceil_div(g.d, kTileColumns) + ceil_div(g.dv, kTileColumns))),
           dim3(kAppendThreads), 0, stream, s, static_cast<int>(blocks));
  }
  if (p.route == KernelPlan::wide_heads) {
    launch(wide_heads_kernel, grid(heads * g.rows), dim3(kWideThreads), 0, stream, s);
  } else if (p.route == KernelPlan::split_kv) {
    with_group_rows(g.rows, [&](auto r) { launch_split_kv<r>(s, stream); });
  } else if (p.route == KernelPlan::decode_cluster) {
    with_group_rows(g.rows, [&](auto r) { launch_decode_cluster<r>(s, stream); });
  } else if (p.route == KernelPlan::decode_blocks) {
    with_group_rows(g.rows, [&](auto r) { launch_decode_blocks<r>(s, stream); });
  } else if (p.route == KernelPlan::small_tiles ||
             device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) <
                 static_cast<int>(sizeof(Tile<kTileRows, kBlock>::Shared))) {
    launch_tiles<kTileRowsSmall, kBlock>(s, p.splits, stream);
  } else {
    (p.columns == kBlock ? launch_tiles<kTileRows, kBlock> : launch_tiles<kTileRows, kBlock / 2>)(s, p.splits,
                                                                                                  stream);
  }
  if (p.splits_keys) launch_combine_splits(s, stream);
}

// Tiles first, as they are aligned; then what rows keep.
size_t backward_shared_bytes(const Call& call) {
  const Geometry g = attention::backward_operands(call).g;
  return tile_bytes(g) +
         static_cast<size_t>(g.batch * g.kv_heads * (3 * g.rows + ceil_div(g.rows, kGradTile))) *
             sizeof(float);
}
void enqueue_backward(const Call& call, Stream stream) {
  const attention::BackwardOperands o = attention::backward_operands(call);
  Call forward = call;
  forward.in = call.in.subspan(2);
  BackwardParams p{};
  p.s = attention_params(forward, o.g, {});
  p.grad = o.grad->as<const float>(), p.y = o.y->as<const float>();
  p.dq = call.out[0].as<float>(), p.dk = p.dq + o.q->elements(), p.dv = p.dk + o.k->elements();
  const int64_t rows = o.g.batch * o.g.kv_heads * o.g.rows;
  const size_t tiles = tile_bytes(o.g);
  p.tiles = call.shared, p.top = reinterpret_cast<float*>(static_cast<char*>(call.shared) + tiles);
  p.total = p.top + rows, p.mean = p.total + rows;
  p.whole = reinterpret_cast<uint32_t*>(p.mean + rows);
  p.plain = o.g.softcap == 0 && !p.s.slopes && !p.s.float_mask;
  const int64_t wide = o.g.d > o.g.dv ? o.g.d : o.g.dv;
  (tiles                   ? launch_gradients<4, false>
   : wide <= kGradTile     ? launch_gradients<1, true>
   : wide <= 2 * kGradTile ? launch_gradients<2, true>
                           : launch_gradients<4, true>)(p, stream);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(attention), INVAR_ROW_OF(attention_backward);
const GpuKernel INVAR_ROW_OF(attention_backward) = {.op = "attention_backward",
                                                    .isa = INVAR_ISA,
                                                    .shared_bytes = INVAR_ISA_NS::backward_shared_bytes,
                                                    .enqueue = INVAR_ISA_NS::enqueue_backward};
const GpuKernel INVAR_ROW_OF(attention) = {.op = "attention",
                                           .isa = INVAR_ISA,
                                           .shared_bytes = INVAR_ISA_NS::shared_bytes,
                                           .state_bytes = INVAR_ISA_NS::state_bytes,
                                           .enqueue = INVAR_ISA_NS::enqueue};

}  // namespace invar::ops
