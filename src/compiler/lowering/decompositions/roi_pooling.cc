// Convolutions whose kernels are deformed, and pools over regions: pictures sampled at computed places.
#include "compiler/lowering/decompositions/grid_sample.h"
#include "compiler/lowering/builders/sliding_window.h"

namespace invar::compiler {
namespace {

// The places of kernel elements move by offsets; columns of what is found there are contracted with the weights.
Status deform_conv(Node& node) {
  INVAR_CHECK_OK(
      node.expect(3, 5, {"dilations", "group", "kernel_shape", "offset_group", "pads", "strides"}));
  const Shape x = node.shape(0), w = node.shape(1), offset = node.shape(2);
  if (x.size() != 4 || w.size() != 4 || offset.size() != 4)
    return not_covered("covered are two spatial dimensions");
  INVAR_TRY(const int64_t groups, node.i("group", 1));
  INVAR_TRY(const int64_t offsets, node.i("offset_group", 1));
  INVAR_TRY(const int64_t all_weights, product_of(w, 0, 4));
  INVAR_TRY(const int64_t places, product_of(offset, 2, 4));
  constexpr int64_t most = 1 << 24, most_offsets = 256;
  if (all_weights < 1 || all_weights > most || places > most || w[2].value * w[3].value * places > most ||
      offsets > most_offsets)
    return not_covered("no weights, or more than " + std::to_string(most) + " places or weights, or " +
                       std::to_string(most_offsets) + " offset groups");
  const int64_t kernel = w[2].value * w[3].value;
  INVAR_TRY(const Window window, window_of(node, {w[2].value, w[3].value}));
  if (!x[1].constant() || groups < 1 || offsets < 1 || x[1].value != w[1].value * groups ||
      w[0].value % groups || x[1].value % offsets || offset[1] != Extent::of(2 * offsets * kernel) ||
      !same(x[0], offset[0]))
    return misfit({x, w, offset}, "operands of " + text_of(x) + ", " + text_of(w) + " and " +
                                      text_of(offset) + " do not fit");
  for (size_t d = 0; d < 2; ++d) {
    const std::optional<Extent> n =
        windows_in(x[2 + d], window.reach(d), window.strides[d], window.pads[d], window.pads[2 + d], false);
    if (!n || *n != offset[2 + d])
      return misfit({x, offset}, "offsets " + text_of(offset) + " are not those of each window");
  }
  const Shape mask = {x[0], Extent::of(offsets * kernel), offset[2], offset[3]};
  if (node.has(4) && node.shape(4) != mask)
    return unequal(node.shape(4), mask, "a mask of shape " + text_of(node.shape(4)));
  Formula f(node);
  INVAR_TRY(const Value rows, pixels_of(f, 0));
  std::vector<Line> lines;
  std::vector<Value> base;  // where kernel elements lie without offsets, [1, kernel * places, 1]
  for (size_t d = 0; d < 2; ++d) {
    lines.push_back({x[2 + d].value, 0, 0});
    std::vector<float> at;
    for (int64_t e = 0; e < kernel; ++e)
      for (int64_t p = 0; p < places; ++p) {
        const int64_t element = d ? e % w[3].value : e / w[3].value;
        const int64_t place = d ? p % offset[3].value : p / offset[3].value;
        at.push_back(
            static_cast<float>(place * window.strides[d] - window.pads[d] + element * window.dilations[d]));
      }
    base.push_back(f.reals(at, {1, kernel * places, 1}));
  }
  const int64_t channels = x[1].value / offsets;
  const Extent one = Extent::of(1), taken = Extent::of(kernel * places), k = Extent::of(kernel);
  const Value moved =
      f.shape(node.in(2), {x[0], Extent::of(offsets * kernel), Extent::of(2), Extent::of(places)});
  SmallVector<Value> columns;
  for (int64_t g = 0; g < offsets; ++g) {
    std::vector<Value> coordinates;
    const Value mine = f.cut(moved, 1, g * kernel, kernel);
    for (size_t d = 0; d < 2; ++d)
      coordinates.push_back(
          f.add(base[d], f.shape(f.cut(mine, 2, static_cast<int64_t>(d), 1), {x[0], taken, one})));
    const Value pixels = f.cut(rows, 2, g * channels, channels);
    INVAR_CHECK_OK(f.status());
    Value found = Sampler(f, pixels, lines, Beyond::zeros).at(coordinates, Curve::linear);
    if (node.has(4))
      found = f.mul(found, f.shape(f.cut(node.in(4), 1, g * kernel, kernel), {x[0], taken, one}));
    found = f.shape(found, {x[0], k, Extent::of(places), Extent::of(channels)});
    columns.push_back(f.perm(found, {0, 3, 1, 2}));
  }
  const Extent inner = Extent::of(w[1].value * kernel), g = Extent::of(groups),
               filters = Extent::of(w[0].value / groups);
  const Value cols = f.shape(f.join(columns, 1), {x[0], g, inner, Extent::of(places)});
  const Value weights = f.shape(node.in(1), {one, g, filters, inner});
  INVAR_CHECK_OK(f.status());
  Value out = f.of(product(node, weights, cols));
  out = f.shape(out, {x[0], w[0], offset[2], offset[3]});
  if (node.has(3)) out = f.add(out, f.shape(node.in(3), {w[0], one, one}));
  INVAR_CHECK_OK(f.status());
  return node.replace(out);
}

// One axis of all regions: weights and numbers of the pixels below and above each sample, [R, bins * samples].
struct Samples {
  Value low, high, below, above;
};
Samples samples_of(Formula& f, Value start, Value end, int64_t bins, int64_t ratio, const Polynomial& size,
                   bool grows) {
  Value length = f.sub(end, start);
  if (grows) length = f.max(length, f.number(1));
  const Value bin = f.div(length, f.number(static_cast<float>(bins)));
  std::vector<float> which, within;
  for (int64_t b = 0; b < bins; ++b)
    for (int64_t s = 0; s < ratio; ++s)
      which.push_back(static_cast<float>(b)), within.push_back(static_cast<float>(s) + 0.5f);
  const int64_t n = bins * ratio;
  Value at = f.add(start, f.mul(f.reals(which, {1, n}), bin));
  at = f.add(at, f.div(f.mul(f.reals(within, {1, n}), bin), f.number(static_cast<float>(ratio))));
  // Samples more than a pixel outside count nothing.
  const auto real = [&f](const Polynomial& n) { return f.real(f.node().sizes(n, {})); };
  const Value inside = f.make<LogicalNotOp>(f.either(f.less(at, f.number(-1)), f.less(real(size), at)));
  const Value last = real(*difference(size, 1)), none = f.number(0);
  at = f.min(f.max(at, none), last);
  const Value low = f.floor(at), high = f.min(f.add(low, f.number(1)), last);
  const Value above = f.sub(at, low), below = f.sub(f.number(1), above);
  return {f.whole(low), f.whole(high), f.where(inside, below, none), f.where(inside, above, none)};
}

Status roi_align(Node& node) {
  INVAR_CHECK_OK(node.expect(3, 3,
                             {"coordinate_transformation_mode", "mode", "output_height", "output_width",
                              "sampling_ratio", "spatial_scale"}));
  const bool early = node.version() < 16;
  INVAR_TRY(const int64_t shifts,
            choice(node, "coordinate_transformation_mode", "output_half_pixel half_pixel",
                   early ? "output_half_pixel" : "half_pixel"));
  INVAR_TRY(const int64_t largest, choice(node, "mode", "avg max", "avg"));
  INVAR_TRY(const int64_t height, node.i("output_height", 1));
  INVAR_TRY(const int64_t width, node.i("output_width", 1));
  INVAR_TRY(const int64_t ratio, node.i("sampling_ratio", 0));
  INVAR_TRY(const float scale, node.f("spatial_scale", 1));
  if (ratio == 0)
    return not_covered("attribute \"sampling_ratio\" is 0, which depends on the values of the regions");
  if (ratio < 0 || height < 1 || width < 1) return bad_input("sizes or a ratio below 1");
  if (height > 4096 || width > 4096 || ratio > 4096) return not_covered("sizes or a ratio above 4096");
  const Shape x = node.shape(0), rois = node.shape(1);
  if (x.size() != 4 || rois.size() != 2 || rois[1] != Extent::of(4) || node.shape(2) != Shape{rois[0]})
    return misfit({x, rois, node.shape(2)},
                  "operands of " + text_of(x) + ", " + text_of(rois) + " and " + text_of(node.shape(2)));
  Formula f(node);
  INVAR_TRY(const Value rows, pixels_of(f, 0, /*open=*/true));
  const Polynomial high = *polynomial_of(x[2]), wide = *polynomial_of(x[3]);
  std::vector<Value> corner;  // x1 y1 x2 y2, each [R, 1]
  for (int64_t i = 0; i < 4; ++i) {
    corner.push_back(f.mul(f.cut(node.in(1), 1, i, 1), f.number(scale)));
    if (shifts) corner.back() = f.sub(corner.back(), f.number(0.5f));
  }
  const Samples y = samples_of(f, corner[1], corner[3], height, ratio, high, !shifts);
  const Samples z = samples_of(f, corner[0], corner[2], width, ratio, wide, !shifts);
  const Extent one = Extent::of(1), a = Extent::of(height * ratio), b = Extent::of(width * ratio);
  const Extent taken = Extent::of(a.value * b.value), &r = rois[0];
  const Value batch = f.spread(f.shape(f.whole(node.in(2)), {r, one, one}), {r, taken, one});
  auto weighed = [&](Value row, Value column, Value by_row, Value by_column) {
    Value at =
        f.add(f.mul(f.shape(row, {r, a, one}), node.sizes(wide, int64_t{1})), f.shape(column, {r, one, b}));
    Value weight = f.mul(f.shape(by_row, {r, a, one}), f.shape(by_column, {r, one, b}));
    const Value places = f.join({batch, f.shape(at, {r, taken, one})}, 2);
    return f.mul(f.shape(weight, {r, taken, one}),
                 f.make<GatherNdOp>({rows, places}, node.attr("batch_dims", int64_t{0})));
  };
  INVAR_CHECK_OK(f.status());
  const Value corners[] = {weighed(y.low, z.low, y.below, z.below), weighed(y.low, z.high, y.below, z.above),
                           weighed(y.high, z.low, y.above, z.below),
                           weighed(y.high, z.high, y.above, z.above)};
  Value all = corners[0];
  for (int i = 1; i < 4; ++i) all = largest ? f.max(all, corners[i]) : f.add(all, corners[i]);
  all = f.shape(all, {r, Extent::of(height), Extent::of(ratio), Extent::of(width), Extent::of(ratio), x[1]});
  const NamedAttribute over[] = {node.attr("axes", Sizes({2, 4})), node.attr("keepdims", int64_t{0})};
  if (largest)
    all = f.make<ReduceMaxOp>(all, over);
  else
    all = f.div(f.make<ReduceSumOp>(all, over), f.number(static_cast<float>(ratio * ratio)));
  all = f.perm(all, {0, 3, 1, 2});
  INVAR_CHECK_OK(f.status());
  return node.replace(all);
}

}  // namespace

void decompose_roi_pooling(Rooms& rooms) {
  rooms.on("DeformConv", 19, deform_conv);
  rooms.on("RoiAlign", 10, roi_align);
}

}  // namespace invar::compiler
