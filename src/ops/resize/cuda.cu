// Resizing: kernels fill the tables of the axes; then a thread for each element goes through its
// taps, the last axis innermost.
#include "kernels/cuda/fast_divide.h"
#include "kernels/cuda/vectorized_loop.h"
#include "ops/resize/resize.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// The axes for a kernel, in integers of type I. Neighbouring axes that are not resized are merged.
// The last axis is at the end; missing ones in front have length 1. kFewAxes: enough for images and
// volumes.
constexpr int kFewAxes = 4;
template <class I, int n>
struct ResizeAxes {
  struct {
    FastDivmod out;
    ResizeTable table;
    I in = 1, elements = 1;  // elements: of the table's rows
    int taps = 1;
    bool kept = true;
  } axis[n];
};
bool merges_with_next(const Resize& r, int d) {  // axis d and the next are both unchanged
  return r.axis[d].kept && d + 1 < r.rank && r.axis[d + 1].kept;
}
int merged_axes(const Resize& r) {
  int n = 0;
  for (int d = 0; d < r.rank; ++d) n += !merges_with_next(r, d);
  return n;
}
template <class I, int n>
ResizeAxes<I, n> resize_axes(const Resize& r, void* shared) {
  ResizeAxes<I, n> a;
  int64_t in = 1, out = 1;
  for (int d = 0, to = n - merged_axes(r); d < r.rank; ++d) {
    const ResizeAxis& from = r.axis[d];
    in *= from.in, out *= from.out;
    if (merges_with_next(r, d)) continue;
    a.axis[to++] = {FastDivmod(out),    table_of(r, d, shared),
                    static_cast<I>(in), static_cast<I>(out),
                    from.taps,          from.kept};
    in = out = 1;
  }
  return a;
}

void fill_tables(const Resize& r, void* shared, Stream stream) {
  for (int d = 0; d < r.rank; ++d) {
    const ResizeTable t = table_of(r, d, shared);
    const ResizeAxis a = r.axis[d];
    if (a.kept) continue;
    const Resize how = r;
    launch_for_each(stream, a.out, [=] __device__(int64_t i) {
      t.outside[i] = taps_of(how, a, i, t.index + i, t.weight + i, a.out);
    });
  }
}

// The indices of element i, and whether it is outside along any resized axis.
template <class I, int n>
struct ElementIndex {
  I index[n];
  bool outside;
};
template <class I, int n>
__device__ ElementIndex<I, n> element_index(const ResizeAxes<I, n>& a, I i) {
  ElementIndex<I, n> p;
  p.outside = false;
#pragma unroll
  for (int d = n - 1; d >= 0; --d) {
    p.index[d] = a.axis[d].out.remainder(i);
    p.outside |= !a.axis[d].kept && a.axis[d].table.outside[p.index[d]];
  }
  return p;
}

// resize.2: the value over the axes from d on, at the indices of the axes before.
template <int d, class I, int n>
__device__ float value(const ResizeAxes<I, n>& a, const ElementIndex<I, n>& p, const float* x, I at) {
  if constexpr (d == n) {
    return x[at];
  } else {
    const auto& axis = a.axis[d];
    at *= axis.in;
    float c = 0;
    I tap = p.index[d];
#pragma unroll 1
    for (int k = 0; k < axis.taps; ++k, tap += axis.elements) {
      const I along = axis.kept ? tap : axis.table.index[tap];
      const float v = value<d + 1>(a, p, x, at + along);
      c = axis.kept ? v : __builtin_fmaf(axis.table.weight[tap], v, c);
    }
    return c;
  }
}
// The same for images: only the last two axes are resized, with equal numbers of taps.
template <int taps, class I>
__device__ float plane(const ResizeAxes<I, kFewAxes>& a, const ElementIndex<I, kFewAxes>& p, const float* x) {
  constexpr int kHigh = kFewAxes - 2, kWide = kFewAxes - 1;
  const auto &high = a.axis[kHigh], &wide = a.axis[kWide];
  I at = 0;
#pragma unroll
  for (int d = 0; d < kHigh; ++d) at = at * a.axis[d].in + p.index[d];
  float c = 0;
#pragma unroll
  for (int k = 0; k < taps; ++k) {
    const I tap = p.index[kHigh] + k * high.elements;
    const float* line = x + (at * high.in + high.table.index[tap]) * wide.in;
    float inner = 0;
#pragma unroll
    for (int l = 0; l < taps; ++l) {
      const I of = p.index[kWide] + l * wide.elements;
      inner = __builtin_fmaf(wide.table.weight[of], line[wide.table.index[of]], inner);
    }
    c = __builtin_fmaf(high.table.weight[tap], inner, c);
  }
  return c;
}
// taps: those of plane(), or 0 for value().
template <int taps, class I, int n>
__device__ float sum(const ResizeAxes<I, n>& a, const ElementIndex<I, n>& p, const float* x) {
  if constexpr (taps == 0)
    return value<0>(a, p, x, I{0});
  else
    return plane<taps>(a, p, x);
}
template <class I, int n, int taps>
void interpolate(const Resize& r, const Call& call, Stream stream) {
  const ResizeAxes<I, n> a = resize_axes<I, n>(r, call.shared);
  const float* x = call.in[0].as<const float>();
  float* out = call.out[0].as<float>();
  const float extrapolation = ResizeAttributes(call).extrapolation;
  launch_generate<taps == 0 ? 1 : 4>(stream, call.out[0].elements(), out, [=] __device__(int64_t i) {
    const ElementIndex<I, n> p = element_index(a, static_cast<I>(i));
    return canonicalize(F{p.outside ? extrapolation : sum<taps>(a, p, x)}).v;
  });
}

