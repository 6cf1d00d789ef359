// Column reductions of a matrix (spec/reduction.md reduction.11): the rows of the specification are
// strided in memory, and many of them are reduced at a time without a transpose. Each step of the
// schedule is a vector operation over adjacent columns.
#pragma once

#include "num/reduce/lanes.h"

namespace invar::num::INVAR_ISA_NS {

// The most columns at a time in reduce_dense (its 256 lanes of them fill half of an L2 cache of 256
// KiB) and in reduce_wide (one page of memory per row; its partial sums stay in the L1 cache).
constexpr int64_t kDenseColumns = 128, kWideColumns = 1024;
constexpr int64_t kWideBuffers = 9;  // the current lane and one partial join per level of the tree

// acc[c] = step(acc[c] or the identity, K further elements) for c < count. K sources at a time: one
// load and one store of acc for K elements. For extremes a step is a join.
template <int K, class Join, class Step>
INVAR_INLINE void accumulate_columns(float* to, bool fresh, const float* const* x, int64_t count, Step step) {
  auto vector = [&](int64_t c, int n) __attribute__((always_inline)) {
    F acc = fresh ? set1(Join::kStart) : load_part(to + c, n);
    if constexpr (Join::kExtreme) {
      Join e = Join::of(acc);
      for (int k = 0; k < K; k += 2)
        Join::take(e, load_part(x[k] + c, n), load_part(x[k + 1 < K ? k + 1 : k] + c, n));
      acc = Join::lanes_of(e);
    } else {
      for (int k = 0; k < K; ++k) acc = step(acc, load_part(x[k] + c, n), c, n);
    }
    store_part(to + c, acc, n);
  };
  int64_t c = 0;
  for (; c + kW <= count; c += kW) vector(c, kW);
  if (c < count) vector(c, static_cast<int>(count - c));
}
template <class Join, class Step>
INVAR_INLINE void accumulate_sources(int sources, float* to, bool fresh, const float* const* x, int64_t count,
                                     Step step) {
  if (sources == 4) accumulate_columns<4, Join>(to, fresh, x, count, step);
  if (sources == 3) accumulate_columns<3, Join>(to, fresh, x, count, step);
  if (sources == 2) accumulate_columns<2, Join>(to, fresh, x, count, step);
  if (sources == 1) accumulate_columns<1, Join>(to, fresh, x, count, step);
}

// to[c] = join(to[c], from[c]).
template <class Join>
INVAR_INLINE void join_columns(float* to, const float* from, int64_t count) {
  const float* x[1] = {from};
  accumulate_columns<1, Join>(
      to, false, x, count,
      [](F a, F b, int64_t, int) __attribute__((always_inline)) { return Join::join(a, b); });
}

// One segment of n <= 4096 elements of each of `width` dense columns: x[i * width + c]. The 256
// lanes of all columns are a matrix, lane[j * width + c], to which 256 rows are added as one
// vector, and whose upper half is joined to its lower half as one vector. step(acc, x) does not
// depend on the column. The results are lane[0 ... width).
template <class Join, class Step>
INVAR_INLINE void reduce_dense(int64_t n, int64_t width, const float* x, Step step, float* lane) {
  int64_t matrix = kRowLanes * width, size = n * width;
  for (int64_t begin = 0; begin < size; begin += 4 * matrix) {
    const float* from[4] = {x + begin, x + begin + matrix, x + begin + 2 * matrix, x + begin + 3 * matrix};
    int64_t left = size - begin, rest = left % matrix;
    int whole = left >= 4 * matrix ? 4 : static_cast<int>(left / matrix);
    auto each = [&](F acc, F v, int64_t, int) __attribute__((always_inline)) {
      return step(acc, v);
    };
    accumulate_sources<Join>(whole, lane, begin == 0, from, matrix, each);
    if (whole < 4 && rest)
      accumulate_columns<1, Join>(lane, begin == 0 && whole == 0, from + whole, rest, each);
  }
  // reduction.4; lanes without elements hold the identity, which changes nothing (reduction.7,
  // reduction.10).
  int64_t lanes = n < kRowLanes ? n : kRowLanes;
  for (int64_t stride = kRowLanes / 2; stride >= 1; stride /= 2)
    if (lanes > stride) {
      join_columns<Join>(lane, lane + stride * width, (lanes - stride) * width);
      lanes = stride;
    }
}

// The lane of a leaf of the tree: the leaves below the join with stride s are the lanes that are
// equal modulo s, so it is the leaf's number with its 8 bits reversed.
INVAR_INLINE uint32_t lane_of_leaf(uint32_t leaf) {
  uint32_t j = leaf & 0xff;
  j = (j & 0xf0) >> 4 | (j & 0x0f) << 4;
  j = (j & 0xcc) >> 2 | (j & 0x33) << 2;
  return (j & 0xaa) >> 1 | (j & 0x55) << 1;
}
// The same for strided columns, whose elements take(lane, i, k, fresh, ahead) adds: rows i, i +
// 256, ... (k of them) of the columns, to lane[0 ... width), which is the start where fresh; row i
// + ahead is soon to follow. Lanes are computed in the order of the tree's leaves, so that only one
// partial join per level is alive. work: kWideBuffers * width floats; the results are its first.
template <class Join, class Take>
INVAR_INLINE void reduce_leaves(int64_t n, int64_t width, Take take, float* work) {
  static_assert(kRowLanes == 256 && kRowSegment <= 16 * kRowLanes);
  int top = 0;  // partial joins on the stack
  bool there[kWideBuffers];
  for (uint32_t leaf = 0; leaf < kRowLanes; ++leaf) {
    const int64_t j = lane_of_leaf(leaf), ahead = int64_t{lane_of_leaf(leaf + 1)} - j;
    float* lane = work + top * width;
    there[top++] = j < n;
    for (int64_t i = j; i < n; i += 4 * kRowLanes) {
      const int64_t left = (n - i + kRowLanes - 1) / kRowLanes;
      take(lane, i, left < 4 ? static_cast<int>(left) : 4, i == j, ahead);
    }
    for (uint32_t done = leaf + 1; done % 2 == 0; done /= 2) {
      --top;
      if (there[top]) join_columns<Join>(work + (top - 1) * width, work + top * width, width);
    }
  }
}
// at(i) is the address of element i of the first column. step(acc, x, c, count): the elements x of
// columns c ... are added to acc.
template <class Join, class At, class Step>
INVAR_INLINE void reduce_wide(int64_t n, int64_t width, At at, Step step, float* work) {
  reduce_leaves<Join>(
      n, width,
      [&](float* lane, int64_t i, int count, bool fresh, int64_t) __attribute__((always_inline)) {
        const float* x[4];
        for (int k = 0; k < count; ++k) x[k] = at(i + k * kRowLanes);
        accumulate_sources<Join>(count, lane, fresh, x, width, step);
      },
      work);
}
// Sums elements that are computed: step(acc, i, c, count) adds row i of columns c ... to acc, and
// prefetch(i, c) prefetches it, since rows far apart defeat the hardware prefetcher. An address
// beyond the tensor is harmless.
template <class Step, class Prefetch>
INVAR_INLINE void sum_wide(int64_t n, int64_t width, Step step, Prefetch prefetch, float* work) {
  reduce_leaves<SumOp>(
      n, width,
      [&](float* lane, int64_t i, int count, bool fresh, int64_t ahead) __attribute__((always_inline)) {
        for (int64_t c = 0; c < width; c += kW) {
          const int columns = width - c < kW ? static_cast<int>(width - c) : kW;
          F acc = fresh ? zero() : load_part(lane + c, columns);
          for (int k = 0; k < count; ++k) {
            prefetch(i + k * kRowLanes + ahead, c);
            acc = step(acc, i + k * kRowLanes, c, columns);
          }
          store_part(lane + c, acc, columns);
        }
      },
      work);
}

}  // namespace invar::num::INVAR_ISA_NS
