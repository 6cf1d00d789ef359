// Spells resizing in torch: functional.interpolate where it has such, else a helper in torch.py.
#include <algorithm>
#include <bit>

#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

enum Coordinates { kHalfPixel, kSymmetric, kPyTorch, kAlignCorners };  // of resize.3; there are more

// Numbers of f32 by their bits.
std::vector<double> of_bits(const TorchCall& c, const char* name) {
  std::vector<double> values;
  for (const int64_t bits : c.ints(name)) values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return values;
}

const char* mode(int64_t order, size_t axes) {
  if (order == 1 && axes == 1) return "linear";
  if (order == 1 && axes == 2) return "bilinear";
  if (order == 1 && axes == 3) return "trilinear";
  return order == 3 && axes == 2 ? "bicubic" : nullptr;
}

// Tells whether functional.interpolate has such a resize.
bool is_plain_resize(const TorchCall& c) {
  const Shape &x = c.shape_of(0), &y = c.type.shape;
  if (c.rank() < 3 || !mode(c.i("order"), c.rank() - 2) || c.type.dtype != DType::f32) return false;
  if (x[0] != y[0] || x[1] != y[1] || c.i("antialias") || c.i("exclude_outside")) return false;
  std::vector<double> scales = of_bits(c, "scales");
  scales.resize(c.rank());
  for (size_t d = 0; d < c.rank(); ++d) {
    if (d < 2 && scales[d] != 0 && scales[d] != 1) return false;
    if (d < 2) continue;
    if (!x[d].constant() || !y[d].constant() || x[d].value == 0 || y[d].value == 0) return false;
    if (scales[d] != 0 && scales[d] * static_cast<double>(x[d].value) != static_cast<double>(y[d].value))
      return false;
  }
  const int64_t how = c.i("coordinates");
  const bool to_one = std::any_of(y.begin() + 2, y.end(), [](const Dim& m) { return m == Dim::of(1); });
  if (c.i("order") == 3 && c.f("cubic") != -0.75f) return false;
  return how == kHalfPixel || how == kAlignCorners || (how == kPyTorch && !to_one);
}

Result<std::string> resize(const TorchCall& c) {
  if (is_plain_resize(c))
    return cat("functional.interpolate(", c[0],
               ", size=", torch_text(Shape(c.type.shape.begin() + 2, c.type.shape.end())), ", mode=\"",
               mode(c.i("order"), c.rank() - 2), "\", align_corners=", c.i("coordinates") == kAlignCorners,
               ")");
  std::string keywords, lists;
  for (const auto& [name, value] : c.attributes)
    if ((name != "scales" && name != "roi") || c.ints(name).empty()) keywords += c.keyword(name);
  for (const char* name : {"scales", "roi"}) {
    std::vector<std::string> values;
    bool some = false;
    for (const double v : of_bits(c, name)) values.push_back(python::literal(v)), some = some || v != 0;
    if (some) lists += cat(", ", name, "=[", python::join(values), "]");
  }
  return cat("rooms.resize.resize(", c[0], ", ", c.shape(), keywords, lists, ")");
}

}  // namespace

void spell_resize(TorchSpellings& spellings) {
  spellings.add("resize", resize);
}

}  // namespace invar::compiler
