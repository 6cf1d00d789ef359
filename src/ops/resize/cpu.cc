// CPU resize, separable: each operand row is interpolated along the last axis once and cached per
// worker, then rows are blended. Nearest copies rows.
#include <cstring>

#include "kernels/cpu/vector_io.h"
#include "ops/resize/resize.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// out[i] = the FMA chain over the taps of i, all within row x.
template <int kTaps>
INVAR_INLINE void interpolate_row_taps(float* out, const float* x, const ResizeTable& t, int64_t n,
                                       int taps) {
  const int many = kTaps ? kTaps : taps;
  strip_exact(
      out, n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
        F c = zero();
        for (int k = 0; k < many; ++k) {
          alignas(64) float v[kW] = {};
          const int32_t* index = t.index + k * n + i;
          for (int j = 0; j < lanes; ++j) v[j] = x[index[j]];
          const float* w = t.weight + k * n + i;
          c = fma(lanes == kW ? load(w) : load_n(w, lanes), load(v), c);  // resize.2
        }
        return c;
      });
}
INVAR_INLINE void interpolate_row(float* out, const float* x, const ResizeTable& t, int64_t n, int taps) {
  if (taps == 2)
    interpolate_row_taps<2>(out, x, t, n, taps);
  else if (taps == 4)
    interpolate_row_taps<4>(out, x, t, n, taps);
  else
    interpolate_row_taps<0>(out, x, t, n, taps);
}

// c = fma(w, row, c), one row after another; the first starts at +0. `last`: under the store rule.
template <int kRows>
INVAR_INLINE void blend(float* y, const float* const* row, const float* w, int64_t n, bool first, bool last) {
  auto chain = [&](int64_t i, int lanes) __attribute__((always_inline)) {
    F c = first ? zero() : get_part<F32>(y + i, lanes);
#pragma GCC unroll 4
    for (int k = 0; k < kRows; ++k)  // resize.2
      c = fma(set1(w[k]), get_part<F32>(row[k] + i, lanes), c);
    return c;
  };
  if (last)
    strip(y, n, chain);
  else
    strip_exact(y, n, chain);
}

struct InterpolatedRows {
  const Resize& r;
  const Call& call;
  int64_t index[kMaxRank];  // of the result row
  int64_t n;                // elements per result row
  float *work, *cache;
  int64_t* number;  // operand rows in the cache

  // The row at offset `at`, which the axes before `axis` determined.
  INVAR_INTERNAL const float* row(InterpolatedRows& s, int axis, int64_t at) {
    for (; axis < s.r.rank - 1 && s.r.axis[axis].kept; ++axis) at = at * s.r.axis[axis].in + s.index[axis];
    const ResizeAxis& a = s.r.axis[axis];
    if (axis < s.r.rank - 1) {
      float* y = s.work + axis * s.n;
      blend_rows(s, axis, at, y, false);
      return y;
    }
    const float* x = s.call.in[0].as<const float>() + at * a.in;
    if (a.kept) return x;
    const int64_t slot = at % kResizeRows;
    float* y = s.cache + slot * s.n;
    if (s.number[slot] != at)
      interpolate_row(y, x, table_of(s.r, axis, s.call.shared), s.n, a.taps), s.number[slot] = at;
    return y;
  }
  // y = the FMA chain over the rows at the taps of `axis`. Rows along the last axis stay in the
  // cache while a few are used.
  INVAR_INTERNAL void blend_rows(InterpolatedRows& s, int axis, int64_t at, float* y, bool stored) {
    const ResizeAxis& a = s.r.axis[axis];
    const ResizeTable t = table_of(s.r, axis, s.call.shared);
    const int many = a.taps <= 4 && axis + 2 == s.r.rank ? a.taps : 1;
    for (int k = 0; k < a.taps; k += many) {
      const float* rows[4];
      float w[4];
      for (int j = 0; j < many; ++j) {
        const int64_t tap = (k + j) * a.out + s.index[axis];
        w[j] = t.weight[tap];
        rows[j] = row(s, axis + 1, at * a.in + t.index[tap]);
      }
      const bool first = k == 0, last = stored && k + many == a.taps;
      if (many == 2)
        blend<2>(y, rows, w, s.n, first, last);
      else if (many == 4)
        blend<4>(y, rows, w, s.n, first, last);
      else
        blend<1>(y, rows, w, s.n, first, last);
    }
  }
};

