// Scatters in a fixed order: updates of the same target are linked into a chain in arrival order.
// Each chain is then sorted into the order of gather.7, and one thread for each pack of columns
// applies it. Which update leads a chain depends on timing; the results do not. Long slices go by
// segments instead (segments.cuh).
#include "kernels/cuda/vectorized_loop.h"
#include "kernels/forced_route.h"
#include "num/contract/schedule.h"
#include "ops/gather/cuda/segments.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// Linked chains of updates, numbered from 1 on; 0 is none. leader, of a target: the update that
// leads its chain. next, of an update: the one after it. first, of a leader: the first update of
// the sorted chain. If only the last update counts, the leader is the last one, and there is
// nothing to sort.
template <class Link>
struct Chains {
  Link *leader, *next, *first;
};

// The updates of a call: n of them, each of `inner` elements, for `targets` targets.
struct Updates {
  int64_t n, inner, targets;
  bool last;
  // Slices that are worth several more passes over their indices: an embedding's gradient took 0.7
  // of its time by chains with distinct tokens, 0.15 with those of a text (H100).
  bool by_segments() const {
    constexpr int64_t kLong = 32;
    return variant() == 0 && !last && inner >= kLong && n <= INT32_MAX && targets <= INT32_MAX;
  }
  size_t link_bytes() const {
    return variant() == 1 || n >= UINT32_MAX || targets > UINT32_MAX ? sizeof(uint64_t) : sizeof(uint32_t);
  }
  size_t bytes() const {
    if (by_segments()) return segment_bytes(n, targets);
    return static_cast<size_t>(targets + (last ? 0 : 2 * n)) * link_bytes();
  }
};
bool keeps_last(const Call& call) {
  return static_cast<ScatterReduction>(ScatterNdAttributes(call).reduction) == ScatterReduction::none;
}
Updates element_updates(const Call& call) {
  return {call.in[1].elements(), 1, call.out[0].elements(), keeps_last(call)};
}
Updates slice_updates(const Call& call) {
  const IndexTuples t = index_tuples(call.in[0], call.in[1], 0);
  return {t.count, t.inner, t.slices, keeps_last(call)};
}

// Makes x the leader and returns the previous one.
__device__ inline uint32_t lead(uint32_t* leader, uint32_t x) {
  return atomicExch(leader, x);
}
__device__ inline uint64_t lead(uint64_t* leader, uint64_t x) {
  return atomicExch(reinterpret_cast<unsigned long long*>(leader), x);
}
__device__ inline void raise(uint32_t* at, uint32_t x) {
  atomicMax(at, x);
}
__device__ inline void raise(uint64_t* at, uint64_t x) {
  atomicMax(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(x));
}

template <ScatterReduction join, class Link>
__device__ void link(const Chains<Link>& c, int64_t at, int64_t i) {
  const auto number = static_cast<Link>(i + 1);
  if constexpr (join == ScatterReduction::none)
    raise(c.leader + at, number);
  else
    c.next[i] = lead(c.leader + at, number);
}

constexpr int kSortThreads = 256;
constexpr int kThreadSort = 8;           // updates that a thread sorts
constexpr size_t kWarpSortBytes = 4096;  // of updates that a warp sorts in shared memory
constexpr int kWarps = kSortThreads / kWarp;

