#include <bit>
#include <cmath>
#include <cstring>

#include "compiler/lowering/builders/builder_dsl.h"

namespace invar::compiler {
namespace {

// The floats of a constant operand, as bits.
Result<std::vector<int64_t>> bits_of(Node& node, unsigned i) {
  std::optional<std::string> bytes = node.bytes(i);
  if (!bytes || !getElementTypeOrSelf(node.in(i).getType()).isF32())
    return node.unknown(i, "a constant of f32");
  std::vector<int64_t> bits;
  for (size_t at = 0; at + 4 <= bytes->size(); at += 4) {
    uint32_t b = 0;
    for (size_t k = 4; k-- > 0;) b = b << 8 | static_cast<uint8_t>((*bytes)[at + k]);
    bits.push_back(b);
  }
  return bits;
}
float float_of(int64_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits));
}
constexpr int64_t kOne = 0x3f800000;

// What a node says, in the terms of resize.1 - resize.7.
struct Said {
  int64_t order = 0, coordinates = 0, rounding = 0, antialias = 0, exclude = 0;
  int64_t policy = 0;  // of kPolicies
  float cubic = -0.75f, extrapolation = 0;
  unsigned roi = 0, scales = 0, sizes = 0;  // operands; 0: none
};

// Sizes by the one scale that the policy picks, the least or the greatest of size / N: N times it, half rounded up. `scales`
// becomes that scale for every axis, rounded to binary32.
Result<std::vector<int64_t>> proportional(const Shape& shape, const std::vector<int64_t>& axes,
                                          std::vector<int64_t> sizes, bool least,
                                          std::vector<int64_t>& scales) {
  int64_t size = 0, n = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Extent& e = shape[static_cast<size_t>(axes[i])];
    if (!e.constant()) return not_covered("dimension " + text_of(e) + " resized");
    const std::string size_of =
        "size " + std::to_string(sizes[i]) + " of " + std::to_string(e.value) + " elements";
    if (e.value < 1 || sizes[i] < 1) return bad_input(size_of);
    if (e.value > INT32_MAX || sizes[i] > INT32_MAX) return not_covered(size_of);
    const bool lesser = i == 0 || sizes[i] * n < size * e.value;
    if (i == 0 || lesser == least) size = sizes[i], n = e.value;
  }
  const auto scale = static_cast<float>(static_cast<double>(size) / static_cast<double>(n));
  scales.assign(axes.size(), std::bit_cast<uint32_t>(scale));
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t e = shape[static_cast<size_t>(axes[i])].value, rest = e * size % n;
    sizes[i] = e * size / n + (2 * rest >= n);
  }
  return sizes;
}

// An open dimension times a scale, rounded down. That is a size where the scale is a small multiple of a power of two, of a dimension below
// 2^14 what binary32 makes of it; else it is computed in binary32.
Result<Polynomial> scaled(Node& node, const Extent& e, float scale) {
  const std::optional<Polynomial> n = polynomial_of(e);
  for (int64_t by = 1; n && by <= 1 << 10; by *= 2) {
    const float times = scale * static_cast<float>(by);
    if (times != std::floor(times) || times > 1 << 10) continue;
    const std::optional<Polynomial> all = product(*n, static_cast<int64_t>(times)),
                                    size = all ? quotient(*all, by) : all;
    if (size) return *size;
  }
  if (!n) return not_covered("dimension " + text_of(e) + " resized by " + std::to_string(scale));
  Formula f(node);
  const Value size = f.cast(node.sizes(*n, int64_t{1}), node.build().getF32Type());
  const Value whole = f.whole(f.make<FloorOp>(f.mul(size, f.number(scale))));
  INVAR_CHECK_OK(f.status());
  return node.bind(whole, 0);
}

