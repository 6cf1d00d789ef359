// Elementwise kernels of the graphs in kinds.h: over contiguous operands
// (kernels/cuda/vectorized_loop.h), or over operands that broadcast or are widened.
#pragma once
#include "kernels/cuda/fast_divide.h"
#include "ops/elementwise/graphs/activations.h"
#pragma nv_diag_suppress 186, 514  // comparisons of unsigned types with 0, in templates
#include "ops/elementwise/graphs/float64.h"
#include "ops/elementwise/graphs/gradients.h"
#include "ops/elementwise/graphs/integer.h"
#pragma nv_diag_default 186, 514
#include "kernels/cuda/vectorized_loop.h"
#include "ops/elementwise/graphs/remainder.h"
#include "ops/elementwise/walk.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using elementwise::kOperands;
using elementwise::kScalars;

struct MapCall {
  const Call& call;
  Stream stream;
  float scalar[kScalars];
};
using Map = void (*)(const MapCall&);

// The loops of a broadcast for a kernel (ops/elementwise/walk.h). packs: each operand has a pack of
// contiguous elements, or one that is repeated.
struct OperandStrides {
  bool packs;
  int rank;
  FastDivmod inner, dim[kMaxRank];
  int64_t stride[kOperands][kMaxRank], step[kOperands];
};
template <int operands>
struct OperandOffsets {
  int64_t at[operands];
};
template <int operands>
__device__ OperandOffsets<operands> operand_offsets(const OperandStrides& s, int64_t i) {
  OperandOffsets<operands> p;
  const int64_t along = s.inner.remainder(i);
#pragma unroll
  for (int k = 0; k < operands; ++k) p.at[k] = along * s.step[k];
#pragma unroll 1  // eight copies for each element of a pack took minutes to compile and left the I-cache
  for (int d = 0; d < s.rank; ++d) {
    const int64_t index = s.dim[d].remainder(i);
#pragma unroll
    for (int k = 0; k < operands; ++k) p.at[k] += index * s.stride[k][d];
  }
  return p;
}

// Operand k of a broadcast. If T is float it may be stored as bf16 or f16 (formats.2).
template <class T>
struct StridedOperand {
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
  __device__ Pack<T, n> pack(const OperandStrides& s, int64_t i) const {
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
    const size_t size = std::is_same_v<T, float> ? size_of(stored) : sizeof(T), bytes = n * size;
    return reinterpret_cast<uintptr_t>(p) % (bytes < 16 ? bytes : 16) == 0;
  }
};

template <Cost cost, class R, class Fn, class... T>
__global__ void __launch_bounds__(kElementwiseThreads)
    broadcast_kernel(int64_t n, R* out, Fn f, OperandStrides s, StridedOperand<T>... from) {
  constexpr int kPack = pack_size<R, T...>();
  const int64_t base = blockIdx.x * int64_t{kElementwiseThreads * kPack};
  trigger_and_wait();
  if constexpr (cost != Cost::huge) {
    if (s.packs) {  // n is a multiple of the pack
      const int64_t i = base + threadIdx.x * kPack;
      if (i >= n) return;
      const auto offset = operand_offsets<sizeof...(T)>(s, i);
      Pack<R, kPack> r;
      auto store = [&](const auto&... x) {
#pragma unroll
        for (int j = 0; j < kPack; ++j) r.v[j] = f(x.v[j]...);
      };
      store(from.template pack<kPack>(s, offset.at[from.k])...);
      store_pack(out + i, r);
      return;
    }
  }
  generate_strips<cost == Cost::low ? 2 : 1, kPack>(base, n, out, [&](int64_t i) {
    const auto offset = operand_offsets<sizeof...(T)>(s, i);
    return f(from.at(offset.at[from.k])...);
  });
}

template <class... T>
struct Types {};

