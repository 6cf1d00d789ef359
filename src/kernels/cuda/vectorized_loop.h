// Elementwise kernels over contiguous operands: 16-byte accesses if the addresses allow them.
#pragma once
#include "kernels/cuda/launch.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// n neighbouring elements, loaded and stored in as few accesses as possible.
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

// The elements of a pack for operands of these types: 16 bytes of the widest, but at least four.
template <class... T>
constexpr int pack_size() {
  size_t widest = 1;
  ((widest = sizeof(T) > widest ? sizeof(T) : widest), ...);
  return widest > 4 ? 4 : static_cast<int>(16 / widest);
}

// An operand: element i, or, if it broadcasts, the first one for all.
template <class T>
struct ContiguousOperand {
  using Element = T;
  const T* p;
  bool broadcasts = false;

  __device__ T at(int64_t i) const { return p[broadcasts ? 0 : i]; }
  template <int n>
  __device__ Pack<T, n> pack(int64_t i) const {
    if (!broadcasts) return load_pack<n>(p + i);
    Pack<T, n> r;
    for (T& x : r.v) x = *p;
    return r;
  }
  template <int n>
  bool packs() const {
    return broadcasts || is_aligned<n>(p);
  }
};

constexpr int kElementwiseThreads = 256;
// out[i] = f(i) for i < n, from `base` on: `strips` strips of a block, one element a thread in
// each. `in_flight` loads are issued before the first result is stored, because the compiler does
// not move loads over stores.
template <int in_flight, int strips, class R, class Fn>
__device__ void generate_strips(int64_t base, int64_t n, R* out, Fn f) {
#pragma unroll 1
  for (int first = 0; first < strips; first += in_flight) {
    const int64_t begin = base + first * kElementwiseThreads + threadIdx.x;
    R r[in_flight];
#pragma unroll
    for (int j = 0; j < in_flight; ++j) {
      const int64_t i = begin + j * kElementwiseThreads;
      r[j] = f(i < n ? i : n - 1);
    }
#pragma unroll
    for (int j = 0; j < in_flight; ++j)
      if (begin + j * kElementwiseThreads < n) out[begin + j * kElementwiseThreads] = r[j];
  }
}
template <int strips, class R, class Fn>
__global__ void __launch_bounds__(kElementwiseThreads) generate_kernel(int64_t n, R* out, Fn f) {
  trigger_and_wait();
  generate_strips<strips, strips>(blockIdx.x * int64_t{kElementwiseThreads * strips}, n, out, f);
}
// out[i] = f(i) for i < n, `strips` elements a thread.
template <int strips = 4, class R, class Fn>
void launch_generate(Stream stream, int64_t n, R* out, Fn f) {
  const int64_t blocks = ceil_div(n, kElementwiseThreads * strips);
  launch_dependent(generate_kernel<strips, R, Fn>, dim3(static_cast<unsigned>(blocks)),
                   dim3(kElementwiseThreads), 0, stream, n, out, f);
}

// The cost of f. low: a few instructions. high: a block loads its next strip while it computes
// one. huge: compilers would take long for a pack of copies.
enum class Cost { low, high, huge };
// A block takes `strips` strips one after another.
template <Cost cost, class R, class Fn, class... Operand>
__global__ void __launch_bounds__(kElementwiseThreads)
    elementwise_kernel(int64_t n, int strips, bool packs, R* out, Fn f, Operand... from) {
  constexpr int kPack = pack_size<R, typename Operand::Element...>();
  constexpr int64_t kStep = kElementwiseThreads * kPack;
  int64_t base = blockIdx.x * kStep * strips;
  trigger_and_wait();
  if constexpr (cost != Cost::huge) {
    if (packs && base + kStep * strips <= n) {
      int64_t i = base + threadIdx.x * kPack;
      auto walk = [&](auto... x) {
#pragma unroll 1
        for (int t = strips;;) {
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
  for (int t = 0; t < strips; ++t, base += kStep)
    generate_strips<cost == Cost::low ? kPack : 1, kPack>(base, n, out,
                                                          [&](int64_t i) { return f(from.at(i)...); });
}
// out[i] = f(from.at(i)...) for i < n.
template <Cost cost, class R, class Fn, class... Operand>
void launch_elementwise(Stream stream, int64_t n, R* out, Fn f, Operand... from) {
  constexpr int kPack = pack_size<R, typename Operand::Element...>();
  constexpr int64_t kMany = int64_t{1} << 22;  // enough elements for persistent blocks
  const int strips = cost == Cost::high && n >= kMany ? 4 : 1;
  const bool packs = is_aligned<kPack>(out) && (from.template packs<kPack>() && ...);
  const int64_t blocks = ceil_div(n, int64_t{kElementwiseThreads} * kPack * strips);
  launch_dependent(elementwise_kernel<cost, R, Fn, Operand...>, dim3(static_cast<unsigned>(blocks)),
                   dim3(kElementwiseThreads), 0, stream, n, strips, packs, out, f, from...);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
