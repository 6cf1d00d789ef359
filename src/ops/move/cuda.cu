// The rows of every operation of this room: a thread per pack of results, or, where an axis is turned, a block per square of
// both axes, through shared memory.
#include "kernels/cuda/fast_divide.h"
#include "kernels/cuda/vectorized_loop.h"
#include "ops/move/walk.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// f(T{}) for an unsigned integer of the element's size.
template <class Fn>
void with_size(size_t size, Fn f) {
  switch (size) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    case 8: return f(uint64_t{});
    default: f(Pack<uint64_t, 2>{});
  }
}
// The bytes that copies of `bytes` from and to such addresses can take at a time.
size_t unit_of(size_t bytes, const void* from, const void* to) {
  size_t unit = 16;
  while ((bytes | reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to)) % unit) unit /= 2;
  return unit;
}

// A MoveWalk for a kernel that takes `pack` neighbours along the innermost axis at a time.
struct Axes {
  int rank;
  int64_t base;
  struct {
    Divisor size, period;
    int64_t stride, length, shift;  // j = i + shift; with a period modulo it, which makes it positive
    Beyond beyond;
  } axis[kMaxRank];
};
Axes axes_of(const MoveWalk& w, int64_t pack) {
  Axes a{.rank = w.rank, .base = w.base};
  for (int d = 0; d < w.rank; ++d) {
    const MoveAxis& from = w.axis[d];
    auto& to = a.axis[d];
    const int64_t per = d == w.rank - 1 ? pack : 1;
    to.size = Divisor(from.size / per);
    to.stride = from.stride * per, to.length = from.length, to.shift = -from.begin, to.beyond = from.beyond;
    if (from.beyond != Beyond::reflect && from.beyond != Beyond::wrap) continue;
    const int64_t period = from.beyond == Beyond::wrap ? from.length
                           : from.length > 1           ? 2 * from.length - 2
                                                       : 1;
    to.period = Divisor(period);
    if (to.shift < 0) to.shift += ceil_div(-to.shift, period) * period;
  }
  return a;
}
// Where result i comes from; -1: outside.
__device__ int64_t source(const Axes& a, int64_t i) {
  int64_t at = a.base;
  bool outside = false;
  for (int d = a.rank - 1; d >= 0; --d) {
    const auto& axis = a.axis[d];
    int64_t j = axis.size.remainder(i) + axis.shift;
    if (axis.beyond == Beyond::constant) {
      outside |= j < 0 || j >= axis.length;
    } else if (axis.beyond == Beyond::edge) {
      j = j < 0 ? 0 : j < axis.length ? j : axis.length - 1;
    } else if (axis.beyond != Beyond::never) {
      int64_t rest = j;
      j = axis.period.remainder(rest);
      if (axis.beyond == Beyond::reflect && j >= axis.length) j = 2 * (axis.length - 1) - j;
    }
    at += j * axis.stride;
  }
  return outside ? -1 : at;
}

// repeats: one element for a whole pack.
template <class T, int n>
__global__ void __launch_bounds__(kFlatThreads)
    walk_kernel(int64_t packs, Axes axes, bool repeats, const T* x, const T* value, T* out) {
  const int64_t i = blockIdx.x * int64_t{kFlatThreads} + threadIdx.x;
  if (i >= packs) return;
  const int64_t at = source(axes, i);
  Pack<T, n> y;
  if (at >= 0 && !repeats) {
    y = load_pack<n>(x + at);
  } else {
    const T one = at >= 0 ? x[at] : value ? *value : T{0};
    for (T& v : y.v) v = one;
  }
  store_pack(out + i * n, y);
}
// The same element by element.
template <class T>
void walk_elements(const Axes& a, const T* x, const T* value, T* out, int64_t n, Stream stream) {
  const Axes axes = a;
  fill(stream, n, out, [=] __device__(int64_t i) {
    const int64_t at = source(axes, i);
    return at >= 0 ? x[at] : value ? *value : T{0};
  });
}
template <class T>
void walk(const MoveWalk& w, const T* x, const T* value, T* out, int64_t n, Stream stream) {
  constexpr int kPack = 16 / sizeof(T);
  const MoveAxis& inner = w.axis[w.rank - 1];
  const bool repeats = inner.stride == 0;
  bool packs = inner.beyond == Beyond::never && (repeats || inner.stride == 1) && inner.size % kPack == 0;
  packs &= is_aligned<kPack>(out) && (repeats || (is_aligned<kPack>(x) && w.base % kPack == 0));
  for (int d = 0; d + 1 < w.rank; ++d) packs &= repeats || w.axis[d].stride % kPack == 0;
  if (!packs) return walk_elements(axes_of(w, 1), x, value, out, n, stream);
  launch(walk_kernel<T, kPack>, dim3(static_cast<unsigned>(ceil_div(n / kPack, kFlatThreads))),
         dim3(kFlatThreads), 0, stream, n / kPack, axes_of(w, kPack), repeats, x, value, out);
}

