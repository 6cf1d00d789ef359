// Kernels of cuda.cu files over contiguous elements: 16-byte accesses where the addresses allow them.
#pragma once
#include "kernels/cuda/launch.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// n neighbouring elements, in as few accesses as there can be.
template <class T, int n>
struct alignas(n * sizeof(T) < 16 ? n * sizeof(T) : 16) Pack {
  T v[n];
};
template <int n, class T>
bool is_aligned(const T* p) {
  return reinterpret_cast<uintptr_t>(p) % alignof(Pack<T, n>) == 0;
}
template <int n, class T>
__device__ Pack<T, n> load_pack(const T* p) {
  return *reinterpret_cast<const Pack<T, n>*>(p);
}
template <class T, int n>
__device__ void store_pack(T* p, const Pack<T, n>& x) {
  *reinterpret_cast<Pack<T, n>*>(p) = x;
}

// How many elements make a pack where they have these types: 16 bytes of the widest, but at least four.
template <class... T>
constexpr int packed() {
  size_t widest = 1;
  ((widest = sizeof(T) > widest ? sizeof(T) : widest), ...);
  return widest > 4 ? 4 : static_cast<int>(16 / widest);
}

// An operand: element i, or the first one for all.
template <class T>
struct Line {
  using Element = T;
  const T* p;
  bool repeats = false;

  __device__ T at(int64_t i) const { return p[repeats ? 0 : i]; }
  template <int n>
  __device__ Pack<T, n> pack(int64_t i) const {
    if (!repeats) return load_pack<n>(p + i);
    Pack<T, n> r;
    for (T& x : r.v) x = *p;
    return r;
  }
  template <int n>
  bool packs() const {
    return repeats || is_aligned<n>(p);
  }
};

constexpr int kFlatThreads = 256;
// out[i] = f(i) for i < n, `turns` elements of this thread of a block's `turns` * kFlatThreads from `base` on. Of `together` at a
// time the loads are in flight before the first result is stored, over which the compiler could not move them.
template <int together, int turns, class R, class Fn>
__device__ void fill_turns(int64_t base, int64_t n, R* out, Fn f) {
#pragma unroll 1
  for (int first = 0; first < turns; first += together) {
    const int64_t begin = base + first * kFlatThreads + threadIdx.x;
    R r[together];
#pragma unroll
    for (int j = 0; j < together; ++j) {
      const int64_t i = begin + j * kFlatThreads;
      r[j] = f(i < n ? i : n - 1);
    }
#pragma unroll
    for (int j = 0; j < together; ++j)
      if (begin + j * kFlatThreads < n) out[begin + j * kFlatThreads] = r[j];
  }
}
template <int turns, class R, class Fn>
__global__ void __launch_bounds__(kFlatThreads) fill_kernel(int64_t n, R* out, Fn f) {
  follow();
  fill_turns<turns, turns>(blockIdx.x * int64_t{kFlatThreads * turns}, n, out, f);
}
// out[i] = f(i) for i < n, a thread several.
template <int turns = 4, class R, class Fn>
void fill(Stream stream, int64_t n, R* out, Fn f) {
  const int64_t blocks = ceil_div(n, kFlatThreads * turns);
  launch_early(fill_kernel<turns, R, Fn>, dim3(static_cast<unsigned>(blocks)), dim3(kFlatThreads), 0, stream,
               n, out, f);
}

// How much f is: light, a few instructions; heavy, so that the loads of a block's next strip are to be in flight while it computes
// one; huge, where compilers would take long for a pack of copies.
enum class Work { light, heavy, huge };
// `turns` strips of a block one after another.
template <Work work, class R, class Fn, class... Operand>
__global__ void __launch_bounds__(kFlatThreads)
    flat_kernel(int64_t n, int turns, bool packs, R* out, Fn f, Operand... from) {
  constexpr int kPack = packed<R, typename Operand::Element...>();
  constexpr int64_t kStep = kFlatThreads * kPack;
  int64_t base = blockIdx.x * kStep * turns;
  follow();
  if constexpr (work != Work::huge) {
    if (packs && base + kStep * turns <= n) {
      int64_t i = base + threadIdx.x * kPack;
      auto walk = [&](auto... x) {
#pragma unroll 1
        for (int t = turns;;) {
          const bool more = --t > 0;
          auto one = [&](auto... next) {
            Pack<R, kPack> r;
#pragma unroll
            for (int j = 0; j < kPack; ++j) r.v[j] = f(x.v[j]...);
            store_pack(out + i, r);
            ((x = next), ...);
          };
          one((more ? from.template pack<kPack>(i + kStep) : x)...);
          if (!more) return;
          i += kStep;
        }
      };
      return walk(from.template pack<kPack>(i)...);
    }
  }
#pragma unroll 1
  for (int t = 0; t < turns; ++t, base += kStep)
    fill_turns<work == Work::light ? kPack : 1, kPack>(base, n, out,
                                                       [&](int64_t i) { return f(from.at(i)...); });
}
// out[i] = f(from.at(i)...) for i < n.
template <Work work, class R, class Fn, class... Operand>
void flat(Stream stream, int64_t n, R* out, Fn f, Operand... from) {
  constexpr int kPack = packed<R, typename Operand::Element...>();
  constexpr int64_t kMany = int64_t{1} << 22;  // enough for blocks that stay a while
  const int turns = work == Work::heavy && n >= kMany ? 4 : 1;
  const bool packs = is_aligned<kPack>(out) && (from.template packs<kPack>() && ...);
  const int64_t blocks = ceil_div(n, int64_t{kFlatThreads} * kPack * turns);
  launch_early(flat_kernel<work, R, Fn, Operand...>, dim3(static_cast<unsigned>(blocks)), dim3(kFlatThreads),
               0, stream, n, turns, packs, out, f, from...);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
