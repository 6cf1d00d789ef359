// Copies elements of one size in result order, as runs along the innermost axis. Compiled once per
// instruction set.
#pragma once
#include <cstring>

#include "ops/move/walk.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

template <class T>
INVAR_INLINE void fill(T* to, T value, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = value;
}

// n elements, `stride` apart.
template <class T>
INVAR_INLINE void copy(T* to, const T* from, int64_t n, int64_t stride) {
  if (stride == 1)
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  else if (stride == 0)
    fill(to, *from, n);
  else if (stride == -1)
    for (int64_t i = 0; i < n; ++i) to[i] = from[-i];
  else if (stride == 2)
    for (int64_t i = 0; i < n; ++i) to[i] = from[2 * i];
  else
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
}

template <int N, class T>
INVAR_INLINE void short_rows(T* to, const T* from, int64_t rows, int64_t row_stride, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r)
    for (int i = 0; i < N; ++i) to[r * N + i] = from[r * row_stride + i * stride];
}
template <class T>
INVAR_INLINE void copy_rows(T* to, const T* from, int64_t rows, int64_t n, int64_t row_stride,
                            int64_t stride) {
  switch (n) {
    case 1: return short_rows<1>(to, from, rows, row_stride, stride);
    case 2: return short_rows<2>(to, from, rows, row_stride, stride);
    case 3: return short_rows<3>(to, from, rows, row_stride, stride);
    case 4: return short_rows<4>(to, from, rows, row_stride, stride);
    case 6: return short_rows<6>(to, from, rows, row_stride, stride);
    case 8: return short_rows<8>(to, from, rows, row_stride, stride);
  }
  bool tiny = n * static_cast<int64_t>(sizeof(T)) < 64;
  for (int64_t r = 0; r < rows; ++r, to += n, from += row_stride) {
    if (tiny)
      for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
    else
      copy(to, from, n, stride);
  }
}

// The position on the outer axes: their parts of the operand offset, and how many are out of
// bounds.
struct MoveCursor {
  int64_t index[kMaxRank], part[kMaxRank], at;
  int outside;
  INVAR_INLINE void enter(MoveCursor& p, const MoveLoops& w, int d) {
    const MoveRun piece = move_run(w.axis[d], p.index[d], 1);
    p.part[d] = piece.outside ? kOutside : piece.at;
    if (piece.outside)
      ++p.outside;
    else
      p.at += piece.at;
  }
  INVAR_INLINE void leave(MoveCursor& p, int d) {
    if (p.part[d] == kOutside)
      --p.outside;
    else
      p.at -= p.part[d];
  }
  INVAR_INLINE MoveCursor of(const MoveLoops& w, int64_t row) {
    MoveCursor p{};
    for (int d = w.rank - 2; d >= 0; --d) {
      p.index[d] = row % w.axis[d].size;
      row /= w.axis[d].size;
      enter(p, w, d);
    }
    return p;
  }
  // Advances by `rows`, which end with the second innermost axis at the latest.
  INVAR_INLINE void next(MoveCursor& p, const MoveLoops& w, int64_t rows) {
    for (int d = w.rank - 2; d >= 0; --d, rows = 1) {
      leave(p, d);
      p.index[d] += rows;
      bool wraps = p.index[d] == w.axis[d].size;
      if (wraps) p.index[d] = 0;
      enter(p, w, d);
      if (!wraps) return;
    }
  }
  static constexpr int64_t kOutside = INT64_MIN;
};

template <class T>
INVAR_INTERNAL void copy_runs(const MoveLoops& w, const T* x, T value, T* out, int64_t i, int64_t to) {
  const MoveAxis inner = w.axis[w.rank - 1];
  const bool plane =
      w.rank > 1 && inner.pad_mode == PadMode::none && w.axis[w.rank - 2].pad_mode == PadMode::none;
  MoveCursor p = MoveCursor::of(w, i / inner.size);
  int64_t from = i % inner.size;
  while (i < to) {
    if (plane && from == 0 && p.outside == 0 && to - i >= inner.size) {
      int64_t rows = w.axis[w.rank - 2].size - p.index[w.rank - 2], whole = (to - i) / inner.size;
      if (whole < rows) rows = whole;
      copy_rows(out + i, x + p.at, rows, inner.size, w.axis[w.rank - 2].stride, inner.stride);
      i += rows * inner.size;
      MoveCursor::next(p, w, rows);
      continue;
    }
    int64_t count = inner.size - from < to - i ? inner.size - from : to - i;
    if (p.outside) {
      fill(out + i, value, count);
    } else {
      for (int64_t done = 0; done < count;) {
        const MoveRun piece = move_run(inner, from + done, count - done);
        if (piece.outside)
          fill(out + i + done, value, piece.count);
        else
          copy(out + i + done, x + p.at + piece.at, piece.count, piece.stride);
        done += piece.count;
      }
    }
    i += count, from = 0;
    MoveCursor::next(p, w, 1);
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
