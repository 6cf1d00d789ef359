// Source elements and weights of a resized axis: resize.2 - resize.6, in binary64 and in
// the order of the specification. Used by every row of the room.
#pragma once
#include "kernels/call.h"
#include "num/inline.h"
#include "ops/resize/attributes.h"

namespace invar::ops {

enum class Coordinates : int64_t {
  half_pixel,
  half_pixel_symmetric,
  pytorch_half_pixel,
  align_corners,
  asymmetric,
  crop_and_resize,
  align_corners_by_scale
};
enum class Rounding : int64_t { prefer_floor, prefer_ceil, floor, ceil };
inline constexpr int64_t kCoordinates = 7, kRoundings = 4;
inline constexpr int64_t kInBinary32 = 8;  // added to the number of coordinates (resize.3)

struct ResizeAxis {
  int64_t in, out;
  double scale, start, end;  // start, end: the region of crop_and_resize
  bool kept;                 // resize.1: copied unchanged
  int taps;
};
struct Resize {
  int order;  // of the interpolation kernel: 0 nearest, 1 linear, 3 cubic
  Coordinates coordinates;
  Rounding rounding;
  bool antialias, exclude_outside;
  bool binary32;  // coordinates are computed in it
  double cubic;
  int rank;
  ResizeAxis axis[kMaxRank];
};

// The largest integer not above x; |x| is limited to 2^40 (beyond any dimension).
INVAR_INLINE int64_t floor_of(double x) {
  constexpr double kFar = 0x1p40;
  x = x < -kFar ? -kFar : x > kFar ? kFar : x;
  int64_t i = static_cast<int64_t>(x);
  return static_cast<double>(i) > x ? i - 1 : i;
}

// resize.3, in the type T.
template <class T>
INVAR_INLINE T coordinate_in(Coordinates how, const ResizeAxis& a, int64_t i) {
  const T x = static_cast<T>(i), in = static_cast<T>(a.in), out = static_cast<T>(a.out);
  const T scale = static_cast<T>(a.scale), start = static_cast<T>(a.start), end = static_cast<T>(a.end);
  const T half = static_cast<T>(0.5);
  switch (how) {
    case Coordinates::half_pixel: return (x + half) / scale - half;
    case Coordinates::half_pixel_symmetric: {
      T adjustment = out / (scale * in), offset = in / 2 * (1 - adjustment);
      T middle = offset + (x + half) / scale;
      return middle - half;
    }
    case Coordinates::pytorch_half_pixel: return a.out > 1 ? (x + half) / scale - half : 0;
    case Coordinates::align_corners: return a.out > 1 ? x * (in - 1) / (out - 1) : 0;
    case Coordinates::asymmetric: return x / scale;
    case Coordinates::align_corners_by_scale: {
      const T length = scale * in;
      return length == 1 ? 0 : x * (in - 1) / (length - 1);
    }
    case Coordinates::crop_and_resize: break;
  }
  if (a.out <= 1) return half * (start + end) * (in - 1);
  T step = x * (end - start) * (in - 1) / (out - 1);
  return start * (in - 1) + step;
}
INVAR_INLINE double coordinate_of(const Resize& r, const ResizeAxis& a, int64_t i) {
  return r.binary32 ? static_cast<double>(coordinate_in<float>(r.coordinates, a, i))
                    : coordinate_in<double>(r.coordinates, a, i);
}

// resize.4
INVAR_INLINE int64_t nearest_of(Rounding how, double c) {
  int64_t f = floor_of(c);
  double rest = c - static_cast<double>(f);
  switch (how) {
    case Rounding::prefer_floor: return f + (rest > 0.5);
    case Rounding::prefer_ceil: return f + (rest >= 0.5);
    case Rounding::floor: return f;
    case Rounding::ceil: break;
  }
  return f + (rest > 0);
}

// resize.5: the interpolation kernel at distance d.
INVAR_INLINE double kernel_of(const Resize& r, double d) {
  if (d < 0) d = -d;
  if (r.order == 1) return d < 1 ? 1 - d : 0;
  if (d < 1) {
    double inner = (r.cubic + 2) * d - (r.cubic + 3);
    return inner * d * d + 1;
  }
  if (d >= 2) return 0;
  double outer = r.cubic * d - 5 * r.cubic;
  outer = outer * d + 8 * r.cubic;
  return outer * d - 4 * r.cubic;
}

// Sets index[k * step] and weight[k * step] of the taps of element i of axis a. Returns true if the
// coordinate is outside the operand and crop_and_resize puts the extrapolation value there
// (resize.7).
INVAR_INLINE bool taps_of(const Resize& r, const ResizeAxis& a, int64_t i, int32_t* index, float* weight,
                          int64_t step) {
  const double c = coordinate_of(r, a, i);
  auto within = [&a](int64_t j) { return static_cast<int32_t>(j < 0 ? 0 : j >= a.in ? a.in - 1 : j); };
  const bool outside =
      r.coordinates == Coordinates::crop_and_resize && (c < 0 || c > static_cast<double>(a.in - 1));
  if (r.order == 0) {
    index[0] = within(nearest_of(r.rounding, c)), weight[0] = 1;
    return outside;
  }
  const double shrink = r.antialias && a.scale < 1 ? a.scale : 1;
  const int64_t first = floor_of(c) - a.taps / 2 + 1;
  double total = 0;
  for (int pass = 0; pass < 2; ++pass)
    for (int k = 0; k < a.taps; ++k) {
      const int64_t j = first + k;
      double w = kernel_of(r, (static_cast<double>(j) - c) * shrink);
      if (r.exclude_outside && (j < 0 || j >= a.in)) w = 0;
      // resize.6: the sum of the weights, ascending.
      if (pass == 0) total += w;
      if (pass == 0) continue;
      index[k * step] = within(j);
      weight[k * step] = static_cast<float>(r.antialias || r.exclude_outside ? w / total : w);
    }
  return outside;
}

Resize resize_of(const Call&);
const char* resize_check(const Call&);

// The tables of the resized axes, in shared memory: taps as [tap][element], then one byte per
// element that tells whether it is outside.
struct ResizeTable {
  int32_t* index;
  float* weight;
  uint8_t* outside;
};
INVAR_INLINE ResizeTable table_of(const Resize& r, int axis, void* shared) {
  auto at = static_cast<char*>(shared);
  for (int d = 0; d < kMaxRank; ++d) {
    const ResizeAxis& a = r.axis[d];
    const int64_t n = a.kept ? 0 : a.out;
    if (d == axis)
      return {reinterpret_cast<int32_t*>(at), reinterpret_cast<float*>(at + 4 * n * a.taps),
              reinterpret_cast<uint8_t*>(at + 8 * n * a.taps)};
    at += 8 * n * a.taps + (n + 7) / 8 * 8;
  }
  return {};
}
// Fills the tables of axes [begin, end).
INVAR_INLINE void resize_tables(const Resize& r, void* shared, int64_t begin, int64_t end) {
  for (int64_t d = begin; d < end; ++d) {
    const ResizeTable t = table_of(r, static_cast<int>(d), shared);
    const ResizeAxis& a = r.axis[d];
    for (int64_t i = 0; i < a.out && !a.kept; ++i)
      t.outside[i] = taps_of(r, a, i, t.index + i, t.weight + i, a.out);
  }
}
size_t resize_shared(const Call&);
size_t resize_scratch(const Call&);
// Phase 0: one axis per unit; phase 1: rows of the result's last dimension.
int64_t resize_units(const Call&, int phase);

// Rows interpolated along the last axis that a worker caches.
inline constexpr int64_t kResizeRows = 16;

}  // namespace invar::ops