// Squares of as many elements; a line of one is 128 bytes where it can be.
template <class T>
constexpr int kSide = sizeof(T) < 4 ? 64 : 32;
constexpr int kTurnRows = 8;
struct Turned {
  Divisor groups,
      blocks;  // squares along the innermost axis of the result and along the one that follows memory
  int64_t inner, along, inner_stride, along_step;
  int rank;  // the other axes: their sizes, strides in the operand, steps in the result
  Divisor size[kMaxRank];
  int64_t stride[kMaxRank], step[kMaxRank];
};
template <class T>
__global__ void __launch_bounds__(kWarp* kTurnRows) turn_kernel(Turned t, const T* x, T* out) {
  constexpr int kN = kSide<T>;
  __shared__ T square[kN][kN + (sizeof(T) < 4 ? 4 / sizeof(T) : 1)];
  int64_t rest = blockIdx.x;
  const int64_t k = t.groups.remainder(rest) * kN, j = t.blocks.remainder(rest) * kN;
  int64_t from = k * t.inner_stride + j, to = j * t.along_step + k;
  for (int d = 0; d < t.rank; ++d) {
    const int64_t i = t.size[d].remainder(rest);
    from += i * t.stride[d], to += i * t.step[d];
  }
#pragma unroll
  for (int r = 0; r < kN; r += kTurnRows)
#pragma unroll
    for (int c = 0; c < kN; c += kWarp) {
      const int row = r + threadIdx.y, column = c + threadIdx.x;
      if (k + row < t.inner && j + column < t.along)
        square[row][column] = x[from + row * t.inner_stride + column];
    }
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kN; r += kTurnRows)
#pragma unroll
    for (int c = 0; c < kN; c += kWarp) {
      const int row = r + threadIdx.y, column = c + threadIdx.x;
      if (j + row < t.along && k + column < t.inner)
        out[to + row * t.along_step + column] = square[column][row];
    }
}
template <class T>
void turn(const MoveWalk& w, const T* x, T* out, Stream stream) {
  const MoveAxis &inner = w.axis[w.rank - 1], &along = w.axis[w.along];
  const int64_t groups = ceil_div(inner.size, kSide<T>), blocks = ceil_div(along.size, kSide<T>);
  Turned t{.groups = Divisor(groups),
           .blocks = Divisor(blocks),
           .inner = inner.size,
           .along = along.size,
           .inner_stride = inner.stride};
  int64_t squares = groups * blocks, step = 1;
  for (int d = w.rank - 1; d >= 0; --d) {
    if (d == w.along) {
      t.along_step = step;
    } else if (d < w.rank - 1) {
      t.size[t.rank] = Divisor(w.axis[d].size);
      t.stride[t.rank] = w.axis[d].stride, t.step[t.rank] = step;
      ++t.rank, squares *= w.axis[d].size;
    }
    step *= w.axis[d].size;
  }
  launch(turn_kernel<T>, dim3(static_cast<unsigned>(squares)), dim3(kWarp, kTurnRows), 0, stream, t,
         x + w.base, out);
}

template <Move move>
void run(const Call& call, Stream stream) {
  const int64_t n = call.out[0].elements();
  if (n == 0) return;
  const MoveWalk w = move_walk(move, call);
  with_size(size_of(call.out[0].dtype), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (sizeof(T) <= 8) {
      const T* x = call.in[0].as<const T>();
      T* out = call.out[0].as<T>();
      if (w.along >= 0) return turn(w, x, out, stream);
      walk(w, x, call.in.size() > 1 ? call.in[1].as<const T>() : nullptr, out, n, stream);
    }
  });
}

// Rows of `part` bytes from `from` on, to rows `width` apart.
template <class T>
void copy_rows(const void* from, void* to, int64_t rows, int64_t part, int64_t width, Stream stream) {
  const T* x = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  const int64_t n = part / static_cast<int64_t>(sizeof(T)), step = width / static_cast<int64_t>(sizeof(T));
  const Divisor by_n(n);
  each(stream, rows * n, [=] __device__(int64_t i) {
    int64_t row = i;
    const int64_t at = by_n.remainder(row);
    out[row * step + at] = x[i];
  });
}
void concat(const Call& call, Stream stream) {
  const View& out = call.out[0];
  const int64_t axis = attr_i(call, "axis", 0);
  int64_t inner = static_cast<int64_t>(size_of(out.dtype)), rows = 1;
  for (int d = 0; d < out.rank; ++d) (d < axis ? rows : inner) *= d == axis ? 1 : out.dim[d];
  const int64_t width = out.dim[axis] * inner;
  char* to = out.as<char>();
  for (const View& v : call.in) {
    const int64_t part = v.dim[axis] * inner;
    if (rows * part == 0) continue;
    with_size(unit_of(static_cast<size_t>(part | width), v.data, to),
              [&](auto unit) { copy_rows<decltype(unit)>(v.data, to, rows, part, width, stream); });
    to += part;
  }
}