template <class I, int n, class T>
void nearest(const Resize& r, const Call& call, Stream stream) {
  const ResizeAxes<I, n> a = resize_axes<I, n>(r, call.shared);
  const View& result = call.out[0];
  const T* x = call.in[0].as<const T>();
  T* out = result.as<T>();
  // Elements outside get the extrapolation value in f32, else 0.
  const T none = result.dtype == DType::f32
                     ? static_cast<T>(num::f32_bits(num::canonicalize(ResizeAttributes(call).extrapolation)))
                     : T{0};
  launch_generate(stream, result.elements(), out, [=] __device__(int64_t i) {
    const ElementIndex<I, n> p = element_index(a, static_cast<I>(i));
    I at = 0;
#pragma unroll
    for (int d = 0; d < n; ++d)
      at = at * a.axis[d].in + (a.axis[d].kept ? p.index[d] : a.axis[d].table.index[p.index[d]]);
    return p.outside ? none : x[at];
  });
}

template <class I, int n>
void launch_resize(const Resize& r, const Call& call, Stream stream) {
  if (r.order != 0) {
    if constexpr (n == kFewAxes) {
      bool image = r.rank >= 2;
      for (int d = 0; d < r.rank; ++d) image &= r.axis[d].kept == (d < r.rank - 2);
      const int taps =
          image && r.axis[r.rank - 1].taps == r.axis[r.rank - 2].taps ? r.axis[r.rank - 1].taps : 0;
      if (taps == 2) return interpolate<I, n, 2>(r, call, stream);
      if (taps == 4) return interpolate<I, n, 4>(r, call, stream);
    }
    return interpolate<I, n, 0>(r, call, stream);
  }
  switch (size_of(call.out[0].dtype)) {
    case 1: return nearest<I, n, uint8_t>(r, call, stream);
    case 2: return nearest<I, n, uint16_t>(r, call, stream);
    case 4: return nearest<I, n, uint32_t>(r, call, stream);
    default: nearest<I, n, uint64_t>(r, call, stream);
  }
}
template <class I>
void launch_resize(const Resize& r, const Call& call, Stream stream) {
  if (merged_axes(r) <= kFewAxes)
    launch_resize<I, kFewAxes>(r, call, stream);
  else
    launch_resize<I, kMaxRank>(r, call, stream);
}
void enqueue(const Call& call, Stream stream) {
  if (call.out[0].elements() == 0) return;
  const Resize r = resize_of(call);
  fill_tables(r, call.shared, stream);
  bool small = call.in[0].elements() <= INT32_MAX && call.out[0].elements() <= INT32_MAX;
  for (int d = 0; d < r.rank; ++d) small &= r.axis[d].taps * r.axis[d].out <= INT32_MAX;
  if (small)
    launch_resize<int32_t>(r, call, stream);
  else
    launch_resize<int64_t>(r, call, stream);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW;
const GpuKernel INVAR_ROW = {
    .op = "resize", .isa = INVAR_ISA, .shared_bytes = resize_shared, .enqueue = INVAR_ISA_NS::enqueue};

}  // namespace invar::ops