template <Cost cost, class R, class Fn, class... T, size_t... k>
void map(const MapCall& map_call, Fn f, Types<T...>, std::index_sequence<k...>) {
  const Call& call = map_call.call;
  const int64_t n = call.out[0].elements();
  if (n == 0) return;
  const elementwise::BroadcastLoops w = elementwise::broadcast_loops(call);
  R* out = call.out[0].as<R>();
  const bool as_stored = ((!std::is_same_v<T, float> || call.in[k].dtype == DType::f32) && ...);
  if (w.rank == 0 && as_stored)
    return launch_elementwise<cost>(
        map_call.stream, n, out, f,
        ContiguousOperand<T>{call.in[k].template as<const T>(), w.step[k] == 0}...);
  if constexpr (sizeof...(T) > 1) {
    constexpr int kPack = pack_size<R, T...>();
    OperandStrides s{.rank = w.rank, .inner = FastDivmod(w.inner)};
    s.packs = w.inner % kPack == 0 && is_aligned<kPack>(out);
    for (int d = 0; d < w.rank; ++d) {
      s.dim[d] = FastDivmod(w.dim[d]);
      for (int j = 0; j < w.operands; ++j) {
        s.stride[j][d] = w.stride[j][d];
        s.packs &= w.step[j] == 0 || w.stride[j][d] % kPack == 0;
      }
    }
    for (int j = 0; j < w.operands; ++j) s.step[j] = w.step[j];
    auto start = [&](auto... from) {
      s.packs &= ((!s.step[from.k] || from.template packs<kPack>()) && ...);
      launch_dependent(broadcast_kernel<cost, R, Fn, T...>,
                       dim3(static_cast<unsigned>(ceil_div(n, kElementwiseThreads * kPack))),
                       dim3(kElementwiseThreads), 0, map_call.stream, n, out, f, s, from...);
    };
    start(StridedOperand<T>{call.in[k].data, call.in[k].dtype, static_cast<int>(k)}...);
  }
}
template <Cost cost, class R, class... T, class Fn>
void map(const MapCall& map_call, Fn f) {
  map<cost, R>(map_call, f, Types<T...>{}, std::index_sequence_for<T...>{});
}

// Graphs over floats, with their attributes. FloatMap stores by the store rule, PredicateMap truth
// values.
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
struct FloatMap : Floats<Fn, scalars> {
  template <class... X>
  __device__ float operator()(X... x) const {
    return canonicalize(this->graph(x...)).v;
  }
};
template <class Fn, int scalars>
struct PredicateMap : Floats<Fn, scalars> {
  template <class... X>
  __device__ uint8_t operator()(X... x) const {
    return this->graph(x...).v;
  }
};
// A graph over elements as they are stored.
template <class Fn, class R>
struct ElementMap {
  template <class... X>
  __device__ R operator()(X... x) const {
    return static_cast<R>(graph::as_stored(Fn{}(x...)));
  }
};
// elementwise.15: where. T holds the bits.
template <class Fn>
struct SelectFloat {
  __device__ float operator()(uint8_t c, float a, float b) const {
    return num::f32_from_bits(graph::canonical(Fn{}(c, num::f32_bits(a), num::f32_bits(b))));
  }
};
template <class Fn>
struct SelectDouble {
  __device__ uint64_t operator()(uint8_t c, uint64_t a, uint64_t b) const {
    return graph::canonical(Fn{}(c, a, b));
  }
};

template <class Fn, int scalars, bool is_cheap>
void unary_f32(const MapCall& map_call) {
  map<is_cheap ? Cost::low : Cost::high, float, float>(
      map_call, FloatMap<Fn, scalars>{map_call.scalar[0], map_call.scalar[1]});
}
template <class Fn, int scalars>
void test_f32(const MapCall& map_call) {
  map<Cost::low, uint8_t, float>(map_call, PredicateMap<Fn, scalars>{map_call.scalar[0], map_call.scalar[1]});
}
template <class Fn>
void binary_f32(const MapCall& map_call) {
  map<Cost::low, float, float, float>(map_call, FloatMap<Fn, 0>{});
}
template <class Fn>
void binary_graph_f32(const MapCall& map_call) {
  map<Cost::high, float, float, float>(map_call, FloatMap<Fn, 0>{});
}
template <class Fn>
void binary_heavy_f32(const MapCall& map_call) {
  map<Cost::huge, float, float, float>(map_call, FloatMap<Fn, 0>{});
}
template <class Fn>
void compare_f32(const MapCall& map_call) {
  map<Cost::low, uint8_t, float, float>(map_call, PredicateMap<Fn, 0>{});
}
template <class Fn, class T, class R = T>
void unary_scalar(const MapCall& map_call) {
  map<Cost::low, R, T>(map_call, ElementMap<Fn, R>{});
}
template <class Fn, class T, class R = T>
void binary_scalar(const MapCall& map_call) {
  map<Cost::low, R, T, T>(map_call, ElementMap<Fn, R>{});
}
template <class Fn, class T, bool is_float = false>
void select_scalar(const MapCall& map_call) {
  if constexpr (is_float && sizeof(T) == 8)
    map<Cost::low, T, uint8_t, T, T>(map_call, SelectDouble<Fn>{});
  else if constexpr (is_float)
    map<Cost::low, float, uint8_t, float, float>(map_call, SelectFloat<Fn>{});
  else
    map<Cost::low, T, uint8_t, T, T>(map_call, ElementMap<Fn, T>{});
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS

#include "ops/elementwise/kinds.h"
