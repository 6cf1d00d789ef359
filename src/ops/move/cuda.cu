// Data movement on a GPU: a thread for each pack of results, or, if an axis is transposed, a block
// for each square tile of two axes, through shared memory.
#include "kernels/cuda/fast_divide.h"
#include "kernels/cuda/vectorized_loop.h"
#include "ops/move/cuda/join.h"
#include "ops/move/walk.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// Calls f(T{}) with an unsigned integer type of the element's size.
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
// The widest access, in bytes, for copies of `bytes` between such addresses.
size_t unit_of(size_t bytes, const void* from, const void* to) {
  size_t unit = 16;
  while ((bytes | reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to)) % unit) unit /= 2;
  return unit;
}

// A MoveLoops for a kernel that copies `pack` neighbours along the innermost axis at a time.
struct CopyAxes {
  int rank;
  int64_t base;
  struct {
    FastDivmod size, period;
    int64_t stride, length, shift;  // j = i + shift; with a period modulo it, which makes it positive
    PadMode pad_mode;
  } axis[kMaxRank];
};
CopyAxes copy_axes(const MoveLoops& w, int64_t pack) {
  CopyAxes a{.rank = w.rank, .base = w.base};
  for (int d = 0; d < w.rank; ++d) {
    const MoveAxis& from = w.axis[d];
    auto& to = a.axis[d];
    const int64_t per = d == w.rank - 1 ? pack : 1;
    to.size = FastDivmod(from.size / per);
    to.stride = from.stride * per, to.length = from.length, to.shift = -from.begin,
    to.pad_mode = from.pad_mode;
    if (from.pad_mode != PadMode::reflect && from.pad_mode != PadMode::wrap) continue;
    const int64_t period = from.pad_mode == PadMode::wrap ? from.length
                           : from.length > 1              ? 2 * from.length - 2
                                                          : 1;
    to.period = FastDivmod(period);
    if (to.shift < 0) to.shift += ceil_div(-to.shift, period) * period;
  }
  return a;
}
// The offset from which result i is copied, or -1 outside of the operand.
__device__ int64_t source(const CopyAxes& a, int64_t i) {
  int64_t at = a.base;
  bool outside = false;
  for (int d = a.rank - 1; d >= 0; --d) {
    const auto& axis = a.axis[d];
    int64_t j = axis.size.remainder(i) + axis.shift;
    if (axis.pad_mode == PadMode::constant) {
      outside |= j < 0 || j >= axis.length;
    } else if (axis.pad_mode == PadMode::edge) {
      j = j < 0 ? 0 : j < axis.length ? j : axis.length - 1;
    } else if (axis.pad_mode != PadMode::none) {
      int64_t rest = j;
      j = axis.period.remainder(rest);
      if (axis.pad_mode == PadMode::reflect && j >= axis.length) j = 2 * (axis.length - 1) - j;
    }
    at += j * axis.stride;
  }
  return outside ? -1 : at;
}