// One thread sorts the chain of `leader`, unless it is longer than kThreadSort; returns whether it
// did.
template <class Link>
__device__ bool sort_by_thread(const Chains<Link>& c, Link leader) {
  Link own[kThreadSort];
#pragma unroll
  for (Link& x : own) x = 0;
  Link at = leader;
  for (int k = 0; at && k < kThreadSort; ++k, at = c.next[at - 1]) {
    Link moved = at;
#pragma unroll
    for (Link& x : own)  // the smallest first, zeros behind
      if (x == 0 || moved < x) {
        const Link larger = x;
        x = moved, moved = larger;
      }
  }
  if (at) return false;
  c.first[leader - 1] = own[0];
#pragma unroll
  for (int k = 0; k < kThreadSort; ++k)
    if (own[k]) c.next[own[k] - 1] = k + 1 < kThreadSort ? own[k + 1] : 0;
  return true;
}
// The same by a warp, up to the size of its shared memory `scratch`.
template <class Link>
__device__ bool sort_by_warp(const Chains<Link>& c, Link leader, Link* scratch) {
  constexpr int kMax = kWarpSortBytes / sizeof(Link);
  const int lane = threadIdx.x % kWarp;
  int count = 0;
  if (lane == 0) {
    Link at = leader;
    for (; at && count < kMax; at = c.next[at - 1]) scratch[count++] = at;
    if (at) count = kMax + 1;
  }
  __syncwarp();
  count = __shfl_sync(kFullWarp, count, 0);
  if (count > kMax) return false;
  for (int k = lane; k < count; k += kWarp) {
    const Link x = scratch[k];
    Link after = 0;
    bool least = true;
    for (int j = 0; j < count; ++j) {
      const Link y = scratch[j];
      if (y > x && (after == 0 || y < after)) after = y;
      least = least && y >= x;
    }
    c.next[x - 1] = after;
    if (least) c.first[leader - 1] = x;
  }
  __syncwarp();  // before scratch is reused
  return true;
}
// The same by a warp that scans all updates, for any length.
template <class Link, class OffsetOf>
__device__ void sort_by_scan(const Chains<Link>& c, Link leader, int64_t at, int64_t n,
                             const OffsetOf& offset_of) {
  const int lane = threadIdx.x % kWarp;
  Link last = 0;
  for (int64_t base = 0; base < n; base += kWarp) {
    const bool mine = base + lane < n && offset_of(base + lane) == at;
    const unsigned all = __ballot_sync(kFullWarp, mine), below = all & ((1u << lane) - 1);
    const Link before = below ? static_cast<Link>(base + kWarp - __clz(below)) : last;
    const auto number = static_cast<Link>(base + lane + 1);
    if (mine) (before ? c.next[before - 1] : c.first[leader - 1]) = number;
    if (all) last = static_cast<Link>(base + kWarp - __clz(all));
  }
  if (lane == 0) c.next[last - 1] = 0;
}
template <class Link, class OffsetOf>
__global__ void __launch_bounds__(kSortThreads)
    sort_chains_kernel(int64_t n, Chains<Link> c, OffsetOf offset_of) {
  __shared__ Link scratch[kWarps][kWarpSortBytes / sizeof(Link)];
  trigger_and_wait();
  const int64_t i = blockIdx.x * int64_t{kSortThreads} + threadIdx.x, at = i < n ? offset_of(i) : -1;
  const auto number = static_cast<Link>(i + 1);
  const bool left = at >= 0 && c.leader[at] == number && !sort_by_thread(c, number);
  for (unsigned rest = __ballot_sync(kFullWarp, left); rest; rest &= rest - 1) {
    const int lane = __ffs(rest) - 1;
    const Link leader = __shfl_sync(kFullWarp, number, lane);
    const int64_t target = __shfl_sync(kFullWarp, at, lane);
    if (!sort_by_warp(c, leader, scratch[threadIdx.x / kWarp])) sort_by_scan(c, leader, target, n, offset_of);
  }
}

template <int pack, ScatterReduction join, class T, class Link, class OffsetOf>
void join_chains(const Call& call, Stream stream, const Updates& u, Chains<Link> c, OffsetOf offset_of) {
  const T* updates = call.in[2].as<const T>();
  T* out = call.out[0].as<T>();
  const int64_t inner = u.inner, packs = inner / pack;
  const FastDivmod by_packs(packs);
  launch_for_each(stream, u.n * packs, [=] __device__(int64_t t) {
    const int64_t column = by_packs.remainder(t) * pack, at = offset_of(t);
    if (at < 0 || c.leader[at] != static_cast<Link>(t + 1)) return;
    T* to = out + at * inner + column;
    auto y = load_pack<pack>(to);
    for (Link k = join == ScatterReduction::none ? c.leader[at] : c.first[t]; k;) {
      const auto x = load_pack<pack>(updates + (k - 1) * inner + column);
      k = join == ScatterReduction::none ? 0 : c.next[k - 1];
#pragma unroll
      for (int j = 0; j < pack; ++j) y.v[j] = reduce_update<join>(y.v[j], x.v[j]);
    }
    store_pack(to, y);
  });
}

