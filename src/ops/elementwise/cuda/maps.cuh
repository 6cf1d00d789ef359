// Graphs as kernels, for the kinds of kinds.h: over elements where they lie, or where operands broadcast or are widened over
// a walk.
#pragma once
#include "kernels/cuda/fast_divide.h"
#include "ops/elementwise/graphs/activations.h"
#pragma nv_diag_suppress 186, 514  // comparisons of unsigned types with 0, in templates
#include "ops/elementwise/graphs/float64.h"
#include "ops/elementwise/graphs/integer.h"
#pragma nv_diag_default 186, 514
#include "ops/elementwise/graphs/remainder.h"
#include "ops/elementwise/walk.h"
#include "kernels/cuda/vectorized_loop.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using elementwise::kOperands;
using elementwise::kScalars;

struct Job {
  const Call& call;
  Stream stream;
  float scalar[kScalars];
};
using Map = void (*)(const Job&);

// elementwise::Walk for a kernel. Where `packs`, a pack of every operand lies along memory or is one element repeated.
struct Steps {
  bool packs;
  int rank;
  Divisor inner, dim[kMaxRank];
  int64_t stride[kOperands][kMaxRank], step[kOperands];
};
template <int operands>
struct Place {
  int64_t at[operands];
};
template <int operands>
__device__ Place<operands> place_of(const Steps& s, int64_t i) {
  Place<operands> p;
  const int64_t along = s.inner.remainder(i);
#pragma unroll
  for (int k = 0; k < operands; ++k) p.at[k] = along * s.step[k];
#pragma unroll 1  // eight copies for each element of a pack took compilers minutes, and the cache of instructions
  for (int d = 0; d < s.rank; ++d) {
    const int64_t index = s.dim[d].remainder(i);
#pragma unroll
    for (int k = 0; k < operands; ++k) p.at[k] += index * s.stride[k][d];
  }
  return p;
}

// Operand k of a walk; where T is float it may be stored as bf16 or f16 (formats.2).
template <class T>
struct Walked {
  using Element = T;
  const void* p;
  DType stored;
  int k;

  __device__ T at(int64_t i) const {
    if constexpr (std::is_same_v<T, float>) {
      if (stored == DType::bf16) return Bf16::one(static_cast<const uint16_t*>(p)[i]);
      if (stored == DType::f16) return F16::one(static_cast<const uint16_t*>(p)[i]);
    }
    return static_cast<const T*>(p)[i];
  }
  template <int n>
  __device__ Pack<T, n> pack(const Steps& s, int64_t i) const {
    Pack<T, n> r;
    if (!s.step[k]) {
      const T x = at(i);
      for (T& y : r.v) y = x;
      return r;
    }
    if constexpr (std::is_same_v<T, float>)
      if (stored != DType::f32) {
        const auto narrow = load_pack<n>(static_cast<const uint16_t*>(p) + i);
        for (int j = 0; j < n; ++j)
          r.v[j] = stored == DType::bf16 ? Bf16::one(narrow.v[j]) : F16::one(narrow.v[j]);
        return r;
      }
    return load_pack<n>(static_cast<const T*>(p) + i);
  }
  template <int n>
  bool packs() const {
    const size_t size = std::is_same_v<T, float> ? size_of(stored) : sizeof(T), whole = n * size;
    return reinterpret_cast<uintptr_t>(p) % (whole < 16 ? whole : 16) == 0;
  }
};

template <Work work, class R, class Fn, class... T>
__global__ void __launch_bounds__(kFlatThreads)
    walked_kernel(int64_t n, R* out, Fn f, Steps s, Walked<T>... from) {
  constexpr int kPack = packed<R, T...>();
  const int64_t base = blockIdx.x * int64_t{kFlatThreads * kPack};
  follow();
  if constexpr (work != Work::huge) {
    if (s.packs) {  // n is a multiple of the pack
      const int64_t i = base + threadIdx.x * kPack;
      if (i >= n) return;
      const auto place = place_of<sizeof...(T)>(s, i);
      Pack<R, kPack> r;
      auto store = [&](const auto&... x) {
#pragma unroll
        for (int j = 0; j < kPack; ++j) r.v[j] = f(x.v[j]...);
      };
      store(from.template pack<kPack>(s, place.at[from.k])...);
      store_pack(out + i, r);
      return;
    }
  }
  fill_turns<work == Work::light ? 2 : 1, kPack>(base, n, out, [&](int64_t i) {
    const auto place = place_of<sizeof...(T)>(s, i);
    return f(from.at(place.at[from.k])...);
  });
}

template <class... T>
struct Types {};

