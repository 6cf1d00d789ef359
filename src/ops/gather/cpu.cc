// CPU gather and scatter: copies of slices with prefetching; updates in order per row of the
// result.
#include <cstring>

#include "kernels/cpu/vector_io.h"
#include "ops/gather/index.h"
#include "weights/packed_rows.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// Rows are at random addresses, so the hardware prefetcher misses them.
constexpr int64_t kPrefetchRows = 6;

INVAR_INLINE int64_t range_end(const Call& call, int64_t end) {
  int64_t n = call.out[0].elements();
  return end * kChunk < n ? end * kChunk : n;
}
INVAR_INLINE void prefetch(const void* p, int64_t bytes) {
  for (int64_t at = 0; at < bytes && at < 512; at += 64) __builtin_prefetch(static_cast<const char*>(p) + at);
}

// Copies of stored formats: Out elements from In elements, and the out-of-bounds value.
template <class W>
struct CopyWidened {  // gather.2
  using In = typename W::T;
  using Out = float;
  INVAR_INLINE void copy(Out* to, const In* from, int64_t n) {
    strip_exact(
        to, n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
          return canonical_nan(get_part<W>(from + i, lanes));
        });
  }
  INVAR_INLINE Out one(In x) {
    float v = W::one(x);
    return v == v ? v : num::f32_from_bits(0x7fc00000);
  }
};
template <class T>
struct CopyBits {
  using In = T;
  using Out = T;
  INVAR_INLINE void copy(T* to, const T* from, int64_t n) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  }
  INVAR_INLINE T one(T x) { return x; }
};
// Calls f(copy) for an operand of type t whose result is of type `out`.
template <class Fn>
INVAR_INLINE void with_copy(DType t, DType out, Fn f) {
  if (out == DType::f32) return with_format(t, [&](auto format) { f(CopyWidened<decltype(format)>{}); });
  switch (size_of(t)) {
    case 1: return f(CopyBits<uint8_t>{});
    case 2: return f(CopyBits<uint16_t>{});
    case 4: return f(CopyBits<uint32_t>{});
    default: f(CopyBits<uint64_t>{});
  }
}
template <class T>
INVAR_INLINE T as_bits(uint64_t bits) {
  if constexpr (sizeof(T) == 8)
    return __builtin_bit_cast(T, bits);
  else if constexpr (sizeof(T) == 4)
    return __builtin_bit_cast(T, static_cast<uint32_t>(bits));
  else
    return static_cast<T>(bits);
}

// Results [i, to) are runs of `inner` elements; run r begins at x + offset(r), or is out of bounds
// if offset(r) < 0.
template <class C, class Offset>
INVAR_INLINE void copy_runs(C, const Call& call, int64_t inner, int64_t i, int64_t to, Offset offset) {
  using In = typename C::In;
  using Out = typename C::Out;
  const In* x = call.in[0].as<const In>();
  Out* out = call.out[0].as<Out>();
  const Out none = as_bits<Out>(out_of_bounds_value(call.out[0].dtype));
  if (inner == 1) {
    for (; i < to; ++i) {
      int64_t at = offset(i);
      out[i] = at < 0 ? none : C::one(x[at]);
    }
    return;
  }
  for (int64_t r = i / inner, last = (to - 1) / inner; i < to; ++r) {
    int64_t from = i - r * inner, n = inner - from < to - i ? inner - from : to - i, at = offset(r);
    if (int64_t next = r + kPrefetchRows <= last ? offset(r + kPrefetchRows) : -1; next >= 0)
      prefetch(x + next, inner * static_cast<int64_t>(sizeof(In)));
    if (at >= 0)
      C::copy(out + i, x + at + from, n);
    else
      for (int64_t j = 0; j < n; ++j) out[i + j] = none;
    i += n;
  }
}

