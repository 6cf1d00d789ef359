// Kernels of cuda.cu files over contiguous elements: 16-byte accesses where the addresses allow them.
#pragma once
#include "ops/launch.h"

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
// light: f is a few instructions, so that loads in flight count.
template <bool light, class R, class Fn, class... Operand>
__global__ void __launch_bounds__(kFlatThreads)
    flat_kernel(int64_t n, bool packs, R* out, Fn f, Operand... from) {
  constexpr int kPack = packed<R, typename Operand::Element...>(), kTurns = light ? 2 : 1;
  constexpr int64_t kStep = kFlatThreads * kPack, kBlock = kStep * kTurns;
  const int64_t base = blockIdx.x * kBlock;
  if (packs && base + kBlock <= n) {
    const int64_t i = base + threadIdx.x * kPack;
    auto store = [=](int64_t at, const auto&... x) {
      Pack<R, kPack> r;
#pragma unroll
      for (int j = 0; j < kPack; ++j) r.v[j] = f(x.v[j]...);
      store_pack(out + at, r);
    };
    auto both = [=](const auto&... x) {
      [=](const auto&... y) {
        store(i, x...);
        store(i + kStep, y...);
      }(from.template pack<kPack>(i + kStep)...);
    };
    if constexpr (light)
      both(from.template pack<kPack>(i)...);
    else
      store(i, from.template pack<kPack>(i)...);
    return;
  }
  constexpr int kUnroll = light ? 4 : 1;
#pragma unroll kUnroll
  for (int j = 0; j < kPack * kTurns; ++j) {
    const int64_t i = base + j * kFlatThreads + threadIdx.x;
    if (i < n) out[i] = f(from.at(i)...);
  }
}
// out[i] = f(from.at(i)...) for i < n.
template <bool light, class R, class Fn, class... Operand>
void flat(Stream stream, int64_t n, R* out, Fn f, Operand... from) {
  constexpr int kPack = packed<R, typename Operand::Element...>();
  const bool packs = is_aligned<kPack>(out) && (from.template packs<kPack>() && ...);
  const int64_t blocks = ceil_div(n, int64_t{kFlatThreads} * kPack * (light ? 2 : 1));
  launch(flat_kernel<light, R, Fn, Operand...>, dim3(static_cast<unsigned>(blocks)), dim3(kFlatThreads), 0,
         stream, n, packs, out, f, from...);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
