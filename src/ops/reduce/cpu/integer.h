// Reductions of integers and bool (reduce.11, reduce.12): sums and products wrap, so the
// order is free. Included by the rows of all instruction sets.
#pragma once
#include "kernels/cpu/vector_io.h"
#include "ops/reduce/reduce.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

enum class IntegerOp { none, sum, mean, prod, max, min, l1, squares };

// T: the element type, U: the unsigned type of its size.
template <IntegerOp kOp, class T, class U, bool kTruth = false>
struct IntegerReduction {
  static constexpr bool kSigned = static_cast<T>(-1) < 0;
  static constexpr T kLeast = kSigned ? static_cast<T>(U{1} << (8 * sizeof(T) - 1)) : T{0};
  static constexpr T kMost = kTruth ? T{1} : static_cast<T>(~static_cast<U>(kLeast));
  static constexpr T kStart = kOp == IntegerOp::prod  ? T{1}
                              : kOp == IntegerOp::max ? kLeast
                              : kOp == IntegerOp::min ? kMost
                                                      : T{0};

  INVAR_INLINE T join(T a, T b) {
    if (kOp == IntegerOp::max) return a > b ? a : b;
    if (kOp == IntegerOp::min) return a < b ? a : b;
    if (kOp == IntegerOp::prod) return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  }
  INVAR_INLINE T step(T acc, T x) {
    U u = static_cast<U>(x);
    if (kTruth) return join(acc, x != 0);
    if constexpr (kOp == IntegerOp::l1) return join(acc, static_cast<T>(x < 0 ? U{0} - u : u));
    if (kOp == IntegerOp::squares) return join(acc, static_cast<T>(u * u));
    return join(acc, x);
  }
  INVAR_INLINE T finish(T total, int64_t n) {
    return kOp != IntegerOp::mean ? total : n ? static_cast<T>(total / n) : T{0};
  }

  // Elements [begin, end) of a row along memory.
  INVAR_INLINE T reduce_contiguous(const Reduction& r, const T* x, int64_t begin, int64_t end) {
    int64_t run = r.reduced.count > 1 ? r.reduced.dim[r.reduced.count - 1] : r.n;
    T total = kStart;
    for (int64_t i = begin; i < end;) {
      int64_t rest = run - i % run, length = rest < end - i ? rest : end - i;
      const T* p = x + StridedDims::offset(r.reduced, i);
      for (int64_t k = 0; k < length; ++k) total = step(total, p[k]);
      i += length;
    }
    return total;
  }
  INVAR_INLINE void reduce_columns(const Reduction& r, const T* x, int64_t begin, int64_t end, int64_t width,
                                   T* total) {
    for (int64_t c = 0; c < width; ++c) total[c] = kStart;
    for (int64_t i = begin; i < end; ++i) {
      const T* p = x + StridedDims::offset(r.reduced, i);
      for (int64_t c = 0; c < width; ++c) total[c] = step(total[c], p[c]);
    }
  }

  // Phase 0: the segments of split rows into call.shared [segment][output], or whole rows into the
  // result. Phase 1: joins the segments.
  INVAR_INLINE void run(const Call& call, int phase, int64_t first, int64_t last, void* scratch) {
    const Reduction r = reduction_of(call);
    const T* x = call.in[0].as<const T>();
    T *out = call.out[0].as<T>(), *partial = static_cast<T*>(call.shared), *total = static_cast<T*>(scratch);
    if (phase == 1) {
      int64_t from = first * kChunk, to = last * kChunk < r.outputs ? last * kChunk : r.outputs;
      for (int64_t o = from; o < to; ++o) {
        T all = kStart;
        for (int64_t g = 0; g < r.segments; ++g) all = join(all, partial[g * r.outputs + o]);
        out[o] = finish(all, r.n);
      }
      return;
    }
    for (int64_t u = first; u < last; ++u) {
      int64_t block = r.split ? u / r.segments : u, g = r.split ? u % r.segments : 0;
      int64_t begin = g * num::kRowSegment, end = r.split ? begin + num::kRowSegment : r.n;
      if (end > r.n) end = r.n;
      T* to = r.split ? partial + g * r.outputs : out;
      if (!r.columnwise) {
        int64_t rows = r.split ? 1 : r.rows, row = block * rows;
        for (int64_t stop = row + rows; row < stop && row < r.outputs; ++row) {
          T all = reduce_contiguous(r, x + StridedDims::offset(r.kept, row), begin, end);
          to[row] = r.split ? all : finish(all, r.n);
        }
        continue;
      }
      int64_t outer = block / r.blocks, from = block % r.blocks * r.width;
      int64_t width = r.inner - from < r.width ? r.inner - from : r.width;
      reduce_columns(r, x + StridedDims::offset(r.kept, outer) + from, begin, end, width, total);
      for (int64_t c = 0; c < width; ++c)
        to[outer * r.inner + from + c] = r.split ? total[c] : finish(total[c], r.n);
    }
  }
};

template <IntegerOp kOp>
void run_integers(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  switch (call.in[0].dtype) {
    case DType::i64: return IntegerReduction<kOp, int64_t, uint64_t>::run(call, phase, begin, end, scratch);
    case DType::i32: return IntegerReduction<kOp, int32_t, uint32_t>::run(call, phase, begin, end, scratch);
    default: break;
  }
  if constexpr (kOp == IntegerOp::max || kOp == IntegerOp::min) switch (call.in[0].dtype) {
      case DType::i8: return IntegerReduction<kOp, int8_t, uint8_t>::run(call, phase, begin, end, scratch);
      case DType::u8: return IntegerReduction<kOp, uint8_t, uint8_t>::run(call, phase, begin, end, scratch);
      default: return IntegerReduction<kOp, uint8_t, uint8_t, true>::run(call, phase, begin, end, scratch);
    }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
