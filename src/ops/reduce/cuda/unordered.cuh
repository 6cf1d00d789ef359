// Reductions whose order does not matter: integers, and arguments of extremes. A block has `units`
// rows and `classes` threads for each. Included by cuda.cu alone.
#pragma once
#include "kernels/cuda/launch.h"
#include "kernels/cuda/row_reduction.cuh"
#include "kernels/float_order.h"
#include "ops/reduce/cpu/integer.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kUnorderedThreads = 1024;

// Contiguous rows (inner = 1), or blocks of neighbouring columns.
struct Grouping {
  int64_t rows, n, inner, blocks;  // blocks of columns in `inner`
  int units, classes;
};
Grouping grouping(int64_t outer, int64_t inner, int64_t n) {
  Grouping g{outer * inner, n, inner, 1, 1, 1};
  if (inner == 1) {
    g.classes = n <= 256 ? kWarp : n <= 16384 ? 256 : kUnorderedThreads;
    g.units = g.classes == kWarp ? 8 : 1;
  } else {
    g.units = inner > 8 ? kWarp : 8;
    g.classes = (n < 256 ? 256 : kUnorderedThreads) / g.units;
    g.blocks = ceil_div(inner, g.units);
  }
  return g;
}

// The state, of at most eight bytes, of another thread of the warp.
template <class State>
INVAR_DEVICE State shuffle_xor(State a, int distance) {
  using Word = std::conditional_t<sizeof(State) == 8, unsigned long long, unsigned>;
  return static_cast<State>(__shfl_xor_sync(kFullWarp, static_cast<Word>(a), distance));
}

// Fn has State, a plain type; start(); join(a, b); step(state, value, i) for element i of a row;
// and finish(..., state, first, step), which each of a row's threads calls with its number and
// their count.
template <class Fn>
__global__ void __launch_bounds__(kUnorderedThreads)
    unordered_kernel(const __grid_constant__ Fn fn, const __grid_constant__ Grouping g) {
  using State = typename Fn::State;
  __shared__ State states[kUnorderedThreads];
  const bool along = g.inner == 1;
  const int unit = along ? threadIdx.x / g.classes : threadIdx.x % g.units;
  const int c = along ? threadIdx.x % g.classes : threadIdx.x / g.units;
  const int64_t blocks = along ? ceil_div(g.rows, g.units) : g.rows / g.inner * g.blocks;
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const int64_t outer = along ? block * g.units + unit : block / g.blocks;
    const int64_t column = along ? 0 : block % g.blocks * g.units + unit;
    const int64_t row = outer * g.inner + column;
    const bool in_range = column < g.inner && row < g.rows;
    State own = Fn::start();
    if (in_range) {
      const auto source = fn.source(outer, column);
#pragma unroll 8
      for (int64_t i = c; i < g.n; i += g.classes) own = fn.step(own, *source.at(i), i);
    }
    if (along) {
      for (int distance = kWarp / 2; distance >= 1; distance /= 2)
        own = Fn::join(own, shuffle_xor(own, distance));
      if (threadIdx.x % kWarp == 0) states[threadIdx.x / kWarp] = own;
      __syncthreads();
      const State* first = states + (threadIdx.x - c) / kWarp;
      own = *first;
      for (int w = 1; w < g.classes / kWarp; ++w) own = Fn::join(own, first[w]);
    } else {
      State* mine = states + threadIdx.x;
      *mine = own;
      __syncthreads();
      for (int half = g.classes / 2; half >= 1; half /= 2) {
        if (c < half) *mine = Fn::join(*mine, mine[half * g.units]);
        __syncthreads();
      }
      own = states[unit];
    }
    if (in_range) fn.finish(outer, column, row, own, c, g.classes);
    __syncthreads();
  }
}
template <class Fn>
void launch_unordered(const Fn& fn, const Grouping& g, Stream stream) {
  if (g.rows == 0) return;
  const int64_t blocks = g.inner == 1 ? ceil_div(g.rows, g.units) : g.rows / g.inner * g.blocks;
  launch(unordered_kernel<Fn>, dim3(grid_for(blocks)), dim3(static_cast<unsigned>(g.units * g.classes)), 0,
         stream, fn, g);
}

// The offset of element i. Out of line because divisions are long.
__device__ __noinline__ int64_t element_offset(const StridedDims* dims, int64_t i, bool narrow) {
  if (!narrow) return StridedDims::offset(*dims, i);
  int64_t offset = 0;
  auto rest = static_cast<uint32_t>(i);
#pragma unroll 1
  for (int k = dims->count - 1; k > 0; --k) {
    const auto dim = static_cast<uint32_t>(dims->dim[k]);
    offset += rest % dim * dims->stride[k];
    rest /= dim;
  }
  return offset + rest * dims->stride[0];
}
// The elements of a row with any strides.
template <class T>
struct StridedElements {
  const T* x;
  const StridedDims* dims;
  bool narrow;  // 32 bits hold every offset
  INVAR_DEVICE const T* at(int64_t i) const {
    return x + (dims->count <= 1 ? i * dims->stride[0] : element_offset(dims, i, narrow));
  }
};

