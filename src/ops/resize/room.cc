// Resize: parameters of a call, tables and scratch, and the check.
#include "kernels/check.h"
#include "num/convert/convert.h"
#include "ops/resize/resize.h"

namespace invar::ops {
namespace {

constexpr int64_t kTaps = int64_t{1} << 20;  // no sensible reduction needs more

double f32_at(const IntegerList& bits, int i) {  // 0 if there is no list
  return num::f32_from_bits(static_cast<uint32_t>(bits[i]));
}
bool finite(double x) {
  return x - x == 0;
}

}  // namespace

Resize resize_of(const Call& call) {
  const View &x = call.in[0], &out = call.out[0];
  Resize r{};
  const ResizeAttributes attrs(call);
  r.order = static_cast<int>(attrs.order);
  r.binary32 = attrs.coordinates >= kInBinary32;
  r.coordinates = static_cast<Coordinates>(attrs.coordinates % kInBinary32);
  r.rounding = static_cast<Rounding>(attrs.rounding);
  r.antialias = attrs.antialias != 0;
  r.exclude_outside = attrs.exclude_outside != 0;
  r.cubic = attrs.cubic;
  r.rank = x.rank;
  for (int d = 0; d < x.rank; ++d) {
    ResizeAxis& a = r.axis[d];
    a.in = x.dim[d], a.out = out.dim[d];
    a.scale = f32_at(attrs.scales, d);
    a.kept = a.in == a.out && (a.scale == 0 || a.scale == 1) && r.coordinates != Coordinates::crop_and_resize;
    if (a.scale == 0) a.scale = static_cast<double>(a.out) / static_cast<double>(a.in);
    a.start = f32_at(attrs.roi, d), a.end = f32_at(attrs.roi, x.rank + d);
    if (r.coordinates == Coordinates::crop_and_resize)
      a.kept = a.in == a.out && a.start == 0 && a.end == 1 && a.scale == 1;
    double support = r.order == 3 ? 2 : 1;
    if (r.antialias && a.scale < 1) support = support / a.scale;
    const int64_t start = floor_of(-support) + 1;
    a.taps = r.order == 0 || a.kept ? 1 : static_cast<int>(2 - 2 * (start < -kTaps ? -kTaps : start));
  }
  return r;
}

size_t resize_shared(const Call& call) {
  const Resize r = resize_of(call);
  size_t bytes = 0;
  for (int d = 0; d < r.rank; ++d)
    if (!r.axis[d].kept)
      bytes += static_cast<size_t>(r.axis[d].out) * 8 * static_cast<size_t>(r.axis[d].taps) +
               static_cast<size_t>((r.axis[d].out + 7) / 8 * 8);
  return bytes;
}

// The cached rows and their numbers; one row per axis before the last.
size_t resize_scratch(const Call& call) {
  const View& out = call.out[0];
  if (ResizeAttributes(call).order == 0 || out.rank == 0) return 0;
  return static_cast<size_t>((kResizeRows + kMaxRank) * last_dim(out)) * sizeof(float) + kResizeRows * 8 + 64;
}

int64_t resize_units(const Call& call, int phase) {
  if (call.out[0].elements() == 0) return 0;
  return phase == 0 ? call.out[0].rank : row_count(call.out[0]);
}

const char* resize_check(const Call& c) {
  if (!has_operands(c, 1, 1) || c.in[0].dtype != c.out[0].dtype)
    return "one operand and one result of its type";
  const View &x = c.in[0], &out = c.out[0];
  if (x.rank != out.rank || x.rank < 1) return "a result of the operand's rank, 1 or more";
  const ResizeAttributes attrs(c);
  const int64_t order = attrs.order;
  if (order != 0 && order != 1 && order != 3) return "an order of 0, 1 or 3";
  if (order != 0 && !is_f32(x)) return "f32 where it interpolates";
  const int64_t how = attrs.coordinates, rounding = attrs.rounding;
  if (how < 0 || how >= 2 * kInBinary32 || how % kInBinary32 >= kCoordinates || rounding < 0 ||
      rounding >= kRoundings)
    return "coordinates of 0 to 6 or 8 to 14, rounding of 0 to 3";
  if (!attrs.scales.fits(x.rank) || !attrs.roi.fits(2 * x.rank))
    return "scales for every dimension, starts and ends of the region";
  if (!finite(attrs.cubic)) return "a finite coefficient";
  for (int d = 0; d < x.rank; ++d) {
    if (x.dim[d] > INT32_MAX || out.dim[d] > INT32_MAX) return "dimensions below 2^31";
    if (x.dim[d] == 0 && out.dim[d] != 0) return "elements to resize";
    const double scale = f32_at(attrs.scales, d);
    if (!finite(scale) || scale < 0 || !finite(f32_at(attrs.roi, d)) ||
        !finite(f32_at(attrs.roi, x.rank + d)))
      return "finite scales above 0, a finite region";
  }
  if (out.elements() == 0) return nullptr;
  const Resize r = resize_of(c);
  for (int d = 0; d < r.rank; ++d)
    if (r.axis[d].taps > kTaps) return "a reduction by less than 2^18";
  return nullptr;
}

}  // namespace invar::ops
