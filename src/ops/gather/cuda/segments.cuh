// Scatters of slices in a fixed order, by counting: updates of the same target get neighbouring
// places in a list, in the order of arrival. Each such segment is then sorted into the order of
// gather.7, and a thread for each pack of columns joins it. Which segment comes first depends on
// timing; the results do not. Beside chains (scatter.cu) no update waits for the address of the
// one before: a token that occurs a thousand times is read at the speed of memory.
#pragma once
#include "kernels/cuda/vectorized_loop.h"
#include "ops/gather/cuda/element_offsets.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// count, of a target: its updates; begin: its segment in the list. place, of an update: its number
// by arrival among those of its target. list: the updates by segments; sorted: in order. crowded:
// an update of each target that has more than kMostRanked, `crowds` of them; taken: places of the
// list that are given away.
struct Segments {
  uint32_t *count, *begin, *place, *list, *sorted, *crowded, *taken, *crowds;
};
constexpr uint32_t kMostRanked = 8192;              // updates of a segment that are ranked against each other
constexpr int kScanThreads = 1024, kJoinAhead = 8;  // loads in flight

inline int64_t most_crowds(int64_t n) {
  return n / kMostRanked + 1;
}
inline size_t segment_bytes(int64_t n, int64_t targets) {
  return static_cast<size_t>(2 * targets + 3 * n + most_crowds(n) + 2) * sizeof(uint32_t);
}
inline Segments segments_in(void* shared, int64_t n, int64_t targets) {
  Segments s;
  s.count = static_cast<uint32_t*>(shared);
  s.taken = s.count + targets, s.crowds = s.taken + 1;  // cleared together
  s.begin = s.crowds + 1, s.place = s.begin + targets;
  s.list = s.place + n, s.sorted = s.list + n, s.crowded = s.sorted + n;
  return s;
}

// Sorts crowded segments: a block scans all updates in order and keeps those of its target.
template <class OffsetOf>
__global__ void __launch_bounds__(kScanThreads)
    scan_crowds_kernel(int64_t n, Segments s, OffsetOf offset_of) {
  __shared__ uint32_t before[kScanThreads / kWarp];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const uint32_t crowds = *s.crowds;
  for (uint32_t c = blockIdx.x; c < crowds; c += gridDim.x) {
    const int64_t target = offset_of(s.crowded[c]);
    uint32_t at = s.begin[target];
    for (int64_t base = 0; base < n; base += kScanThreads) {
      const int64_t i = base + threadIdx.x;
      const bool mine = i < n && offset_of(i) == target;
      const unsigned all = __ballot_sync(kFullWarp, mine);
      if (lane == 0) before[warp] = static_cast<uint32_t>(__popc(all));
      __syncthreads();
      uint32_t to = at;
#pragma unroll
      for (int w = 0; w < kScanThreads / kWarp; ++w) {
        to += w < warp ? before[w] : 0;
        at += before[w];
      }
      if (mine) s.sorted[to + __popc(all & ((1u << lane) - 1))] = static_cast<uint32_t>(i);
      __syncthreads();
    }
  }
}

template <class OffsetOf>
void sort_segments(int64_t n, int64_t targets, const Segments& segments, uint32_t* fault, OffsetOf offset_of,
                   Stream stream) {
  const Segments s = segments;
  cudaMemsetAsync(s.count, 0, static_cast<size_t>(targets + 2) * sizeof(uint32_t), stream);
  launch_for_each(stream, n, [=] __device__(int64_t i) {
    const int64_t at = offset_of(i);
    if (at < 0)
      *fault = 1;
    else
      s.place[i] = atomicAdd(s.count + at, 1u);
  });
  launch_for_each(stream, n, [=] __device__(int64_t i) {
    const int64_t at = offset_of(i);
    if (at < 0 || s.place[i] != 0) return;
    s.begin[at] = atomicAdd(s.taken, s.count[at]);
    if (s.count[at] > kMostRanked) s.crowded[atomicAdd(s.crowds, 1u)] = static_cast<uint32_t>(i);
  });
  launch_for_each(stream, n, [=] __device__(int64_t i) {
    const int64_t at = offset_of(i);
    if (at >= 0) s.list[s.begin[at] + s.place[i]] = static_cast<uint32_t>(i);
  });
  launch_for_each(stream, n, [=] __device__(int64_t q) {
    if (q >= *s.taken) return;
    const uint32_t own = s.list[q];
    const int64_t at = offset_of(own);
    const uint32_t begin = s.begin[at], count = s.count[at];
    if (count > kMostRanked) return;
    uint32_t rank = 0;
#pragma unroll 8
    for (uint32_t j = 0; j < count; ++j) rank += s.list[begin + j] < own;
    s.sorted[begin + rank] = own;
  });
  if (n > kMostRanked)
    launch(scan_crowds_kernel<OffsetOf>, dim3(grid_for(num::min_i64(most_crowds(n), 2 * multiprocessors()))),
           dim3(kScanThreads), 0, stream, n, s, offset_of);
}

template <int pack, ScatterReduction join, class T, class OffsetOf>
void join_updates(const Call& call, int64_t n, int64_t inner, const Segments& segments, OffsetOf offset_of,
                  Stream stream) {
  const Segments s = segments;
  const T* updates = call.in[2].as<const T>();
  T* out = call.out[0].as<T>();
  const int64_t packs = inner / pack;
  const FastDivmod by_packs(packs);
  launch_for_each(stream, n * packs, [=] __device__(int64_t q) {
    const int64_t column = by_packs.remainder(q) * pack;
    if (q >= *s.taken) return;
    const int64_t at = offset_of(s.sorted[q]);
    if (s.begin[at] != q) return;
    const uint32_t* from = s.sorted + q;
    const uint32_t count = s.count[at];
    T* to = out + at * inner + column;
    auto y = load_pack<pack>(to);
    for (uint32_t first = 0; first < count; first += kJoinAhead) {
      Pack<T, pack> x[kJoinAhead];
#pragma unroll
      for (int j = 0; j < kJoinAhead; ++j) {
        const uint32_t k = first + j < count ? from[first + j] : from[first];
        x[j] = load_pack<pack>(updates + k * inner + column);
      }
#pragma unroll
      for (int j = 0; j < kJoinAhead; ++j)
        if (first + j < count)
#pragma unroll
          for (int e = 0; e < pack; ++e) y.v[e] = reduce_update<join>(y.v[e], x[j].v[e]);  // gather.9
    }
    store_pack(to, y);
  });
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
