// Lowering of Resize and Upsample.
#include <bit>
#include <cmath>
#include <cstring>

#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

// The elements of a constant f32 operand, as bits.
Result<std::vector<int64_t>> f32_bits_operand(NodeView& node, unsigned i) {
  std::optional<std::string> bytes = node.constant_bytes(i);
  if (!bytes || !getElementTypeOrSelf(node.in(i).getType()).isF32())
    return node.not_constant(i, "a constant of f32");
  std::vector<int64_t> bits;
  for (size_t at = 0; at + 4 <= bytes->size(); at += 4) {
    uint32_t b = 0;
    for (size_t k = 4; k-- > 0;) b = b << 8 | static_cast<uint8_t>((*bytes)[at + k]);
    bits.push_back(b);
  }
  return bits;
}
float float_from_bits(int64_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits));
}
constexpr int64_t kOne = 0x3f800000;
constexpr int64_t kInBinary32 = 8;  // added to coordinates (resize.3)

// Tells whether the scale is a / 2^k, a and 2^k at most 2^10.
bool is_dyadic(float scale) {
  for (int64_t by = 1; by <= 1 << 10; by *= 2)
    if (const float times = scale * static_cast<float>(by); times == std::floor(times) && times <= 1 << 10)
      return true;
  return false;
}

// The parameters of resize.1 to resize.7.
struct ResizeParams {
  int64_t order = 0, coordinates = 0, rounding = 0, antialias = 0, exclude = 0;
  int64_t policy = 0;  // index in kPolicies
  float cubic = -0.75f, extrapolation = 0;
  unsigned roi = 0, scales = 0, sizes = 0;  // operand indices; 0: none
  std::vector<int64_t> given_scales{};      // the scales as bits, where they are attributes
};

int64_t bits_of(float x) {
  return std::bit_cast<uint32_t>(x);
}