template <ScatterReduction join, class T, class Link, class OffsetOf>
void scatter_by(const Call& call, Stream stream, const Updates& u, OffsetOf offset_of) {
  const auto targets = static_cast<size_t>(u.targets);
  Link* const leader = static_cast<Link*>(call.shared);
  const Chains<Link> c{leader, leader + targets, leader + targets + u.n};
  if (targets) cudaMemsetAsync(leader, 0, targets * sizeof(Link), stream);
  uint32_t* fault = call.gpu.fault;
  launch_for_each(stream, u.n, [=] __device__(int64_t i) {
    const int64_t at = offset_of(i);
    if (at < 0)
      *fault = 1;
    else
      link<join>(c, at, i);
  });
  if constexpr (join != ScatterReduction::none)
    launch_dependent(sort_chains_kernel<Link, OffsetOf>,
                     dim3(static_cast<unsigned>(ceil_div(u.n, kSortThreads))), dim3(kSortThreads), 0, stream,
                     u.n, c, offset_of);
  constexpr int kPack = 16 / sizeof(T);
  if (u.inner % kPack == 0 && is_aligned<kPack>(call.in[2].as<const T>()) &&
      is_aligned<kPack>(call.out[0].as<T>()))
    join_chains<kPack, join, T>(call, stream, u, c, offset_of);
  else
    join_chains<1, join, T>(call, stream, u, c, offset_of);
}

template <ScatterReduction join, class T, class OffsetOf>
void scatter_segments(const Call& call, Stream stream, const Updates& u, OffsetOf offset_of) {
  const Segments s = segments_in(call.shared, u.n, u.targets);
  sort_segments(u.n, u.targets, s, call.gpu.fault, offset_of, stream);
  constexpr int kPack = 16 / sizeof(T);
  if (u.inner % kPack == 0 && is_aligned<kPack>(call.in[2].as<const T>()) &&
      is_aligned<kPack>(call.out[0].as<T>()))
    join_updates<kPack, join, T>(call, u.n, u.inner, s, offset_of, stream);
  else
    join_updates<1, join, T>(call, u.n, u.inner, s, offset_of, stream);
}

template <class OffsetOf>
void scatter(const Call& call, Stream stream, const Updates& u, OffsetOf offset_of) {
  const size_t bytes = static_cast<size_t>(call.out[0].elements()) * size_of(call.out[0].dtype);
  if (bytes) cudaMemcpyAsync(call.out[0].data, call.in[0].data, bytes, cudaMemcpyDeviceToDevice, stream);
  with_reduction(ScatterNdAttributes(call).reduction, call.out[0].dtype, [&](auto zero, auto how) {
    constexpr ScatterReduction join = decltype(how)::value;
    using T = decltype(zero);
    if constexpr (join != ScatterReduction::none)
      if (u.by_segments()) return scatter_segments<join, T>(call, stream, u, offset_of);
    if (u.link_bytes() == sizeof(uint32_t))
      scatter_by<join, T, uint32_t>(call, stream, u, offset_of);
    else
      scatter_by<join, T, uint64_t>(call, stream, u, offset_of);
  });
}
void scatter_elements(const Call& call, Stream stream) {
  scatter(call, stream, element_updates(call),
          ElementOffsets(call.in[0], call.in[1], ScatterElementsAttributes(call).axis));
}
void scatter_nd(const Call& call, Stream stream) {
  const IndexTuples t = index_tuples(call.in[0], call.in[1], 0);
  const int64_t* index = call.in[1].as<const int64_t>();
  scatter(call, stream, slice_updates(call),
          [=] __device__(int64_t i) { return slice_of(t, index + i * t.width); });
}
size_t element_bytes(const Call& call) {
  return element_updates(call).bytes();
}
size_t slice_bytes(const Call& call) {
  return slice_updates(call).bytes();
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(scatter_elements), INVAR_ROW_OF(scatter_nd);
const GpuKernel INVAR_ROW_OF(scatter_elements) = {.op = "scatter_elements",
                                                  .isa = INVAR_ISA,
                                                  .shared_bytes = INVAR_ISA_NS::element_bytes,
                                                  .enqueue = INVAR_ISA_NS::scatter_elements};
const GpuKernel INVAR_ROW_OF(scatter_nd) = {.op = "scatter_nd",
                                            .isa = INVAR_ISA,
                                            .shared_bytes = INVAR_ISA_NS::slice_bytes,
                                            .enqueue = INVAR_ISA_NS::scatter_nd};

}  // namespace invar::ops
