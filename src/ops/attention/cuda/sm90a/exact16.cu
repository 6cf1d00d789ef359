// The kernels of attention_exact16 for Hopper.
#include "ops/attention/cuda/exact16/decode_cluster_hopper.cuh"
#include "ops/attention/cuda/exact16/decode_hopper.cuh"
#include "ops/attention/cuda/exact16/launch_hopper.h"
#include "ops/attention/cuda/exact16/prefill_hopper.cuh"

namespace invar::ops::INVAR_ISA_NS {

template <int kSteps, int kParts>
static void enqueue_of(const AttentionParams& s, Stream stream) {
  const int64_t heads = s.g.batch * s.g.kv_heads, tiles = ceil_div(s.g.rows, kHopperGroups * kHopperRows);
  launch_dependent(exact_prefill_hopper_kernel<kSteps, kParts>, dim3(grid_for(heads * tiles)),
                   dim3(kHopperThreads), kHopperShared<kParts>, stream, s, static_cast<int>(heads),
                   static_cast<int>(tiles));
}
void enqueue_exact_prefill_hopper(const AttentionParams& s, Stream stream) {
  if (s.g.d <= 64 && s.g.dv <= 64) return enqueue_of<2, 1>(s, stream);
  enqueue_of<4, 2>(s, stream);
}

template <int kTiles, bool kWhole>
static void enqueue_decode(const AttentionParams& s, int64_t units, Stream stream) {
  const int64_t most = kDecodeHopperBlocks<kTiles, kWhole> * int64_t{multiprocessors()};
  launch_dependent(exact_decode_hopper_kernel<kTiles, kWhole>,
                   dim3(grid_for(kWhole || units < most ? units : most)), dim3(kDecodeThreads),
                   kDecodeHopperShared<kTiles, kWhole>, stream, s);
}
// Clusters of 2 to 8 thread blocks, and whether each of these has a multiprocessor: registers then
// hold all, and key blocks come two ahead.
struct Clusters {
  int64_t count;
  int size;
  bool alone;
};
template <int kStages>
static size_t cluster_shared(const Geometry& g, int size) {
  const int64_t units = num::min_i64(g.rows, kSideRows) * ceil_div(g.dv, kWarp);
  return sizeof(ExactClusterSmem<kStages>) +
         static_cast<size_t>(ceil_div(units, size) * g.seen) * sizeof(BlockResult);
}
static bool fits_shared(size_t bytes) {
  return bytes <= static_cast<size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
}
static Clusters clusters_of(const Geometry& g) {
  Clusters c{g.batch * g.kv_heads * ceil_div(g.rows, kSideRows), 8, false};
  while (c.size > 2 && (c.count * c.size > multiprocessors() || c.size >= 2 * g.seen)) c.size /= 2;
  // Clusters of more than 2 do not reach every multiprocessor.
  c.alone = c.count * c.size <= multiprocessors() / (c.size == 2 ? 1 : 2) &&
            fits_shared(cluster_shared<2>(g, c.size));
  return c;
}
// Measured on an H200, in us: 3 and 3 for each key block of a thread block, or 6 and 4.5; otherwise
// 9 and 1/46 for each key block of all.
ClusterChoice choose_exact_cluster(const Geometry& g) {
  const Clusters c = clusters_of(g);
  const int64_t each = ceil_div(g.seen, c.size);
  return {g.batch <= UINT16_MAX && g.kv_heads <= UINT16_MAX && fits_shared(cluster_shared<1>(g, c.size)),
          c.count <= multiprocessors() &&
              (c.alone ? 6 * (1 + each) : 12 + 9 * each) <= 18 + c.count * g.seen / 23};
}
template <int kStages>
static void enqueue_cluster(const AttentionParams& s, int size, Stream stream) {
  const Geometry& g = s.g;
  launch_clusters(exact_decode_cluster_kernel<kStages>, static_cast<unsigned>(size),
                  dim3(static_cast<unsigned>(ceil_div(g.rows, kSideRows) * size),
                       static_cast<unsigned>(g.kv_heads), static_cast<unsigned>(g.batch)),
                  dim3(kClusterThreads), cluster_shared<kStages>(g, size), stream, s);
}
void enqueue_exact_decode_cluster(const AttentionParams& s, Stream stream) {
  const Clusters c = clusters_of(s.g);
  (c.alone ? enqueue_cluster<2> : enqueue_cluster<1>)(s, c.size, stream);
}

template <int kTiles>
static bool enqueue_decode_of(const AttentionParams& s, Stream stream) {
  const int64_t groups = s.g.batch * s.g.kv_heads * ceil_div(s.g.rows, kTiles * kSideRows);
  // Few key blocks of many groups: a thread block takes all of a group.
  const bool whole = groups >= multiprocessors() && s.g.seen <= 4;
  if (whole)
    enqueue_decode<kTiles, true>(s, groups, stream);
  else
    enqueue_decode<kTiles, false>(s, groups * s.g.seen, stream);
  return whole;
}
bool enqueue_exact_decode_hopper(const AttentionParams& s, Stream stream) {
  return s.g.rows <= kSideRows ? enqueue_decode_of<1>(s, stream) : enqueue_decode_of<2>(s, stream);
}

}  // namespace invar::ops::INVAR_ISA_NS
