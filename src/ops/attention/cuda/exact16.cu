// attention_exact16 of a GPU (spec/attention-exact16.md) and its choice of kernels.
#include "kernels/cuda/hopper.cuh"
#include "kernels/forced_route.h"
#include "ops/attention/cuda/exact16/append.cuh"
#include "ops/attention/cuda/exact16/decode_mma.cuh"
#include "ops/attention/cuda/exact16/launch_hopper.h"
#include "ops/attention/cuda/exact16/prefill_mma.cuh"
#include "ops/attention/cuda/exact16/row_per_warp.cuh"
#include "ops/attention/cuda/split_kv.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

size_t state_bytes_exact16(const Call& call, int64_t capacity) {
  const Geometry g = attention::geometry(call);
  const int64_t blocks = ceil_div(capacity > g.keys ? capacity : g.keys, kBlock);
  return static_cast<size_t>(g.kv_heads * blocks * ExactLayout(g).block());
}

constexpr int64_t kFewExactRows = 16;
constexpr int kExactTileWarps = 8;
using WideDecodeSmem = ExactDecodeSmem<2 * kDecodeSteps, 2 * kDecodeColumns>;
// The kernels of a call. Its result's bits do not depend on them. The order of Route is that of the
// forced routes of tests.
enum class ExactRoute {
  automatic,
  row_per_warp,
  tiles,
  decode,
  tiles_hopper,
  decode_hopper,
  decode_cluster,
  count
};
bool is_narrow(const Geometry& g) {
  return g.d <= kDecodeSteps * kMmaKeys && g.dv <= kDecodeColumns;
}
ExactRoute exact_route(const Geometry& g) {
  const auto route = static_cast<ExactRoute>(variant() % static_cast<int>(ExactRoute::count));
  const auto fits = [](size_t shared) {
    return shared <= static_cast<size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  };
  if (device_attribute(cudaDevAttrComputeCapabilityMajor) < 8 || g.d > 256) return ExactRoute::row_per_warp;
  const bool narrow = is_narrow(g);
  const bool decodes = route == ExactRoute::automatic
                           ? g.rows <= kFewExactRows
                           : route == ExactRoute::decode || route > ExactRoute::tiles_hopper;
  if (!narrow && decodes && g.dv <= 2 * kDecodeColumns && fits(sizeof(WideDecodeSmem)))
    return ExactRoute::decode;
  if (!fits(g.d > 128 ? sizeof(ExactPrefillSmem<8, 64, kExactTileWarps>)
                      : sizeof(ExactPrefillSmem<4, 128, kExactTileWarps>)))
    return ExactRoute::row_per_warp;
  const bool hopper = has_hopper() && narrow && g.seen * kBlock <= INT32_MAX;
  const ExactRoute tiles = hopper && g.plain_scores ? ExactRoute::tiles_hopper : ExactRoute::tiles;
  ExactRoute decode = hopper && g.rows <= kFewExactRows ? ExactRoute::decode_hopper : ExactRoute::decode;
#ifdef INVAR_SM90A
  if (decode == ExactRoute::decode_hopper && route != decode) {
    const ClusterChoice cluster = choose_exact_cluster(g);
    if (cluster.fits && (cluster.quicker || route == ExactRoute::decode_cluster))
      decode = ExactRoute::decode_cluster;
  }
#endif
  switch (route) {
    case ExactRoute::row_per_warp: return route;
    case ExactRoute::tiles: return route;
    case ExactRoute::decode: return narrow ? route : ExactRoute::tiles;  // too little shared memory
    case ExactRoute::tiles_hopper: return tiles;
    case ExactRoute::decode_hopper:
    case ExactRoute::decode_cluster: return narrow ? decode : tiles;
    default: return narrow && g.rows <= kFewExactRows ? decode : tiles;
  }
}
// Partial results of key blocks, and their maxima and sums.
int64_t exact_partials(const Geometry& g) {
  const ExactRoute route = exact_route(g);
  const bool split = route == ExactRoute::decode || route == ExactRoute::decode_hopper;
  return split ? g.batch * g.kv_heads * g.rows * g.seen : 0;
}
size_t shared_bytes_exact16(const Call& call) {
  const Geometry g = attention::geometry(call);
  return static_cast<size_t>(exact_partials(g) * (g.dv_padded + 2)) * sizeof(float);
}