template <class T>
void trilu_as(const Call& call, Stream stream) {
  const View& x = call.in[0];
  const bool upper = attr_i(call, "upper", 1) != 0;
  const int64_t n = last_dim(x), rows = x.dim[x.rank - 2];
  int64_t k = attr_i(call, "k", 0);
  k = k < -rows ? -rows : k > n ? n : k;
  const T* from = x.as<const T>();
  T* to = call.out[0].as<T>();
  const Divisor by_n(n), by_rows(rows);
  fill(stream, x.elements(), to, [=] __device__(int64_t i) {
    int64_t row = i;
    const int64_t column = by_n.remainder(row), above = column - by_rows.remainder(row) - k;
    return (upper ? above >= 0 : above <= 0) ? from[i] : T{0};
  });
}
void trilu(const Call& call, Stream stream) {
  with_size(size_of(call.out[0].dtype), [&](auto zero) {
    if constexpr (sizeof zero <= 8) trilu_as<decltype(zero)>(call, stream);
  });
}

template <class T>
void reverse_as(const Call& call, int64_t bytes, Stream stream) {
  const View& x = call.in[0];
  const bool second = attr_i(call, "time_axis", 0) != 0;  // time is the second dimension
  const int64_t inner = bytes / static_cast<int64_t>(sizeof(T)), width = x.dim[1], time = x.dim[second];
  const T* from = x.as<const T>();
  T* to = call.out[0].as<T>();
  const int64_t* lengths = call.in[1].as<const int64_t>();
  const Divisor by_inner(inner), by_width(width);
  fill(stream, x.dim[0] * width * inner, to, [=] __device__(int64_t i) {
    int64_t row = i;
    const int64_t at = by_inner.remainder(row), column = by_width.remainder(row);
    const int64_t most = lengths[second ? row : column], length = most < time ? most : time;
    const int64_t t = second ? column : row, source = t < length ? length - 1 - t : t;
    return from[(second ? row * width + source : source * width + column) * inner + at];
  });
}
void reverse_sequence(const Call& call, Stream stream) {
  const View& x = call.in[0];
  if (x.elements() == 0) return;
  int64_t bytes = static_cast<int64_t>(size_of(x.dtype));
  for (int d = 2; d < x.rank; ++d) bytes *= x.dim[d];
  with_size(unit_of(static_cast<size_t>(bytes), x.data, call.out[0].data),
            [&](auto unit) { reverse_as<decltype(unit)>(call, bytes, stream); });
}

template <class T, class I>
void one_hot_as(const Call& call, Stream stream) {
  const View& out = call.out[0];
  const int64_t axis = attr_i(call, "axis", 0), depth = out.dim[axis];
  int64_t inner = 1;
  for (int d = static_cast<int>(axis) + 1; d < out.rank; ++d) inner *= out.dim[d];
  const I* index = call.in[0].as<const I>();
  const T* values = call.in[1].as<const T>();
  T* to = out.as<T>();
  const Divisor by_inner(inner), by_depth(depth);
  fill(stream, out.elements(), to, [=] __device__(int64_t i) {
    int64_t row = i;
    const int64_t at = by_inner.remainder(row), d = by_depth.remainder(row), v = index[row * inner + at];
    return values[(v < 0 ? v + depth : v) == d];
  });
}
void one_hot(const Call& call, Stream stream) {
  with_size(size_of(call.out[0].dtype), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (sizeof(T) <= 8) {
      if (call.in[0].dtype == DType::i64)
        one_hot_as<T, int64_t>(call, stream);
      else
        one_hot_as<T, int32_t>(call, stream);
    }
  });
}

template <class T>
void iota_of_integers(const Call& call, Stream stream) {
  const T *start = call.in[0].as<const T>(), *delta = call.in[1].as<const T>();
  T* to = call.out[0].as<T>();
  each(stream, call.out[0].elements(),
       [=] __device__(int64_t i) { to[i] = *start + static_cast<T>(i) * *delta; });
}
void iota(const Call& call, Stream stream) {
  if (call.out[0].dtype == DType::i64) return iota_of_integers<uint64_t>(call, stream);
  if (call.out[0].dtype == DType::i32) return iota_of_integers<uint32_t>(call, stream);
  const float *start = call.in[0].as<const float>(), *delta = call.in[1].as<const float>();
  float* out = call.out[0].as<float>();
  each(stream, call.out[0].elements(), [=] __device__(int64_t i) {
    put(out + i, fma(set1(static_cast<float>(i)), load(delta), load(start)));
  });
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_ROW_IS(name, enqueue_of)    \
  extern const Kernel INVAR_ROW_OF(name); \
  const Kernel INVAR_ROW_OF(name) = {.op = #name, .isa = INVAR_ISA, .enqueue = enqueue_of};
#define INVAR_EACH(name) INVAR_ROW_IS(name, INVAR_ISA_NS::run<Move::name>)
INVAR_MOVES(INVAR_EACH)
#undef INVAR_EACH
INVAR_ROW_IS(concat, INVAR_ISA_NS::concat)
INVAR_ROW_IS(trilu, INVAR_ISA_NS::trilu)
INVAR_ROW_IS(reverse_sequence, INVAR_ISA_NS::reverse_sequence)
INVAR_ROW_IS(one_hot, INVAR_ISA_NS::one_hot)
INVAR_ROW_IS(iota, INVAR_ISA_NS::iota)
#undef INVAR_ROW_IS

}  // namespace invar::ops
