// GridSample and AffineGrid: gathers and interpolation in the order of ONNX's reference.
#include "compiler/lowering/decompositions/grid_sample.h"

namespace invar::compiler {

Result<Value> pixel_rows(ExprBuilder& f, unsigned operand, bool open) {
  const Shape x = f.node().shape(operand);
  if (!open) {
    INVAR_CHECK_OK(static_element_count(x, 2, x.size()));
  }
  const std::optional<DimExpr> pixels = element_count(Shape(x.begin() + 2, x.end()));
  if (!pixels || *pixels == 0) return not_covered("a picture without pixels");
  const Value rows = f.transpose(f.reshape(f.node().in(operand), {x[0], x[1], Dim::of(*pixels)}), {0, 2, 1});
  INVAR_CHECK_OK(f.status());
  return rows;
}

// Reflects x at `low` and `high` until it lies between them.
Value Sampler::reflect(Value x, const AxisBounds& axis) {
  const Value low = f_.f32(axis.low), high = f_.f32(axis.high), range = f_.f32(axis.high - axis.low);
  const Value below = f_.less(x, low), above = f_.less(high, x);
  const Value beyond = f_.where(below, f_.sub(low, x), f_.sub(x, high));
  const Value reflections = f_.floor(f_.div(beyond, range));
  const Value rest = f_.sub(beyond, f_.mul(reflections, range));
  const Value half = f_.floor(f_.mul(reflections, f_.f32(0.5f)));
  const Value odd = f_.less(f_.add(half, half), reflections);
  const Value from_low = f_.add(low, rest), from_high = f_.sub(high, rest);
  const Value folded =
      f_.where(below, f_.where(odd, from_high, from_low), f_.where(odd, from_low, from_high));
  return f_.where(f_.logical_or(below, above), folded, x);
}

Value Sampler::clamp_coordinate(Value x, const AxisBounds& axis) {
  if (padding_ == PaddingMode::zeros) return x;
  if (padding_ == PaddingMode::reflection) return reflect(x, axis);
  const Value low = f_.f32(axis.low), high = f_.f32(axis.high);
  const Value clamped = f_.min(f_.max(x, f_.f32(0)), f_.f32(static_cast<float>(axis.size - 1)));
  return f_.where(f_.logical_or(f_.less(x, low), f_.less(high, x)), clamped, x);
}

Sampler::Pixel Sampler::next(const Pixel& so_far, Value position, const AxisBounds& axis) {
  const int64_t last = axis.size - 1;
  Pixel p = so_far;
  if (padding_ == PaddingMode::zeros) {
    const Value inside = f_.logical_and(f_.less(f_.f32(-1), position),
                                        f_.less(position, f_.f32(static_cast<float>(axis.size))));
    p.within = p.within ? f_.logical_and(p.within, inside) : inside;
  }
  if (padding_ == PaddingMode::reflection) position = reflect(position, axis);
  Value number = f_.to_i64(position);
  number = f_.min(f_.max(number, f_.node().constant(Ints(int64_t{0}))), f_.node().constant(Ints(last)));
  p.number = p.number ? f_.add(f_.mul(p.number, f_.node().constant(Ints(axis.size))), number) : number;
  return p;
}

Value Sampler::pixel(const Pixel& p) {
  const Value v = f_.make<GatherNdOp>({rows_, p.number}, f_.node().attr("batch_dims", int64_t{1}));
  return p.within ? f_.where(p.within, v, f_.f32(0)) : v;
}

Value Sampler::interpolate(size_t axis, const Pixel& so_far) {
  if (axis == axes_.size()) return pixel(so_far);
  Value sum;
  for (size_t i = 0; i < weights_[axis].size() && f_.status(); ++i) {
    const float offset = static_cast<float>(i) - (interpolation_ == Interpolation::cubic ? 1 : 0);
    const Value position = f_.add(first_[axis], f_.f32(offset));
    const Value term = f_.mul(weights_[axis][i], interpolate(axis + 1, next(so_far, position, axes_[axis])));
    sum = sum ? f_.add(sum, term) : term;
  }
  return sum;
}

// Cubic convolution with a = -0.75: the weights of the pixels -1, 0, 1, 2 for a coordinate t in [0,
// 1).
static std::vector<Value> cubic_weights(ExprBuilder& f, Value t) {
  auto n = [&](float v) { return f.f32(v); };
  auto inner_weight = [&](Value x) {  // ((a + 2) x - (a + 3)) x x + 1
    return f.add(f.mul(f.mul(f.sub(f.mul(n(1.25f), x), n(2.25f)), x), x), n(1));
  };
  auto outer_weight = [&](Value x) {  // ((a x - 5 a) x + 8 a) x - 4 a
    return f.add(f.mul(f.sub(f.mul(f.add(f.mul(n(-0.75f), x), n(3.75f)), x), n(6)), x), n(3));
  };
  return {outer_weight(f.add(t, n(1))), inner_weight(t), inner_weight(f.sub(n(1), t)),
          outer_weight(f.sub(n(2), t))};
}

Value Sampler::at(llvm::ArrayRef<Value> coordinates, Interpolation interpolation) {
  interpolation_ = interpolation;
  Pixel nearest;
  first_.clear(), weights_.clear();
  for (size_t i = 0; i < axes_.size(); ++i) {
    const Value given =
        interpolation == Interpolation::nearest ? f_.make<RoundOp>(coordinates[i]) : coordinates[i];
    // A cubic at the border reads the pixels that its taps are clamped to (onnx.16).
    const bool taps = interpolation == Interpolation::cubic && padding_ == PaddingMode::border;
    const Value x = taps ? given : clamp_coordinate(given, axes_[i]);
    if (interpolation == Interpolation::nearest) {
      nearest = next(nearest, f_.make<TruncOp>(x), axes_[i]);
      continue;
    }
    const Value first = f_.floor(x), t = f_.sub(x, first);
    first_.push_back(first);
    weights_.push_back(interpolation == Interpolation::cubic ? cubic_weights(f_, t)
                                                             : std::vector<Value>{f_.sub(f_.f32(1), t), t});
  }
  return interpolation == Interpolation::nearest ? pixel(nearest) : interpolate(0, {});
}

namespace {

// Grid coordinates -1 and 1 are the centres of the outermost pixels (align_corners) or their outer
// edges.
Status grid_sample(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"align_corners", "mode", "padding_mode"}));
  if (!element_of(node.in(0)).isF32()) return not_covered("covered are pictures of f32, f16 and bf16");
  INVAR_TRY(const int64_t corners, node.int_attr("align_corners", 0));
  INVAR_TRY(int64_t interpolation,
            enum_attr(node, "mode", "linear nearest cubic bilinear bicubic", "linear"));
  if (interpolation > 2) interpolation = interpolation == 3 ? 0 : 2;
  INVAR_TRY(const int64_t beyond, enum_attr(node, "padding_mode", "zeros border reflection", "zeros"));
  const Shape x = node.shape(0), grid = node.shape(1);
  if (x.size() < 3 || grid.size() != x.size())
    return bad_input("picture and grid differ in rank, or have no dimensions");
  const size_t axes = x.size() - 2;
  if (axes > 3 || (interpolation == 2 && axes != 2))
    return not_covered("covered are one to three dimensions, two of cubic");
  const DimText pair = "a grid " + text_of(grid) + " for a picture " + text_of(x);
  INVAR_CHECK_OK(node.require_equal(grid.back(), Dim::of(static_cast<int64_t>(axes)), pair));
  INVAR_CHECK_OK(node.require_equal(x[0], grid[0], pair));
  const std::optional<DimExpr> points = element_count(Shape(grid.begin() + 1, grid.end() - 1));
  if (!points) return not_covered(pair);
  ExprBuilder f(node);
  INVAR_TRY(const Value rows, pixel_rows(f, 0));
  const Value all = f.reshape(node.in(1), {x[0], Dim::of(*points), grid.back()});
  std::vector<AxisBounds> sampled;
  std::vector<Value> coordinates;
  for (size_t d = 0; d < axes; ++d) {
    const auto n = static_cast<float>(x[2 + d].value);
    sampled.push_back(corners ? AxisBounds{x[2 + d].value, 0, n - 1}
                              : AxisBounds{x[2 + d].value, -0.5f, n - 0.5f});
    // The grid has the coordinate of the innermost dimension first.
    const Value from_low = f.add(f.slice(all, 2, static_cast<int64_t>(axes - 1 - d), 1), f.f32(1));
    const Value half = f.f32(0.5f);
    coordinates.push_back(corners ? f.mul(f.mul(from_low, half), f.f32(n - 1))
                                  : f.mul(f.sub(f.mul(from_low, f.f32(n)), f.f32(1)), half));
  }
  INVAR_CHECK_OK(f.status());
  Value out = Sampler(f, rows, sampled, static_cast<PaddingMode>(beyond))
                  .at(coordinates, static_cast<Interpolation>(interpolation));
  Shape shape = {x[0], x[1]};
  shape.insert(shape.end(), grid.begin() + 1, grid.end() - 1);
  out = f.reshape(f.transpose(out, {0, 2, 1}), shape);
  INVAR_CHECK_OK(f.status());
  return node.replace(out);
}