// repeats: a pack is one element repeated.
template <class T, int n>
__global__ void __launch_bounds__(kElementwiseThreads)
    strided_copy_kernel(int64_t packs, CopyAxes axes, bool repeats, const T* x, const T* value, T* out) {
  const int64_t i = blockIdx.x * int64_t{kElementwiseThreads} + threadIdx.x;
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
void strided_copy_elements(const CopyAxes& a, const T* x, const T* value, T* out, int64_t n, Stream stream) {
  const CopyAxes axes = a;
  launch_generate(stream, n, out, [=] __device__(int64_t i) {
    const int64_t at = source(axes, i);
    return at >= 0 ? x[at] : value ? *value : T{0};
  });
}
template <class T>
void strided_copy(const MoveLoops& w, const T* x, const T* value, T* out, int64_t n, Stream stream) {
  constexpr int kPack = 16 / sizeof(T);
  const MoveAxis& inner = w.axis[w.rank - 1];
  const bool repeats = inner.stride == 0;
  bool packs = inner.pad_mode == PadMode::none && (repeats || inner.stride == 1) && inner.size % kPack == 0;
  packs &= is_aligned<kPack>(out) && (repeats || (is_aligned<kPack>(x) && w.base % kPack == 0));
  for (int d = 0; d + 1 < w.rank; ++d) packs &= repeats || w.axis[d].stride % kPack == 0;
  if (!packs) return strided_copy_elements(copy_axes(w, 1), x, value, out, n, stream);
  launch(strided_copy_kernel<T, kPack>, dim3(static_cast<unsigned>(ceil_div(n / kPack, kElementwiseThreads))),
         dim3(kElementwiseThreads), 0, stream, n / kPack, copy_axes(w, kPack), repeats, x, value, out);
}

// The side of a transposed square: a line of it has 128 bytes if possible.
template <class T>
constexpr int kTransposeTile = sizeof(T) < 4 ? 64 : 32;
constexpr int kTransposeRows = 8;
struct TransposeShape {
  FastDivmod groups, blocks;  // squares along the result's innermost axis, along the operand's
  int64_t inner, contiguous_axis, inner_stride, along_step;
  int rank;  // the other axes: their sizes, strides in the operand, steps in the result
  FastDivmod size[kMaxRank];
  int64_t stride[kMaxRank], step[kMaxRank];
};
template <class T>
__global__ void __launch_bounds__(kWarp* kTransposeRows)
    transpose_kernel(TransposeShape t, const T* x, T* out) {
  constexpr int kN = kTransposeTile<T>;
  __shared__ T square[kN][kN + (sizeof(T) < 4 ? 4 / sizeof(T) : 1)];
  int64_t rest = blockIdx.x;
  const int64_t k = t.groups.remainder(rest) * kN, j = t.blocks.remainder(rest) * kN;
  int64_t from = k * t.inner_stride + j, to = j * t.along_step + k;
  for (int d = 0; d < t.rank; ++d) {
    const int64_t i = t.size[d].remainder(rest);
    from += i * t.stride[d], to += i * t.step[d];
  }
#pragma unroll
  for (int r = 0; r < kN; r += kTransposeRows)
#pragma unroll
    for (int c = 0; c < kN; c += kWarp) {
      const int row = r + threadIdx.y, column = c + threadIdx.x;
      if (k + row < t.inner && j + column < t.contiguous_axis)
        square[row][column] = x[from + row * t.inner_stride + column];
    }
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kN; r += kTransposeRows)
#pragma unroll
    for (int c = 0; c < kN; c += kWarp) {
      const int row = r + threadIdx.y, column = c + threadIdx.x;
      if (j + row < t.contiguous_axis && k + column < t.inner)
        out[to + row * t.along_step + column] = square[column][row];
    }
}
template <class T>
void transpose(const MoveLoops& w, const T* x, T* out, Stream stream) {
  const MoveAxis &inner = w.axis[w.rank - 1], &contiguous_axis = w.axis[w.contiguous_axis];
  const int64_t groups = ceil_div(inner.size, kTransposeTile<T>),
                blocks = ceil_div(contiguous_axis.size, kTransposeTile<T>);
  TransposeShape t{.groups = FastDivmod(groups),
                   .blocks = FastDivmod(blocks),
                   .inner = inner.size,
                   .contiguous_axis = contiguous_axis.size,
                   .inner_stride = inner.stride};
  int64_t squares = groups * blocks, step = 1;
  for (int d = w.rank - 1; d >= 0; --d) {
    if (d == w.contiguous_axis) {
      t.along_step = step;
    } else if (d < w.rank - 1) {
      t.size[t.rank] = FastDivmod(w.axis[d].size);
      t.stride[t.rank] = w.axis[d].stride, t.step[t.rank] = step;
      ++t.rank, squares *= w.axis[d].size;
    }
    step *= w.axis[d].size;
  }
  launch(transpose_kernel<T>, dim3(static_cast<unsigned>(squares)), dim3(kWarp, kTransposeRows), 0, stream, t,
         x + w.base, out);
}

template <Move move>
void run(const Call& call, Stream stream) {
  const int64_t n = call.out[0].elements();
  if (n == 0) return;
  const MoveLoops w = move_loops(move, call);
  with_size(size_of(call.out[0].dtype), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (sizeof(T) <= 8) {
      const T* x = call.in[0].as<const T>();
      T* out = call.out[0].as<T>();
      if (w.contiguous_axis >= 0) return transpose(w, x, out, stream);
      strided_copy(w, x, call.in.size() > 1 ? call.in[1].as<const T>() : nullptr, out, n, stream);
    }
  });
}