Status made(Node& node, const Said& said) {
  Shape shape = node.shape(0);
  const size_t rank = shape.size();
  std::vector<int64_t> axes, scales(rank, kOne), roi(2 * rank, 0);
  if (node.version() >= 18) {
    INVAR_TRY(axes, node.ints("axes"));
  }
  if (axes.empty())
    for (size_t d = 0; d < rank; ++d) axes.push_back(static_cast<int64_t>(d));
  std::set<int64_t> seen;
  for (int64_t& a : axes) {
    INVAR_TRY(a, Node::axis(a, rank));
    if (!seen.insert(a).second) return bad_input("axis " + std::to_string(a) + " twice");
  }
  for (size_t d = 0; d < rank; ++d) roi[rank + d] = kOne;
  const bool crops = said.coordinates == 5;
  bool whole_sizes = true;
  if (crops) {
    if (!said.roi || !node.has(said.roi))
      return bad_input("a region without operand " + std::to_string(said.roi));
    INVAR_TRY(std::vector<int64_t> given, bits_of(node, said.roi));
    if (given.size() != 2 * axes.size()) return bad_input("roi is not two numbers for each axis");
    for (size_t i = 0; i < axes.size(); ++i)
      roi[axes[i]] = given[i], roi[rank + axes[i]] = given[axes.size() + i];
  }
  std::vector<int64_t> by_scale;
  std::vector<Polynomial> by_size;
  if (said.scales && node.has(said.scales)) {
    INVAR_TRY(by_scale, bits_of(node, said.scales));
  }
  if (by_scale.empty() && said.sizes && node.has(said.sizes)) {
    INVAR_TRY(by_size, node.sizes(said.sizes));
  }
  if ((by_scale.empty() ? by_size.size() : by_scale.size()) != axes.size())
    return bad_input("scales or sizes are not one for each axis");
  std::vector<int64_t> common(axes.size(), 0);  // scales that go with sizes; 0: M / N
  if (!by_size.empty() && said.policy != 0) {
    INVAR_TRY(std::vector<int64_t> numbers, node.constants(said.sizes));
    INVAR_TRY(numbers, proportional(shape, axes, numbers, said.policy == 1, common));
    by_size.assign(numbers.begin(), numbers.end());
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t d = static_cast<size_t>(axes[i]);
    Extent& e = shape[d];
    const bool whole = !crops || (float_of(roi[d]) == 0 && float_of(roi[rank + d]) == 1);
    if (!by_scale.empty()) {
      const float scale = float_of(by_scale[i]);
      if (!(scale > 0) || std::isinf(scale)) return bad_input("scale " + std::to_string(scale));
      if (scale == 1 && whole) continue;
      if (!e.constant()) {
        if (crops || (said.coordinates == 3 && scale != std::floor(scale)))
          return not_covered("dimension " + text_of(e) + " resized by " + std::to_string(scale));
        INVAR_TRY(const Polynomial size, scaled(node, e, scale));
        scales[d] = by_scale[i], e = Extent::of(size);
        continue;
      }
      // ONNX: the floor of N times the region's part times the scale; in binary32, as ONNX's own shape inference has it.
      const float part = crops ? float_of(roi[rank + d]) - float_of(roi[d]) : 1.0f;
      const float size = std::floor(static_cast<float>(e.value) * part * scale);
      if (!(size >= 0)) return bad_input("scale " + std::to_string(scale));
      if (size >= 0x1p31f) return not_covered("scale " + std::to_string(scale));
      whole_sizes &= size == static_cast<float>(e.value) * scale;
      scales[d] = by_scale[i], e = Extent::of(static_cast<int64_t>(size));
    } else {
      const int64_t size = by_size[i].constant().value_or(0);
      if (size < 0) return bad_input("size " + std::to_string(size));
      if (size > INT32_MAX) return not_covered("size " + std::to_string(size));
      scales[d] = common[i], e = Extent::of(by_size[i]);
    }
  }
  // Corners are aligned for a result of N times the scale, as ONNX's reference has it (spec/onnx.md onnx.21).
  const bool by_scale_alone = said.coordinates == 3 && !whole_sizes;
  SmallVector<NamedAttribute> attrs = {node.attr("order", said.order),
                                       node.attr("coordinates", by_scale_alone ? 6 : said.coordinates),
                                       node.attr("rounding", said.rounding),
                                       node.attr("antialias", said.antialias),
                                       node.attr("exclude_outside", said.exclude),
                                       node.attr("cubic", said.cubic),
                                       node.attr("extrapolation", said.extrapolation),
                                       node.attr("scales", llvm::ArrayRef<int64_t>(scales))};
  if (crops) attrs.push_back(node.attr("roi", llvm::ArrayRef<int64_t>(roi)));
  INVAR_TRY(Value out, node.make<ResizeOp>(node.in(0), attrs,
                                           tensor_of(shape, getElementTypeOrSelf(node.in(0).getType()))));
  return node.replace(out);
}

constexpr llvm::StringLiteral
    kModes = "nearest linear ? cubic",
    kRounding = "round_prefer_floor round_prefer_ceil floor ceil",
    kPolicies = "stretch not_larger not_smaller",
    kTransforms =
        "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric tf_crop_and_resize";

// Before opset 11 coordinates are asymmetric and nearest is the floor.
Status early(Node& node, unsigned scales) {
  Said said;
  said.coordinates = 4, said.rounding = 2, said.scales = scales;
  INVAR_CHECK_OK(node.expect(2, 2, {"mode"}));
  INVAR_TRY(said.order, choice(node, "mode", "nearest linear", "nearest"));
  return made(node, said);
}
Status upsample(Node& node) {
  return early(node, 1);
}

Status resize(Node& node) {
  if (node.version() < 11) return early(node, 1);
  INVAR_CHECK_OK(
      node.expect(1, 4,
                  {"antialias", "axes", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside",
                   "extrapolation_value", "keep_aspect_ratio_policy", "mode", "nearest_mode"}));
  Said said;
  said.roi = 1, said.scales = 2, said.sizes = 3;
  INVAR_TRY(said.order, choice(node, "mode", kModes, "nearest"));
  INVAR_TRY(said.coordinates, choice(node, "coordinate_transformation_mode", kTransforms, "half_pixel"));
  INVAR_TRY(said.rounding, choice(node, "nearest_mode", kRounding, "round_prefer_floor"));
  INVAR_TRY(said.policy, choice(node, "keep_aspect_ratio_policy", kPolicies, "stretch"));
  INVAR_TRY(said.antialias, node.i("antialias", 0));
  INVAR_TRY(said.exclude, node.i("exclude_outside", 0));
  INVAR_TRY(said.cubic, node.f("cubic_coeff_a", -0.75f));
  INVAR_TRY(said.extrapolation, node.f("extrapolation_value", 0));
  said.antialias = said.antialias != 0, said.exclude = said.exclude != 0;
  return made(node, said);
}

}  // namespace

LogicalResult ResizeOp::verify() {
  if (shape_of(getX().getType()).size() != shape_of(getType()).size()) return emitOpError("changes the rank");
  if (getOrder() != 0 && !getElementTypeOrSelf(getX().getType()).isF32())
    return emitOpError("interpolates elements that are not f32");
  return success();
}

// Before opset 9 the scales of Upsample were an attribute.
void import_resize(Rooms& rooms) {
  rooms.on("Upsample", 9, upsample, "T*>T");
  rooms.on("Resize", 10, resize, "TR**>T");
}

}  // namespace invar::compiler