// keep_aspect_ratio_policy: all axes get one scale, the least or greatest size / N. A size is N
// times it, halves rounded up; `scales` becomes that scale, rounded to f32.
Result<std::vector<int64_t>> keep_aspect_ratio_sizes(const Shape& shape, const std::vector<int64_t>& axes,
                                                     std::vector<int64_t> sizes, bool least,
                                                     std::vector<int64_t>& scales) {
  int64_t size = 0, n = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Dim& e = shape[static_cast<size_t>(axes[i])];
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

// floor(dimension * scale) of a symbolic dimension. It is a dimension expression if the scale is a
// small multiple of a power of two (below dimension 2^14 that equals the f32 product); else it is
// computed at run time in f32.
Result<DimExpr> scaled_dim(NodeView& node, const Dim& e, float scale) {
  const std::optional<DimExpr> n = dim_expr_of(e);
  for (int64_t by = 1; n && is_dyadic(scale) && by <= 1 << 10; by *= 2) {
    const float times = scale * static_cast<float>(by);
    if (times != std::floor(times)) continue;
    const std::optional<DimExpr> all = product(*n, static_cast<int64_t>(times)),
                                 size = all ? floor_div(*all, by) : all;
    if (size) return *size;
  }
  if (!n) return not_covered("dimension " + text_of(e) + " resized by " + std::to_string(scale));
  ExprBuilder f(node);
  const Value size = f.cast(node.size_tensor(*n, int64_t{1}), node.builder().getF32Type());
  const Value size_i64 = f.to_i64(f.make<FloorOp>(f.mul(size, f.f32(scale))));
  INVAR_CHECK_OK(f.status());
  return node.bind_dim(size_i64, 0);
}

// The resized axes: an attribute since opset 18, by default all.
Result<std::vector<int64_t>> resized_axes(const NodeView& node, size_t rank) {
  std::vector<int64_t> axes;
  if (node.version() >= 18) {
    INVAR_TRY(axes, node.ints_attr("axes"));
  }
  if (axes.empty())
    for (size_t d = 0; d < rank; ++d) axes.push_back(static_cast<int64_t>(d));
  std::set<int64_t> seen;
  for (int64_t& a : axes) {
    INVAR_TRY(a, NodeView::normalize_axis(a, rank));
    if (!seen.insert(a).second) return bad_input("axis " + std::to_string(a) + " twice");
  }
  return axes;
}

// Tells whether nearest by scales may select other elements in binary32 than in binary64 (onnx.21):
// quotients by dyadic scales lie on the same side of every bound in both. Aligned corners and
// regions do not read the scale.
bool selects_by_rounding(int64_t coordinates, llvm::ArrayRef<int64_t> scales) {
  if (coordinates == 3 || coordinates == 5) return false;
  return coordinates == 1 ||
         !llvm::all_of(scales, [](int64_t bits) { return is_dyadic(float_from_bits(bits)); });
}

Result<Value> resize_value(NodeView& node, Value x, const ResizeParams& params) {
  Shape shape = shape_of(x.getType());
  const size_t rank = shape.size();
  INVAR_TRY(const std::vector<int64_t> axes, resized_axes(node, rank));
  std::vector<int64_t> scales(rank, kOne), roi(2 * rank, 0);
  for (size_t d = 0; d < rank; ++d) roi[rank + d] = kOne;
  const bool crops = params.coordinates == 5;
  if (crops) {
    if (!params.roi || !node.has(params.roi))
      return bad_input("a region without operand " + std::to_string(params.roi));
    INVAR_TRY(std::vector<int64_t> given, f32_bits_operand(node, params.roi));
    if (given.size() != 2 * axes.size()) return bad_input("roi is not two numbers for each axis");
    for (size_t i = 0; i < axes.size(); ++i)
      roi[axes[i]] = given[i], roi[rank + axes[i]] = given[axes.size() + i];
  }
  std::vector<int64_t> by_scale;
  std::vector<DimExpr> by_size;
  if (!params.given_scales.empty()) {
    by_scale = params.given_scales;
  } else if (params.scales && node.has(params.scales)) {
    INVAR_TRY(by_scale, f32_bits_operand(node, params.scales));
  }
  if (by_scale.empty() && params.sizes && node.has(params.sizes)) {
    INVAR_TRY(by_size, node.dim_exprs(params.sizes));
  }
  if ((by_scale.empty() ? by_size.size() : by_scale.size()) != axes.size())
    return bad_input("scales or sizes are not one for each axis");
  std::vector<int64_t> common(axes.size(), 0);  // scales if sizes are given; 0: size / N
  if (!by_size.empty() && params.policy != 0) {
    INVAR_TRY(std::vector<int64_t> numbers, node.constant_ints(params.sizes));
    INVAR_TRY(numbers, keep_aspect_ratio_sizes(shape, axes, numbers, params.policy == 1, common));
    by_size.assign(numbers.begin(), numbers.end());
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t d = static_cast<size_t>(axes[i]);
    Dim& e = shape[d];
    const bool full_region = !crops || (float_from_bits(roi[d]) == 0 && float_from_bits(roi[rank + d]) == 1);
    if (!by_scale.empty()) {
      const float scale = float_from_bits(by_scale[i]);
      if (!(scale > 0) || std::isinf(scale)) return bad_input("scale " + std::to_string(scale));
      if (scale == 1 && full_region) continue;
      if (!e.constant()) {
        if (crops) return not_covered("dimension " + text_of(e) + " resized by " + std::to_string(scale));
        INVAR_TRY(const DimExpr size, scaled_dim(node, e, scale));
        scales[d] = by_scale[i], e = Dim::of(size);
        continue;
      }
      // floor(N * region * scale) in f32, as in ONNX's shape inference.
      const float part = crops ? float_from_bits(roi[rank + d]) - float_from_bits(roi[d]) : 1.0f;
      const float size = std::floor(static_cast<float>(e.value) * part * scale);
      if (!(size >= 0)) return bad_input("scale " + std::to_string(scale));
      if (size >= 0x1p31f) return not_covered("scale " + std::to_string(scale));
      scales[d] = by_scale[i], e = Dim::of(static_cast<int64_t>(size));
    } else {
      const int64_t size = by_size[i].constant().value_or(0);
      if (size < 0) return bad_input("size " + std::to_string(size));
      if (size > INT32_MAX) return not_covered("size " + std::to_string(size));
      scales[d] = common[i], e = Dim::of(by_size[i]);
    }
  }
  const bool in_binary32 =
      params.order == 0 && !by_scale.empty() && selects_by_rounding(params.coordinates, by_scale);
  SmallVector<NamedAttribute> attrs = {
      node.attr("order", params.order),
      node.attr("coordinates", params.coordinates + (in_binary32 ? kInBinary32 : 0)),
      node.attr("rounding", params.rounding),
      node.attr("antialias", params.antialias),
      node.attr("exclude_outside", params.exclude),
      node.attr("cubic", params.cubic),
      node.attr("extrapolation", params.extrapolation),
      node.attr("scales", Ints(scales))};
  if (crops) attrs.push_back(node.attr("roi", Ints(roi)));
  return node.make<ResizeOp>(x, attrs, tensor_of(shape, element_of(x)));
}
Status lower_resize(NodeView& node, const ResizeParams& params) {
  INVAR_TRY(Value out, resize_value(node, node.in(0), params));
  return node.replace(out);
}

constexpr llvm::StringLiteral
    kModes = "nearest linear ? cubic",
    kRounding = "round_prefer_floor round_prefer_ceil floor ceil",
    kPolicies = "stretch not_larger not_smaller",
    kTransforms =
        "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric tf_crop_and_resize";

// Before opset 11 coordinates are asymmetric and nearest is the floor.
Result<ResizeParams> params_before_11(NodeView& node, llvm::StringRef modes) {
  ResizeParams params;
  params.coordinates = 4, params.rounding = 2;
  INVAR_TRY(params.order, enum_attr(node, "mode", modes, "nearest"));
  return params;
}

// Before opset 9 the scales of Upsample are attributes, in opset 1 of the last two dimensions of
// four.
Status upsample(NodeView& node) {
  const int64_t version = node.version();
  INVAR_CHECK_OK(version < 7   ? node.expect(1, 1, {"height_scale", "mode", "width_scale"})
                 : version < 9 ? node.expect(1, 1, {"mode", "scales"})
                               : node.expect(2, 2, {"mode"}));
  INVAR_TRY(ResizeParams params, params_before_11(node, version < 7 ? "nearest bilinear" : "nearest linear"));
  if (version < 7) {
    INVAR_TRY(const float height, node.float_attr("height_scale", 0));
    INVAR_TRY(const float width, node.float_attr("width_scale", 0));
    params.given_scales = {kOne, kOne, bits_of(height), bits_of(width)};
  } else if (version < 9) {
    auto list = dyn_cast_or_null<DenseF32ArrayAttr>(node.attribute("scales"));
    if (!list || list.empty()) return bad_input("attribute \"scales\" is not a list of floats");
    for (float scale : list.asArrayRef()) params.given_scales.push_back(bits_of(scale));
  }
  params.scales = 1;
  return lower_resize(node, params);
}

// Opset 10: nearest takes the next element along dimensions that shrink (onnx.21).
Status resize_10(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"mode"}));
  INVAR_TRY(ResizeParams params, params_before_11(node, "nearest linear"));
  INVAR_TRY(const std::vector<int64_t> scales, f32_bits_operand(node, 1));
  const auto grows = [](int64_t bits) { return !(float_from_bits(bits) < 1); };
  params.given_scales = scales;
  if (params.order != 0 || llvm::all_of(scales, grows)) return lower_resize(node, params);
  Value x = node.in(0);
  for (const bool up : {true, false}) {
    params.rounding = up ? 2 : 3;
    for (size_t i = 0; i < scales.size(); ++i)
      params.given_scales[i] = grows(scales[i]) == up ? scales[i] : kOne;
    if (llvm::all_of(params.given_scales, [](int64_t bits) { return bits == kOne; })) continue;
    INVAR_TRY(x, resize_value(node, x, params));
  }
  return node.replace(x);
}