// Rows of a table in blocks of a format (kernels/blocks/block_readers.h) are unpacked when they
// are asked for.
void gather_blocks(const Call& call, const AxisExtents& a, int64_t i, int64_t to) {
  const weights::PackedRows& rows = *call.in[0].as<const weights::PackedRows>();
  const weights::Format& f = *rows.format;
  const auto* index = call.in[1].as<const int64_t>();
  auto* const out = call.out[0].as<float>();
  for (float numbers[weights::kLargestBlock]; i < to;) {
    const int64_t r = i / a.inner, at = i % a.inner, block = at / f.block, from = at % f.block;
    const int64_t n = f.block - from < to - i ? f.block - from : to - i, row = normalize_index(index[r], a.n);
    if (row >= 0) f.unpack(rows.row(row) + block * f.bytes, numbers);
    for (int64_t k = 0; k < n; ++k) out[i + k] = row < 0 ? num::f32_from_bits(0x7fc00000) : numbers[from + k];
    i += n;
  }
}

void gather(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View& x = call.in[0];
  const AxisExtents a = axis_extents(x, GatherAttributes(call).axis);
  const int64_t *index = call.in[1].as<const int64_t>(), m = call.in[1].elements();
  if (x.packed) return gather_blocks(call, a, begin * kChunk, range_end(call, end));
  with_copy(x.dtype, call.out[0].dtype, [&](auto copy) {
    if (a.outer == 1)
      return copy_runs(copy, call, a.inner, begin * kChunk, range_end(call, end), [&](int64_t r) {
        int64_t j = normalize_index(index[r], a.n);
        return j < 0 ? -1 : j * a.inner;
      });
    copy_runs(copy, call, a.inner, begin * kChunk, range_end(call, end), [&](int64_t r) {
      int64_t j = normalize_index(index[r % m], a.n);
      return j < 0 ? -1 : (r / m * a.n + j) * a.inner;
    });
  });
}

void gather_nd(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View& x = call.in[0];
  const IndexTuples t = index_tuples(x, call.in[1], GatherNdAttributes(call).batch_dims);
  const int64_t* index = call.in[1].as<const int64_t>();
  with_copy(x.dtype, x.dtype, [&](auto copy) {
    copy_runs(copy, call, t.inner, begin * kChunk, range_end(call, end), [&](int64_t r) {
      int64_t slice = slice_of(t, index + r * t.width);
      return slice < 0 ? -1 : ((t.batches == 1 ? 0 : r / t.count * t.slices) + slice) * t.inner;
    });
  });
}

// Rows of the result along the last dimension; the index selects along the axis.
void gather_elements(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &x = call.in[0], &out = call.out[0];
  int axis = static_cast<int>(GatherElementsAttributes(call).axis);
  if (axis < 0) axis += x.rank;
  int64_t last = range_end(call, end), stride[kMaxRank], step = 1;
  for (int d = x.rank - 1; d >= 0; --d) stride[d] = step, step *= x.dim[d];
  const int64_t *index = call.in[1].as<const int64_t>(), n = x.dim[axis];
  const int inner = x.rank - 1;
  with_copy(x.dtype, out.dtype, [&](auto copy) {
    using C = decltype(copy);
    auto from = x.as<const typename C::In>();
    auto to = out.as<typename C::Out>();
    const auto none = as_bits<typename C::Out>(out_of_bounds_value(out.dtype));
    for (int64_t o = begin * kChunk; o < last;) {
      int64_t rest = o / out.dim[inner], first = o % out.dim[inner], base = 0;
      for (int d = inner - 1; d >= 0; --d) {
        if (d != axis) base += rest % out.dim[d] * stride[d];
        rest /= out.dim[d];
      }
      int64_t along = inner == axis ? 0 : 1;
      for (int64_t i = first; i < out.dim[inner] && o < last; ++i, ++o) {
        int64_t at = normalize_index(index[o], n);
        to[o] = at < 0 ? none : C::one(from[base + at * stride[axis] + along * i]);
      }
    }
  });
}

void copy_operand(const Call& call, int64_t begin, int64_t end) {
  int64_t width = static_cast<int64_t>(size_of(call.out[0].dtype)), from = begin * kChunk,
          to = range_end(call, end);
  if (from < to)
    std::memcpy(call.out[0].as<char>() + from * width, call.in[0].as<const char>() + from * width,
                static_cast<size_t>((to - from) * width));
}