template <int kSteps, int kColumns, int kWarps>
void launch_exact_prefill(const AttentionParams& s, Stream stream) {
  const int64_t tiles = ceil_div(s.g.rows, kWarps * kMmaRows);
  launch_dependent(exact_prefill_kernel<kSteps, kColumns, kWarps>,
                   dim3(static_cast<unsigned>(s.g.batch * s.g.kv_heads * tiles),
                        static_cast<unsigned>(ceil_div(s.g.dv, kColumns))),
                   dim3(kWarps * kWarp), sizeof(ExactPrefillSmem<kSteps, kColumns, kWarps>), stream, s,
                   static_cast<int>(tiles));
}
void launch_exact_append_blocks(const AttentionParams& s, Stream stream) {
  const int64_t blocks = ceil_div(s.g.keys, kBlock) + 1;
  launch_dependent(exact_append_blocks_kernel,
                   dim3(static_cast<unsigned>(s.g.batch * s.g.kv_heads * blocks), 2),
                   dim3(kBlockAppendThreads), 0, stream, s, static_cast<int>(blocks));
}
template <int kSteps, int kColumns>
void launch_exact_decode(const AttentionParams& s, int blocks, Stream stream) {
  const Geometry& g = s.g;
  const int64_t units = g.batch * g.kv_heads * ceil_div(g.rows, kMmaRows) * g.seen;
  launch_dependent(exact_decode_kernel<kSteps, kColumns>,
                   dim3(static_cast<unsigned>(num::min_i64(units, blocks * multiprocessors()))),
                   dim3(kDecodeThreads), sizeof(ExactDecodeSmem<kSteps, kColumns>), stream, s);
}
void launch_exact_decode(const AttentionParams& s, Stream stream) {
  if (is_narrow(s.g)) return launch_exact_decode<kDecodeSteps, kDecodeColumns>(s, kDecodeBlocks, stream);
  launch_exact_decode<2 * kDecodeSteps, 2 * kDecodeColumns>(s, 1, stream);
}
void enqueue_exact16(const Call& call, Stream stream) {
  const Geometry g = attention::geometry(call);
  AttentionParams s = attention_params(call, g);
  s.partials = static_cast<float*>(call.shared), s.max_sums = s.partials + exact_partials(g) * g.dv_padded;
  const int64_t heads = g.batch * g.kv_heads;
  const ExactRoute route = exact_route(g);
  if (g.keys >= kFewExactKeys)
    launch_exact_append_blocks(s, stream);
  else if (heads * g.keys && (heads * g.rows == 0 ||
                              (route != ExactRoute::decode_hopper && route != ExactRoute::decode_cluster)))
    launch_dependent(exact_append_kernel,
                     dim3(grid_for(ceil_div(2 * heads * g.keys, kExactAppendThreads / kWarp))),
                     dim3(kExactAppendThreads), 0, stream, s);
  if (heads * g.rows == 0) return;
  switch (route) {
    case ExactRoute::row_per_warp:
      return launch_dependent(exact_rows_kernel,
                              dim3(grid_for(ceil_div(heads * g.rows, kExactRowThreads / kWarp))),
                              dim3(kExactRowThreads), 0, stream, s);
    case ExactRoute::decode: launch_exact_decode(s, stream); return launch_combine_splits(s, stream);
#ifdef INVAR_SM90A
    case ExactRoute::decode_hopper:
      if (!enqueue_exact_decode_hopper(s, stream)) launch_combine_splits(s, stream);
      return;
    case ExactRoute::decode_cluster: return enqueue_exact_decode_cluster(s, stream);
    case ExactRoute::tiles_hopper: return enqueue_exact_prefill_hopper(s, stream);
#endif
    default:
      return (g.d > 128 ? launch_exact_prefill<8, 64, kExactTileWarps>
                        : launch_exact_prefill<4, 128, kExactTileWarps>)(s, stream);
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(attention_exact16);
const GpuKernel INVAR_ROW_OF(attention_exact16) = {.op = "attention_exact16",
                                                   .isa = INVAR_ISA,
                                                   .shared_bytes = INVAR_ISA_NS::shared_bytes_exact16,
                                                   .state_bytes = INVAR_ISA_NS::state_bytes_exact16,
                                                   .enqueue = INVAR_ISA_NS::enqueue_exact16};

}  // namespace invar::ops