void interpolate(const Resize& r, const Call& call, int64_t begin, int64_t end, void* scratch) {
  const View& out = call.out[0];
  InterpolatedRows s{r, call, {}, last_dim(out), nullptr, nullptr, static_cast<int64_t*>(scratch)};
  s.work = reinterpret_cast<float*>(s.number + kResizeRows);
  s.cache = s.work + kMaxRank * s.n;
  for (int64_t i = 0; i < kResizeRows; ++i) s.number[i] = -1;
  const float extrapolation = num::canonicalize(ResizeAttributes(call).extrapolation);
  for (int64_t o = begin; o < end; ++o) {
    float* y = out.as<float>() + o * s.n;
    bool outside = false;
    int64_t rest = o, at = 0;
    for (int d = r.rank - 2; d >= 0; --d) {
      s.index[d] = rest % out.dim[d], rest /= out.dim[d];
      outside |= !r.axis[d].kept && table_of(r, d, call.shared).outside[s.index[d]];
    }
    if (outside) {
      for (int64_t i = 0; i < s.n; ++i) y[i] = extrapolation;
      continue;
    }
    int axis = 0;
    for (; axis < r.rank - 1 && r.axis[axis].kept; ++axis) at = at * r.axis[axis].in + s.index[axis];
    if (axis < r.rank - 1) {
      InterpolatedRows::blend_rows(s, axis, at, y, true);
    } else {
      const float* x = InterpolatedRows::row(s, axis, at);
      strip(
          y, s.n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
            return get_part<F32>(x + i, lanes);
          });
    }
    if (r.coordinates != Coordinates::crop_and_resize || r.axis[r.rank - 1].kept) continue;
    const ResizeTable t = table_of(r, r.rank - 1, call.shared);
    for (int64_t i = 0; i < s.n; ++i) y[i] = t.outside[i] ? extrapolation : y[i];
  }
}

// Whether a row of the result has each element of an operand's row twice.
INVAR_INLINE bool is_doubled(const ResizeAxis& a, const ResizeTable& t, int64_t n) {
  if (a.kept || n != 2 * a.in) return false;
  for (int64_t i = 0; i < n; ++i)
    if (t.index[i] != i / 2) return false;
  return true;
}
template <class T>
INVAR_INLINE void nearest(const Resize& r, const Call& call, int64_t begin, int64_t end) {
  const View& out = call.out[0];
  const int last = r.rank - 1;
  const ResizeAxis& a = r.axis[last];
  const int64_t n = last_dim(out), in = a.in;
  const ResizeTable t = table_of(r, last, call.shared);
  // Outside elements get the extrapolation value in f32, else 0.
  const float value = out.dtype == DType::f32 ? num::canonicalize(ResizeAttributes(call).extrapolation) : 0;
  T none{};
  std::memcpy(&none, &value, sizeof(T) < 4 ? sizeof(T) : 4);
  const bool crops = r.coordinates == Coordinates::crop_and_resize;
  const bool doubled = !crops && is_doubled(a, t, n);
  int64_t before = -1;  // the operand row of the previous result row
  for (int64_t o = begin; o < end; ++o) {
    T* y = out.as<T>() + o * n;
    bool outside = false;
    int64_t rest = o, at = 0, step = 1;
    for (int d = last - 1; d >= 0; --d) {
      const int64_t i = rest % out.dim[d];
      rest /= out.dim[d];
      const ResizeTable of = table_of(r, d, call.shared);
      outside |= !r.axis[d].kept && of.outside[i];
      at += (r.axis[d].kept ? i : of.index[i]) * step, step *= r.axis[d].in;
    }
    const T* x = call.in[0].as<const T>() + at * in;
    if (outside) {
      for (int64_t i = 0; i < n; ++i) y[i] = none;
      at = -1;
    } else if (a.kept) {
      std::memcpy(y, x, static_cast<size_t>(n) * sizeof(T));
    } else if (at == before) {
      std::memcpy(y, y - n, static_cast<size_t>(n) * sizeof(T));
    } else if (doubled) {
      for (int64_t i = 0; i < in; ++i) y[2 * i] = y[2 * i + 1] = x[i];
    } else {
      for (int64_t i = 0; i < n; ++i) y[i] = x[t.index[i]];
      for (int64_t i = 0; i < n && crops; ++i)
        if (t.outside[i]) y[i] = none;
    }
    before = at;
  }
}

void run(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const Resize r = resize_of(call);
  if (phase == 0) return resize_tables(r, call.shared, begin, end);
  if (r.order != 0) return interpolate(r, call, begin, end, scratch);
  switch (size_of(call.out[0].dtype)) {
    case 1: return nearest<uint8_t>(r, call, begin, end);
    case 2: return nearest<uint16_t>(r, call, begin, end);
    case 4: return nearest<uint32_t>(r, call, begin, end);
    default: nearest<uint64_t>(r, call, begin, end);
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW;
const CpuKernel INVAR_ROW = {.op = "resize",
                             .isa = INVAR_ISA,
                             .phases = 2,
                             .units = resize_units,
                             .run = INVAR_ISA_NS::run,
                             .scratch_bytes = resize_scratch,
                             .shared_bytes = resize_shared};

}  // namespace invar::ops