template <IntegerOp kOp, class T, class U, bool kTruth = false>
struct IntegerRows {
  using I = IntegerReduction<kOp, T, U, kTruth>;
  using State = T;
  Reduction r;
  const T* x;
  T* out;
  INVAR_DEVICE static T start() { return I::kStart; }
  INVAR_DEVICE static T join(T a, T b) { return I::join(a, b); }
  INVAR_DEVICE T step(T a, T v, int64_t) const { return I::step(a, v); }
  INVAR_DEVICE StridedElements<T> source(int64_t outer, int64_t column) const {
    return {x + StridedDims::offset(r.kept, outer) + column, &r.reduced, r.n <= INT32_MAX};
  }
  INVAR_DEVICE void finish(int64_t, int64_t, int64_t row, T total, int first, int) const {
    if (first == 0) out[row] = I::finish(total, r.n);
  }
};
template <IntegerOp kOp, class T, class U, bool kTruth = false>
void enqueue_integer_type(const Call& call, Stream stream) {
  const Reduction r = reduction_of(call);
  launch_unordered(IntegerRows<kOp, T, U, kTruth>{r, call.in[0].as<const T>(), call.out[0].as<T>()},
                   grouping(r.columnwise ? r.outer : r.outputs, r.inner, r.n), stream);
}
template <IntegerOp kOp>
void enqueue_integers(const Call& call, Stream stream) {
  switch (call.in[0].dtype) {
    case DType::i64: return enqueue_integer_type<kOp, int64_t, uint64_t>(call, stream);
    case DType::i32: return enqueue_integer_type<kOp, int32_t, uint32_t>(call, stream);
    default: break;
  }
  if constexpr (kOp == IntegerOp::max || kOp == IntegerOp::min) switch (call.in[0].dtype) {
      case DType::i8: return enqueue_integer_type<kOp, int8_t, uint8_t>(call, stream);
      case DType::u8: return enqueue_integer_type<kOp, uint8_t, uint8_t>(call, stream);
      default: return enqueue_integer_type<kOp, uint8_t, uint8_t, true>(call, stream);
    }
}

// argmax.2 - argmax.5, hardmax: the largest of integers that have the element's rank in the upper
// half, and in the lower half its index, or the complement of that if the first index wins.
template <bool kLargest, bool kHard>
struct ArgExtreme {
  using State = uint64_t;
  struct Source {
    const float* x;
    int64_t stride;
    INVAR_DEVICE const float* at(int64_t i) const { return x + i * stride; }
  };
  AxisExtents a;
  const float* x;
  void* out;
  uint32_t index_flip;
  INVAR_DEVICE static uint64_t start() { return 0; }  // less than every element's
  INVAR_DEVICE static uint64_t join(uint64_t a, uint64_t b) { return a > b ? a : b; }
  INVAR_DEVICE uint64_t step(uint64_t most, float v, int64_t i) const {
    const uint32_t rank = kLargest || v != v ? order_key(v) : ~order_key(v);  // NaN comes first
    return join(most, uint64_t{rank} << 32 | (static_cast<uint32_t>(i) ^ index_flip));
  }
  INVAR_DEVICE Source source(int64_t outer, int64_t column) const {
    return {x + outer * a.n * a.inner + column, a.inner};
  }
  INVAR_DEVICE void finish(int64_t outer, int64_t column, int64_t row, uint64_t most, int first,
                           int step) const {
    const uint32_t index = static_cast<uint32_t>(most) ^ index_flip;
    if (!kHard) {
      if (first == 0) static_cast<int64_t*>(out)[row] = index;
      return;
    }
    float* y = static_cast<float*>(out) + outer * a.n * a.inner + column;
    for (int64_t i = first; i < a.n; i += step) y[i * a.inner] = i == index ? 1.0f : 0.0f;
  }
};
template <bool kLargest, bool kHard = false>
void enqueue_arg(const Call& call, Stream stream) {
  const ArgmaxAttributes attrs(call);  // hardmax has the axis alone
  const AxisExtents a = axis_extents(call.in[0], attrs.axis);
  const uint32_t index_flip = !kHard && attrs.select_last ? 0 : 0xffffffff;
  launch_unordered(ArgExtreme<kLargest, kHard>{a, call.in[0].as<const float>(), call.out[0].data, index_flip},
                   grouping(a.outer, a.inner, a.n), stream);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