Status resize(NodeView& node) {
  if (node.version() < 11) return resize_10(node);
  INVAR_CHECK_OK(
      node.expect(1, 4,
                  {"antialias", "axes", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside",
                   "extrapolation_value", "keep_aspect_ratio_policy", "mode", "nearest_mode"}));
  ResizeParams params;
  params.roi = 1, params.scales = 2, params.sizes = 3;
  INVAR_TRY(params.order, enum_attr(node, "mode", kModes, "nearest"));
  INVAR_TRY(params.coordinates, enum_attr(node, "coordinate_transformation_mode", kTransforms, "half_pixel"));
  INVAR_TRY(params.rounding, enum_attr(node, "nearest_mode", kRounding, "round_prefer_floor"));
  INVAR_TRY(params.policy, enum_attr(node, "keep_aspect_ratio_policy", kPolicies, "stretch"));
  INVAR_TRY(params.antialias, node.int_attr("antialias", 0));
  INVAR_TRY(params.exclude, node.int_attr("exclude_outside", 0));
  INVAR_TRY(params.cubic, node.float_attr("cubic_coeff_a", -0.75f));
  INVAR_TRY(params.extrapolation, node.float_attr("extrapolation_value", 0));
  params.antialias = params.antialias != 0, params.exclude = params.exclude != 0;
  return lower_resize(node, params);
}

}  // namespace

LogicalResult ResizeOp::verify() {
  if (shape_of(getX().getType()).size() != shape_of(getType()).size()) return emitOpError("changes the rank");
  if (getOrder() != 0 && !getElementTypeOrSelf(getX().getType()).isF32())
    return emitOpError("interpolates elements that are not f32");
  return success();
}

void import_resize(RuleRegistry& registry) {
  registry.add_rule("Upsample", 1, upsample, "T*>T");
  registry.add_rule("Resize", 10, resize, "TR**>T");
}

}  // namespace invar::compiler
