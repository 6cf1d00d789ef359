// Resize: parameters of a call, tables and scratch, and the check.
#include <variant>

#include "kernels/check.h"
#include "num/convert/convert.h"
#include "ops/resize/resize.h"

namespace invar::ops {
namespace {

constexpr int64_t kTaps = int64_t{1} << 20;  // no sensible reduction needs more

// Element i of a list of binary32 numbers given as bits; 0 if there is no list.
double f32_list(const Call& call, const char* name, int i) {
  auto it = call.attrs->find(name);
  if (it == call.attrs->end()) return 0;
  return num::f32_from_bits(
      static_cast<uint32_t>(std::get<std::vector<int64_t>>(it->second)[static_cast<size_t>(i)]));
}
bool finite(double x) {
  return x - x == 0;
}
int order_of(const Call& call) {
  return static_cast<int>(attr_i(call, "order", 0));
}

}  // namespace

Resize resize_of(const Call& call) {
  const View &x = call.in[0], &out = call.out[0];
  Resize r{};
  r.order = order_of(call);
  const int64_t coordinates = attr_i(call, "coordinates", 0);
  r.binary32 = coordinates >= kInBinary32;
  r.coordinates = static_cast<Coordinates>(coordinates % kInBinary32);
  r.rounding = static_cast<Rounding>(attr_i(call, "rounding", 0));
  r.antialias = attr_i(call, "antialias", 0) != 0;
  r.exclude_outside = attr_i(call, "exclude_outside", 0) != 0;
  r.cubic = attr_f(call, "cubic", -0.75f);
  r.rank = x.rank;
  for (int d = 0; d < x.rank; ++d) {
    ResizeAxis& a = r.axis[d];
    a.in = x.dim[d], a.out = out.dim[d];
    a.scale = f32_list(call, "scales", d);
    a.kept = a.in == a.out && (a.scale == 0 || a.scale == 1) && r.coordinates != Coordinates::crop_and_resize;
    if (a.scale == 0) a.scale = static_cast<double>(a.out) / static_cast<double>(a.in);
    a.start = f32_list(call, "roi", d), a.end = f32_list(call, "roi", x.rank + d);
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
  if (order_of(call) == 0 || out.rank == 0) return 0;
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
  const int64_t order = attr_i(c, "order", 0);
  if (order != 0 && order != 1 && order != 3) return "an order of 0, 1 or 3";
  if (order != 0 && !is_f32(x)) return "f32 where it interpolates";
  const int64_t how = attr_i(c, "coordinates", 0), rounding = attr_i(c, "rounding", 0);
  if (how < 0 || how >= 2 * kInBinary32 || how % kInBinary32 >= kCoordinates || rounding < 0 ||
      rounding >= kRoundings)
    return "coordinates of 0 to 6 or 8 to 14, rounding of 0 to 3";
  if (!c.attrs) return "attributes";
  for (const char* name : {"scales", "roi"}) {
    auto it = c.attrs->find(name);
    const size_t size = static_cast<size_t>(name[0] == 's' ? x.rank : 2 * x.rank);
    if (it != c.attrs->end() && std::get<std::vector<int64_t>>(it->second).size() != size)
      return "scales for every dimension, starts and ends of the region";
  }
  if (!finite(attr_f(c, "cubic", -0.75f))) return "a finite coefficient";
  attr_i(c, "antialias", 0), attr_i(c, "exclude_outside", 0), attr_f(c, "extrapolation", 0);
  for (int d = 0; d < x.rank; ++d) {
    if (x.dim[d] > INT32_MAX || out.dim[d] > INT32_MAX) return "dimensions below 2^31";
    if (x.dim[d] == 0 && out.dim[d] != 0) return "elements to resize";
    const double scale = f32_list(c, "scales", d);
    if (!finite(scale) || scale < 0 || !finite(f32_list(c, "roi", d)) ||
        !finite(f32_list(c, "roi", x.rank + d)))
      return "finite scales above 0, a finite region";
  }
  if (out.elements() == 0) return nullptr;
  const Resize r = resize_of(c);
  for (int d = 0; d < r.rank; ++d)
    if (r.axis[d].taps > kTaps) return "a reduction by less than 2^18";
  return nullptr;
}

}  // namespace invar::ops
