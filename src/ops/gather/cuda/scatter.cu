// Scatters: updates that name one place are linked as they come, each such chain is then put into the order of gather.7, and joined
// along it by a thread for each pack of columns. Which update leads a chain depends on which came first, its results do not.
#include "kernels/cuda/vectorized_loop.h"
#include "ops/gather/cuda/element_offsets.cuh"
#include "kernels/forced_route.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// Chains of updates, which are numbered from 1 on; 0 is none. Of a place: the update that leads its chain. Of an update: the
// one after it, and, if it leads, the one with which the chain begins once it is in order. When the last update stays, the
// leader is the last one, and there is nothing to put in order.
template <class Link>
struct Chains {
  Link *leader, *next, *first;
};

// The updates of a call: n of them of `inner` elements, for `places` places.
struct Updates {
  int64_t n, inner, places;
  bool last;
  size_t link_bytes() const {
    return variant() == 1 || n >= UINT32_MAX || places > UINT32_MAX ? sizeof(uint64_t) : sizeof(uint32_t);
  }
  size_t bytes() const { return static_cast<size_t>(places + (last ? 0 : 2 * n)) * link_bytes(); }
};
bool last_stays(const Call& call) {
  return static_cast<Join>(attr_i(call, "reduction", 0)) == Join::none;
}
Updates element_updates(const Call& call) {
  return {call.in[1].elements(), 1, call.out[0].elements(), last_stays(call)};
}
Updates slice_updates(const Call& call) {
  const Tuples t = tuples_of(call.in[0], call.in[1], 0);
  return {t.count, t.inner, t.slices, last_stays(call)};
}

// x leads now; the one that led is returned.
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

template <Join join, class Link>
__device__ void link(const Chains<Link>& c, int64_t at, int64_t i) {
  const auto number = static_cast<Link>(i + 1);
  if constexpr (join == Join::none)
    raise(c.leader + at, number);
  else
    c.next[i] = lead(c.leader + at, number);
}

constexpr int kOrderThreads = 256;
constexpr int kFew = 8;              // a thread sorts
constexpr size_t kManyBytes = 4096;  // a warp sorts, in shared memory
constexpr int kWarps = kOrderThreads / kWarp;

