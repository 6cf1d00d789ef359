// DeformConv and RoiAlign: interpolated sampling at computed coordinates.
#include "compiler/lowering/builders/sliding_window.h"
#include "compiler/lowering/decompositions/grid_sample.h"

namespace invar::compiler {
namespace {

// Samples each kernel element at its offset position (a deformed im2col) and contracts the columns
// with the weights.
Status deform_conv(NodeView& node) {
  INVAR_CHECK_OK(
      node.expect(3, 5, {"dilations", "group", "kernel_shape", "offset_group", "pads", "strides"}));
  const Shape x = node.shape(0), w = node.shape(1), offset = node.shape(2);
  if (x.size() != 4 || w.size() != 4 || offset.size() != 4)
    return not_covered("covered are two spatial dimensions");
  INVAR_TRY(const int64_t groups, node.int_attr("group", 1));
  INVAR_TRY(const int64_t offsets, node.int_attr("offset_group", 1));
  INVAR_TRY(const int64_t all_weights, static_element_count(w, 0, 4));
  INVAR_TRY(const int64_t positions, static_element_count(offset, 2, 4));
  constexpr int64_t limit = 1 << 24, max_offsets = 256;
  if (all_weights < 1 || all_weights > limit || positions > limit ||
      w[2].value * w[3].value * positions > limit || offsets > max_offsets)
    return not_covered("no weights, or more than " + std::to_string(limit) + " places or weights, or " +
                       std::to_string(max_offsets) + " offset groups");
  const int64_t kernel = w[2].value * w[3].value;
  INVAR_TRY(const Window window, parse_window(node, {w[2].value, w[3].value}));
  if (!x[1].constant() || groups < 1 || offsets < 1 || x[1].value != w[1].value * groups ||
      w[0].value % groups || x[1].value % offsets || offset[1] != Dim::of(2 * offsets * kernel) ||
      !known_equal(x[0], offset[0]))
    return shape_error({x, w, offset}, "operands of " + text_of(x) + ", " + text_of(w) + " and " +
                                           text_of(offset) + " do not fit");
  for (size_t d = 0; d < 2; ++d) {
    const std::optional<Dim> n = window_count(x[2 + d], window.effective_kernel(d), window.strides[d],
                                              window.pads[d], window.pads[2 + d], false);
    if (!n || *n != offset[2 + d])
      return shape_error({x, offset}, "offsets " + text_of(offset) + " are not those of each window");
  }
  const Shape mask = {x[0], Dim::of(offsets * kernel), offset[2], offset[3]};
  if (node.has(4) && node.shape(4) != mask)
    return unequal_shapes(node.shape(4), mask, "a mask of shape " + text_of(node.shape(4)));
  ExprBuilder f(node);
  INVAR_TRY(const Value rows, pixel_rows(f, 0));
  std::vector<AxisBounds> sampled;
  // Positions of the kernel elements without offsets, [1, kernel * places, 1].
  std::vector<Value> base;
  for (size_t d = 0; d < 2; ++d) {
    sampled.push_back({x[2 + d].value, 0, 0});
    std::vector<float> at;
    for (int64_t e = 0; e < kernel; ++e)
      for (int64_t p = 0; p < positions; ++p) {
        const int64_t element = d ? e % w[3].value : e / w[3].value;
        const int64_t position = d ? p % offset[3].value : p / offset[3].value;
        at.push_back(static_cast<float>(position * window.strides[d] - window.pads[d] +
                                        element * window.dilations[d]));
      }
    base.push_back(f.f32_tensor(at, {1, kernel * positions, 1}));
  }
  const int64_t channels = x[1].value / offsets;
  const Dim one = Dim::of(1), taken = Dim::of(kernel * positions), k = Dim::of(kernel);
  const Value moved =
      f.reshape(node.in(2), {x[0], Dim::of(offsets * kernel), Dim::of(2), Dim::of(positions)});
  SmallVector<Value> columns;
  for (int64_t g = 0; g < offsets; ++g) {
    std::vector<Value> coordinates;
    const Value mine = f.slice(moved, 1, g * kernel, kernel);
    for (size_t d = 0; d < 2; ++d)
      coordinates.push_back(
          f.add(base[d], f.reshape(f.slice(mine, 2, static_cast<int64_t>(d), 1), {x[0], taken, one})));
    const Value pixels = f.slice(rows, 2, g * channels, channels);
    INVAR_CHECK_OK(f.status());
    Value found = Sampler(f, pixels, sampled, PaddingMode::zeros).at(coordinates, Interpolation::linear);
    if (node.has(4))
      found = f.mul(found, f.reshape(f.slice(node.in(4), 1, g * kernel, kernel), {x[0], taken, one}));
    found = f.reshape(found, {x[0], k, Dim::of(positions), Dim::of(channels)});
    columns.push_back(f.transpose(found, {0, 3, 1, 2}));
  }
  const Dim inner = Dim::of(w[1].value * kernel), g = Dim::of(groups), filters = Dim::of(w[0].value / groups);
  const Value cols = f.reshape(f.concat(columns, 1), {x[0], g, inner, Dim::of(positions)});
  const Value weights = f.reshape(node.in(1), {one, g, filters, inner});
  INVAR_CHECK_OK(f.status());
  Value out = f.check(matrix_product(node, weights, cols));
  out = f.reshape(out, {x[0], w[0], offset[2], offset[3]});
  if (node.has(3)) out = f.add(out, f.reshape(node.in(3), {w[0], one, one}));
  INVAR_CHECK_OK(f.status());
  return node.replace(out);
}

// One axis of all regions: indices and weights of the pixels below and above each sample, [R, bins
// * samples].
struct Samples {
  Value low, high, below, above;
};
Samples roi_samples(ExprBuilder& f, Value start, Value end, int64_t bins, int64_t ratio, const DimExpr& size,
                    bool grows) {
  Value length = f.sub(end, start);
  if (grows) length = f.max(length, f.f32(1));
  const Value bin = f.div(length, f.f32(static_cast<float>(bins)));
  std::vector<float> which, within;
  for (int64_t b = 0; b < bins; ++b)
    for (int64_t s = 0; s < ratio; ++s)
      which.push_back(static_cast<float>(b)), within.push_back(static_cast<float>(s) + 0.5f);
  const int64_t n = bins * ratio;
  Value at = f.add(start, f.mul(f.f32_tensor(which, {1, n}), bin));
  at = f.add(at, f.div(f.mul(f.f32_tensor(within, {1, n}), bin), f.f32(static_cast<float>(ratio))));
  // Samples more than a pixel outside have weight 0.
  const auto size_f32 = [&f](const DimExpr& n) { return f.to_f32(f.node().size_tensor(n, {})); };
  const Value inside = f.make<LogicalNotOp>(f.logical_or(f.less(at, f.f32(-1)), f.less(size_f32(size), at)));
  const Value last = size_f32(*difference(size, 1)), none = f.f32(0);
  at = f.min(f.max(at, none), last);
  const Value low = f.floor(at), high = f.min(f.add(low, f.f32(1)), last);
  const Value above = f.sub(at, low), below = f.sub(f.f32(1), above);
  return {f.to_i64(low), f.to_i64(high), f.where(inside, below, none), f.where(inside, above, none)};
}

Status roi_align(NodeView& node) {
  INVAR_CHECK_OK(node.expect(3, 3,
                             {"coordinate_transformation_mode", "mode", "output_height", "output_width",
                              "sampling_ratio", "spatial_scale"}));
  const bool early = node.version() < 16;
  INVAR_TRY(const int64_t half_pixel,
            enum_attr(node, "coordinate_transformation_mode", "output_half_pixel half_pixel",
                      early ? "output_half_pixel" : "half_pixel"));
  INVAR_TRY(const int64_t largest, enum_attr(node, "mode", "avg max", "avg"));
  INVAR_TRY(const int64_t height, node.int_attr("output_height", 1));
  INVAR_TRY(const int64_t width, node.int_attr("output_width", 1));
  INVAR_TRY(const int64_t ratio, node.int_attr("sampling_ratio", 0));
  INVAR_TRY(const float scale, node.float_attr("spatial_scale", 1));
  if (ratio == 0)
    return not_covered("attribute \"sampling_ratio\" is 0, which depends on the values of the regions");
  if (ratio < 0 || height < 1 || width < 1) return bad_input("sizes or a ratio below 1");
  if (height > 4096 || width > 4096 || ratio > 4096) return not_covered("sizes or a ratio above 4096");
  const Shape x = node.shape(0), rois = node.shape(1);
  if (x.size() != 4 || rois.size() != 2 || rois[1] != Dim::of(4) || node.shape(2) != Shape{rois[0]})
    return shape_error({x, rois, node.shape(2)},
                       "operands of " + text_of(x) + ", " + text_of(rois) + " and " + text_of(node.shape(2)));
  ExprBuilder f(node);
  INVAR_TRY(const Value rows, pixel_rows(f, 0, /*open=*/true));
  const DimExpr high = *dim_expr_of(x[2]), wide = *dim_expr_of(x[3]);
  std::vector<Value> corner;  // x1 y1 x2 y2, each [R, 1]
  for (int64_t i = 0; i < 4; ++i) {
    corner.push_back(f.mul(f.slice(node.in(1), 1, i, 1), f.f32(scale)));
    if (half_pixel) corner.back() = f.sub(corner.back(), f.f32(0.5f));
  }
  const Samples y = roi_samples(f, corner[1], corner[3], height, ratio, high, !half_pixel);
  const Samples z = roi_samples(f, corner[0], corner[2], width, ratio, wide, !half_pixel);
  const Dim one = Dim::of(1), a = Dim::of(height * ratio), b = Dim::of(width * ratio);
  const Dim taken = Dim::of(a.value * b.value), &r = rois[0];
  const Value batch = f.expand(f.reshape(f.to_i64(node.in(2)), {r, one, one}), {r, taken, one});
  auto weighed = [&](Value row, Value column, Value by_row, Value by_column) {
    Value at = f.add(f.mul(f.reshape(row, {r, a, one}), node.size_tensor(wide, int64_t{1})),
                     f.reshape(column, {r, one, b}));
    Value weight = f.mul(f.reshape(by_row, {r, a, one}), f.reshape(by_column, {r, one, b}));
    const Value positions = f.concat({batch, f.reshape(at, {r, taken, one})}, 2);
    return f.mul(f.reshape(weight, {r, taken, one}),
                 f.make<GatherNdOp>({rows, positions}, node.attr("batch_dims", int64_t{0})));
  };
  INVAR_CHECK_OK(f.status());
  const Value corners[] = {weighed(y.low, z.low, y.below, z.below), weighed(y.low, z.high, y.below, z.above),
                           weighed(y.high, z.low, y.above, z.below),
                           weighed(y.high, z.high, y.above, z.above)};
  Value all = corners[0];
  for (int i = 1; i < 4; ++i) all = largest ? f.max(all, corners[i]) : f.add(all, corners[i]);
  all = f.reshape(all, {r, Dim::of(height), Dim::of(ratio), Dim::of(width), Dim::of(ratio), x[1]});
  const NamedAttribute over[] = {node.attr("axes", Ints({2, 4})), node.attr("keepdims", int64_t{0})};
  if (largest)
    all = f.make<ReduceMaxOp>(all, over);
  else
    all = f.div(f.make<ReduceSumOp>(all, over), f.f32(static_cast<float>(ratio * ratio)));
  all = f.transpose(all, {0, 3, 1, 2});
  INVAR_CHECK_OK(f.status());
  return node.replace(all);
}

}  // namespace

void decompose_deform_conv_roi_align(RuleRegistry& registry) {
  registry.add_rule("DeformConv", 19, deform_conv);
  registry.add_rule("RoiAlign", 10, roi_align);
}

}  // namespace invar::compiler