// Copies rows of `part` bytes to rows that are `width` bytes apart.
template <class T>
void copy_rows(const void* from, void* to, int64_t rows, int64_t part, int64_t width, Stream stream) {
  const T* x = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  const int64_t n = part / static_cast<int64_t>(sizeof(T)), step = width / static_cast<int64_t>(sizeof(T));
  const FastDivmod by_n(n);
  launch_for_each(stream, rows * n, [=] __device__(int64_t i) {
    int64_t row = i;
    const int64_t at = by_n.remainder(row);
    out[row * step + at] = x[i];
  });
}
void concat(const Call& call, Stream stream) {
  const View& out = call.out[0];
  const int64_t axis = ConcatAttributes(call).axis;
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
  const TriluAttributes a(call);
  const bool upper = a.upper != 0;
  const int64_t n = last_dim(x), rows = x.dim[x.rank - 2];
  int64_t k = a.k;
  k = k < -rows ? -rows : k > n ? n : k;
  const T* from = x.as<const T>();
  T* to = call.out[0].as<T>();
  const FastDivmod by_n(n), by_rows(rows);
  launch_generate(stream, x.elements(), to, [=] __device__(int64_t i) {
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
  const bool second = ReverseSequenceAttributes(call).time_axis != 0;  // time is the second dimension
  const int64_t inner = bytes / static_cast<int64_t>(sizeof(T)), width = x.dim[1], time = x.dim[second];
  const T* from = x.as<const T>();
  T* to = call.out[0].as<T>();
  const int64_t* lengths = call.in[1].as<const int64_t>();
  const FastDivmod by_inner(inner), by_width(width);
  launch_generate(stream, x.dim[0] * width * inner, to, [=] __device__(int64_t i) {
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
  const int64_t axis = OneHotAttributes(call).axis, depth = out.dim[axis];
  int64_t inner = 1;
  for (int d = static_cast<int>(axis) + 1; d < out.rank; ++d) inner *= out.dim[d];
  const I* index = call.in[0].as<const I>();
  const T* values = call.in[1].as<const T>();
  T* to = out.as<T>();
  const FastDivmod by_inner(inner), by_depth(depth);
  launch_generate(stream, out.elements(), to, [=] __device__(int64_t i) {
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
  launch_for_each(stream, call.out[0].elements(),
                  [=] __device__(int64_t i) { to[i] = *start + static_cast<T>(i) * *delta; });
}
void iota(const Call& call, Stream stream) {
  if (call.out[0].dtype == DType::i64) return iota_of_integers<uint64_t>(call, stream);
  if (call.out[0].dtype == DType::i32) return iota_of_integers<uint32_t>(call, stream);
  const float *start = call.in[0].as<const float>(), *delta = call.in[1].as<const float>();
  float* out = call.out[0].as<float>();
  launch_for_each(stream, call.out[0].elements(), [=] __device__(int64_t i) {
    store_canonical(out + i, fma(set1(static_cast<float>(i)), load(delta), load(start)));
  });
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_ROW_IS(name, enqueue_of)       \
  extern const GpuKernel INVAR_ROW_OF(name); \
  const GpuKernel INVAR_ROW_OF(name) = {.op = #name, .isa = INVAR_ISA, .enqueue = enqueue_of};
#define INVAR_EACH(name) INVAR_ROW_IS(name, INVAR_ISA_NS::run<Move::name>)
INVAR_MOVES(INVAR_EACH)
#undef INVAR_EACH
INVAR_ROW_IS(concat, INVAR_ISA_NS::concat)
static const GpuJoinKernel join_of_concat{"concat", INVAR_ISA_NS::join_mailbox_bytes,
                                          INVAR_ISA_NS::enqueue_join};
static const RegisteredJoin registered_join(join_of_concat);
INVAR_ROW_IS(trilu, INVAR_ISA_NS::trilu)
INVAR_ROW_IS(reverse_sequence, INVAR_ISA_NS::reverse_sequence)
INVAR_ROW_IS(one_hot, INVAR_ISA_NS::one_hot)
INVAR_ROW_IS(iota, INVAR_ISA_NS::iota)
#undef INVAR_ROW_IS

}  // namespace invar::ops