template <Work work, class R, class Fn, class... T, size_t... k>
void map(const Job& job, Fn f, Types<T...>, std::index_sequence<k...>) {
  const Call& call = job.call;
  const int64_t n = call.out[0].elements();
  if (n == 0) return;
  const elementwise::Walk w = elementwise::walk(call);
  R* out = call.out[0].as<R>();
  const bool as_stored = ((!std::is_same_v<T, float> || call.in[k].dtype == DType::f32) && ...);
  if (w.rank == 0 && as_stored)
    return flat<work>(job.stream, n, out, f, Line<T>{call.in[k].template as<const T>(), w.step[k] == 0}...);
  if constexpr (sizeof...(T) > 1) {
    constexpr int kPack = packed<R, T...>();
    Steps s{.rank = w.rank, .inner = Divisor(w.inner)};
    s.packs = w.inner % kPack == 0 && is_aligned<kPack>(out);
    for (int d = 0; d < w.rank; ++d) {
      s.dim[d] = Divisor(w.dim[d]);
      for (int j = 0; j < w.operands; ++j) {
        s.stride[j][d] = w.stride[j][d];
        s.packs &= w.step[j] == 0 || w.stride[j][d] % kPack == 0;
      }
    }
    for (int j = 0; j < w.operands; ++j) s.step[j] = w.step[j];
    auto start = [&](auto... from) {
      s.packs &= ((!s.step[from.k] || from.template packs<kPack>()) && ...);
      launch_early(walked_kernel<work, R, Fn, T...>,
                   dim3(static_cast<unsigned>(ceil_div(n, kFlatThreads * kPack))), dim3(kFlatThreads), 0,
                   job.stream, n, out, f, s, from...);
    };
    start(Walked<T>{call.in[k].data, call.in[k].dtype, static_cast<int>(k)}...);
  }
}
template <Work work, class R, class... T, class Fn>
void map(const Job& job, Fn f) {
  map<work, R>(job, f, Types<T...>{}, std::index_sequence_for<T...>{});
}

// A graph over floats, with its attributes; results are stored by the store rule, masks as truth values.
template <class Fn, int scalars>
struct Floats {
  float a, b;
  template <class... X>
  __device__ auto graph(X... x) const {
    if constexpr (scalars == 2)
      return Fn{}(F{x}..., a, b);
    else if constexpr (scalars == 1)
      return Fn{}(F{x}..., a);
    else
      return Fn{}(F{x}...);
  }
};
template <class Fn, int scalars>
struct Number : Floats<Fn, scalars> {
  template <class... X>
  __device__ float operator()(X... x) const {
    return canon(this->graph(x...)).v;
  }
};
template <class Fn, int scalars>
struct Mask : Floats<Fn, scalars> {
  template <class... X>
  __device__ uint8_t operator()(X... x) const {
    return this->graph(x...).v;
  }
};
// Over elements as they lie.
template <class Fn, class R>
struct Whole {
  template <class... X>
  __device__ R operator()(X... x) const {
    return static_cast<R>(graph::kept(Fn{}(x...)));
  }
};
// elementwise.15: where; T holds the bits.
template <class Fn>
struct ChosenFloat {
  __device__ float operator()(uint8_t c, float a, float b) const {
    return num::f32_from_bits(graph::canonical(Fn{}(c, num::f32_bits(a), num::f32_bits(b))));
  }
};
template <class Fn>
struct ChosenDouble {
  __device__ uint64_t operator()(uint8_t c, uint64_t a, uint64_t b) const {
    return graph::canonical(Fn{}(c, a, b));
  }
};

template <class Fn, int scalars, bool is_light>
void one_f32(const Job& job) {
  map<is_light ? Work::light : Work::heavy, float, float>(job,
                                                          Number<Fn, scalars>{job.scalar[0], job.scalar[1]});
}
template <class Fn, int scalars>
void test_f32(const Job& job) {
  map<Work::light, uint8_t, float>(job, Mask<Fn, scalars>{job.scalar[0], job.scalar[1]});
}
template <class Fn>
void binary_f32(const Job& job) {
  map<Work::light, float, float, float>(job, Number<Fn, 0>{});
}
template <class Fn>
void heavy_f32(const Job& job) {
  map<Work::huge, float, float, float>(job, Number<Fn, 0>{});
}
template <class Fn>
void compare_f32(const Job& job) {
  map<Work::light, uint8_t, float, float>(job, Mask<Fn, 0>{});
}
template <class Fn, class T, class R = T>
void single(const Job& job) {
  map<Work::light, R, T>(job, Whole<Fn, R>{});
}
template <class Fn, class T, class R = T>
void couple(const Job& job) {
  map<Work::light, R, T, T>(job, Whole<Fn, R>{});
}
template <class Fn, class T, bool is_float = false>
void choose(const Job& job) {
  if constexpr (is_float && sizeof(T) == 8)
    map<Work::light, T, uint8_t, T, T>(job, ChosenDouble<Fn>{});
  else if constexpr (is_float)
    map<Work::light, float, uint8_t, float, float>(job, ChosenFloat<Fn>{});
  else
    map<Work::light, T, uint8_t, T, T>(job, Whole<Fn, T>{});
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS

#include "ops/elementwise/kinds.h"