// Units are rows of updates: no two write the same element, and the updates of each row are applied
// in order.
void scatter_elements(const Call& call, int phase, int64_t begin, int64_t end, void*) {
  if (phase == 0) return copy_operand(call, begin, end);
  const View &out = call.out[0], &updates = call.in[2];
  const ScatterRows l = scatter_rows(call);
  int64_t to_stride[kMaxRank], from_stride[kMaxRank], to_step = 1, from_step = 1;
  for (int d = out.rank - 1; d >= 0; --d) {
    to_stride[d] = to_step, from_stride[d] = from_step;
    to_step *= out.dim[d], from_step *= updates.dim[d];
  }
  const int64_t n = out.dim[l.axis], beside = to_stride[l.axis], step = from_stride[l.axis];
  const int beyond = l.axis == out.rank - 1 ? out.rank : out.rank - 1;  // the dimensions of rows
  with_reduction(ScatterElementsAttributes(call).reduction, out.dtype, [&](auto zero, auto how) {
    using T = decltype(zero);
    for (int64_t u = begin; u < end; ++u) {
      int64_t row = u / l.blocks, first = u % l.blocks * l.block, to = 0, from = 0;
      for (int d = beyond - 1; d >= 0; --d) {
        if (d == l.axis) continue;
        to += row % updates.dim[d] * to_stride[d], from += row % updates.dim[d] * from_stride[d];
        row /= updates.dim[d];
      }
      const int64_t columns = l.columns - first < l.block ? l.columns - first : l.block;
      for (int64_t k = 0; k < l.length; ++k) {
        const int64_t* index = call.in[1].as<const int64_t>() + from + first + k * step;
        const T* update = updates.as<const T>() + from + first + k * step;
        T* y = out.as<T>() + to + first;
        for (int64_t c = 0; c < columns; ++c) {
          int64_t at = normalize_index(index[c], n);
          if (at >= 0)
            y[at * beside + c] = reduce_update<decltype(how)::value>(y[at * beside + c], update[c]);
        }
      }
    }
  });
}

// Units are slices [first, last) of the result times blocks of their columns; each scans all
// tuples, in order.
void scatter_nd(const Call& call, int phase, int64_t begin, int64_t end, void*) {
  if (phase == 0) return copy_operand(call, begin, end);
  const IndexTuples t = index_tuples(call.in[0], call.in[1], 0);
  const ScatterPartition s = scatter_partition(t);
  const int64_t* index = call.in[1].as<const int64_t>();
  with_reduction(ScatterNdAttributes(call).reduction, call.out[0].dtype, [&](auto zero, auto how) {
    using T = decltype(zero);
    T* out = call.out[0].as<T>();
    const T* updates = call.in[2].as<const T>();
    for (int64_t u = begin; u < end;) {
      const int64_t part = u % s.parts, block = u / s.parts * s.block;
      const int64_t parts = s.parts - part < end - u ? s.parts - part : end - u;  // adjacent units at once
      const int64_t each = (t.slices + s.parts - 1) / s.parts, first = part * each,
                    last = first + parts * each;
      const int64_t columns = t.inner - block < s.block ? t.inner - block : s.block;
      for (int64_t i = 0; i < t.count; ++i) {
        const int64_t slice = slice_of(t, index + i * t.width);
        if (slice < first || slice >= last) continue;
        T* to = out + slice * t.inner + block;
        const T* from = updates + i * t.inner + block;
        for (int64_t c = 0; c < columns; ++c) to[c] = reduce_update<decltype(how)::value>(to[c], from[c]);
      }
      u += parts;
    }
  });
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_ROW_IS(name, phases_of, units_of) \
  extern const CpuKernel INVAR_ROW_OF(name);    \
  const CpuKernel INVAR_ROW_OF(name) = {        \
      .op = #name, .isa = INVAR_ISA, .phases = phases_of, .units = units_of, .run = INVAR_ISA_NS::name};
INVAR_ROW_IS(gather, 1, chunk_units)
INVAR_ROW_IS(gather_elements, 1, chunk_units)
INVAR_ROW_IS(gather_nd, 1, chunk_units)
INVAR_ROW_IS(scatter_elements, 2, scatter_rows_units)
INVAR_ROW_IS(scatter_nd, 2, scatter_partition_units)
#undef INVAR_ROW_IS

}  // namespace invar::ops