// By one thread: whether the chain that `leader` leads was short enough.
template <class Link>
__device__ bool order_few(const Chains<Link>& c, Link leader) {
  Link own[kFew];
#pragma unroll
  for (Link& x : own) x = 0;
  Link at = leader;
  for (int k = 0; at && k < kFew; ++k, at = c.next[at - 1]) {
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
  for (int k = 0; k < kFew; ++k)
    if (own[k]) c.next[own[k] - 1] = k + 1 < kFew ? own[k + 1] : 0;
  return true;
}
// By a warp, `kept` its memory: the same.
template <class Link>
__device__ bool order_many(const Chains<Link>& c, Link leader, Link* kept) {
  constexpr int kMost = kManyBytes / sizeof(Link);
  const int lane = threadIdx.x % kWarp;
  int count = 0;
  if (lane == 0) {
    Link at = leader;
    for (; at && count < kMost; at = c.next[at - 1]) kept[count++] = at;
    if (at) count = kMost + 1;
  }
  __syncwarp();
  count = __shfl_sync(kAllLanes, count, 0);
  if (count > kMost) return false;
  for (int k = lane; k < count; k += kWarp) {
    const Link x = kept[k];
    Link after = 0;
    bool least = true;
    for (int j = 0; j < count; ++j) {
      const Link y = kept[j];
      if (y > x && (after == 0 || y < after)) after = y;
      least = least && y >= x;
    }
    c.next[x - 1] = after;
    if (least) c.first[leader - 1] = x;
  }
  __syncwarp();  // kept is read
  return true;
}
// By a warp that looks at all updates.
template <class Link, class Place>
__device__ void order_all(const Chains<Link>& c, Link leader, int64_t at, int64_t n, const Place& place) {
  const int lane = threadIdx.x % kWarp;
  Link last = 0;
  for (int64_t base = 0; base < n; base += kWarp) {
    const bool mine = base + lane < n && place(base + lane) == at;
    const unsigned all = __ballot_sync(kAllLanes, mine), below = all & ((1u << lane) - 1);
    const Link before = below ? static_cast<Link>(base + kWarp - __clz(below)) : last;
    const auto number = static_cast<Link>(base + lane + 1);
    if (mine) (before ? c.next[before - 1] : c.first[leader - 1]) = number;
    if (all) last = static_cast<Link>(base + kWarp - __clz(all));
  }
  if (lane == 0) c.next[last - 1] = 0;
}
template <class Link, class Place>
__global__ void __launch_bounds__(kOrderThreads) order_kernel(int64_t n, Chains<Link> c, Place place) {
  __shared__ Link kept[kWarps][kManyBytes / sizeof(Link)];
  follow();
  const int64_t i = blockIdx.x * int64_t{kOrderThreads} + threadIdx.x, at = i < n ? place(i) : -1;
  const auto number = static_cast<Link>(i + 1);
  const bool left = at >= 0 && c.leader[at] == number && !order_few(c, number);
  for (unsigned rest = __ballot_sync(kAllLanes, left); rest; rest &= rest - 1) {
    const int lane = __ffs(rest) - 1;
    const Link leader = __shfl_sync(kAllLanes, number, lane);
    const int64_t there = __shfl_sync(kAllLanes, at, lane);
    if (!order_many(c, leader, kept[threadIdx.x / kWarp])) order_all(c, leader, there, n, place);
  }
}

template <int pack, Join join, class T, class Link, class Place>
void join_chains(const Call& call, Stream stream, const Updates& u, Chains<Link> c, Place place) {
  const T* updates = call.in[2].as<const T>();
  T* out = call.out[0].as<T>();
  const int64_t inner = u.inner, packs = inner / pack;
  const Divisor by_packs(packs);
  each(stream, u.n * packs, [=] __device__(int64_t t) {
    const int64_t column = by_packs.remainder(t) * pack, at = place(t);
    if (at < 0 || c.leader[at] != static_cast<Link>(t + 1)) return;
    T* to = out + at * inner + column;
    auto y = load_pack<pack>(to);
    for (Link k = join == Join::none ? c.leader[at] : c.first[t]; k;) {
      const auto x = load_pack<pack>(updates + (k - 1) * inner + column);
      k = join == Join::none ? 0 : c.next[k - 1];
#pragma unroll
      for (int j = 0; j < pack; ++j) y.v[j] = joined<join>(y.v[j], x.v[j]);
    }
    store_pack(to, y);
  });
}

template <Join join, class T, class Link, class Place>
void scatter_by(const Call& call, Stream stream, const Updates& u, Place place) {
  const auto places = static_cast<size_t>(u.places);
  Link* const leader = static_cast<Link*>(call.shared);
  const Chains<Link> c{leader, leader + places, leader + places + u.n};
  if (places) cudaMemsetAsync(leader, 0, places * sizeof(Link), stream);
  uint32_t* fault = call.fault;
  each(stream, u.n, [=] __device__(int64_t i) {
    const int64_t at = place(i);
    if (at < 0)
      *fault = 1;
    else
      link<join>(c, at, i);
  });
  if constexpr (join != Join::none)
    launch_early(order_kernel<Link, Place>, dim3(static_cast<unsigned>(ceil_div(u.n, kOrderThreads))),
                 dim3(kOrderThreads), 0, stream, u.n, c, place);
  constexpr int kPack = 16 / sizeof(T);
  if (u.inner % kPack == 0 && is_aligned<kPack>(call.in[2].as<const T>()) &&
      is_aligned<kPack>(call.out[0].as<T>()))
    join_chains<kPack, join, T>(call, stream, u, c, place);
  else
    join_chains<1, join, T>(call, stream, u, c, place);
}

template <class Place>
void scatter(const Call& call, Stream stream, const Updates& u, Place place) {
  const size_t bytes = static_cast<size_t>(call.out[0].elements()) * size_of(call.out[0].dtype);
  if (bytes) cudaMemcpyAsync(call.out[0].data, call.in[0].data, bytes, cudaMemcpyDeviceToDevice, stream);
  with_join(attr_i(call, "reduction", 0), call.out[0].dtype, [&](auto zero, auto how) {
    constexpr Join join = decltype(how)::value;
    using T = decltype(zero);
    if (u.link_bytes() == sizeof(uint32_t))
      scatter_by<join, T, uint32_t>(call, stream, u, place);
    else
      scatter_by<join, T, uint64_t>(call, stream, u, place);
  });
}
void scatter_elements(const Call& call, Stream stream) {
  scatter(call, stream, element_updates(call),
          ElementPlaces(call.in[0], call.in[1], attr_i(call, "axis", 0)));
}
void scatter_nd(const Call& call, Stream stream) {
  const Tuples t = tuples_of(call.in[0], call.in[1], 0);
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

extern const Kernel INVAR_ROW_OF(scatter_elements), INVAR_ROW_OF(scatter_nd);
const Kernel INVAR_ROW_OF(scatter_elements) = {.op = "scatter_elements",
                                               .isa = INVAR_ISA,
                                               .shared_bytes = INVAR_ISA_NS::element_bytes,
                                               .enqueue = INVAR_ISA_NS::scatter_elements};
const Kernel INVAR_ROW_OF(scatter_nd) = {.op = "scatter_nd",
                                         .isa = INVAR_ISA,
                                         .shared_bytes = INVAR_ISA_NS::slice_bytes,
                                         .enqueue = INVAR_ISA_NS::scatter_nd};

}  // namespace invar::ops