// The grid that GridSample takes: theta times (x, y, [z,] 1) for each pixel.
Status affine_grid(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"align_corners"}));
  INVAR_TRY(const int64_t corners, node.int_attr("align_corners", 0));
  INVAR_TRY(const std::vector<DimExpr> size, node.dim_exprs(1));
  const Shape theta = node.shape(0);
  const size_t axes = size.size() - 2;
  if (size.size() != 4 && size.size() != 5)
    return bad_input("operand 1 has " + std::to_string(size.size()) + " sizes");
  const auto k = static_cast<int64_t>(axes);
  if (theta.size() != 3 || theta[1] != Dim::of(k) || theta[2] != Dim::of(k + 1))
    return shape_error({theta},
                       "operand 0 of shape " + text_of(theta) + " for " + std::to_string(k) + " dimensions");
  ExprBuilder f(node);
  // A column of theta for each dimension, as [N, 1, ..., 1, axes].
  auto column = [&](int64_t i) {
    Shape shape(axes + 2, Dim::of(1));
    shape.front() = theta[0], shape.back() = theta[1];
    return f.reshape(f.slice(node.in(0), 2, i, 1), shape);
  };
  Value sum;
  Shape full = {theta[0]};
  for (int64_t i = 0; i < k; ++i) {  // x is the last dimension
    const size_t d = axes - 1 - static_cast<size_t>(i);
    const DimExpr& pixels = size[2 + d];
    Value positions;
    if (const std::optional<int64_t> known = pixels.constant()) {
      const int64_t n = *known, steps = corners ? n - 1 : n;
      if (n < 1 || n >= 1 << 22 || steps == 0)
        return not_covered("a dimension of " + std::to_string(n) + " pixels");
      std::vector<float> points;
      for (int64_t p = 0; p < n; ++p)
        points.push_back(static_cast<float>(2 * p + 1 - n) / static_cast<float>(steps));
      positions = f.f32_tensor(points, {n});
    } else {
      const std::optional<DimExpr> first = difference(1, pixels),
                                   steps = corners ? difference(pixels, 1) : pixels;
      if (!first || !steps) return not_covered("a dimension of " + text_of(pixels) + " pixels");
      const Value points = f.make<IotaOp>({node.size_tensor(*first, {}), node.size_tensor(DimExpr(2), {})},
                                          {}, tensor_of({Dim::of(pixels)}, node.builder().getI64Type()));
      positions = f.div(f.to_f32(points), f.to_f32(node.size_tensor(*steps, {})));
    }
    Shape shape(axes + 2, Dim::of(1));
    shape[1 + d] = Dim::of(pixels);
    const Value term = f.mul(column(i), f.reshape(positions, shape));
    sum = sum ? f.add(sum, term) : term;
  }
  sum = f.add(sum, column(k));
  INVAR_CHECK_OK(f.status());
  return node.replace(sum);
}

}  // namespace

void decompose_grid_sample(RuleRegistry& registry) {
  registry.add_rule("GridSample", 16, grid_sample, "TG>T");
  registry.add_rule("AffineGrid", 20, affine_grid);
}

}  // namespace invar::compiler
