// Pictures sampled between their pixels: gathers and arithmetic, in the order of ONNX's reference.
#include "compiler/lowering/decompositions/grid_sample.h"

namespace invar::compiler {

Result<Value> pixels_of(Formula& f, unsigned operand, bool open) {
  const Shape x = f.node().shape(operand);
  if (!open) {
    INVAR_CHECK_OK(product_of(x, 2, x.size()));
  }
  const std::optional<Polynomial> pixels = count_of(Shape(x.begin() + 2, x.end()));
  if (!pixels || *pixels == 0) return not_covered("a picture without pixels");
  const Value rows = f.perm(f.shape(f.node().in(operand), {x[0], x[1], Extent::of(*pixels)}), {0, 2, 1});
  INVAR_CHECK_OK(f.status());
  return rows;
}

// Folded back at `low` and `high` until it lies between them.
Value Sampler::reflected(Value x, const Line& line) {
  const Value low = f_.number(line.low), high = f_.number(line.high), range = f_.number(line.high - line.low);
  const Value below = f_.less(x, low), above = f_.less(high, x);
  const Value beyond = f_.where(below, f_.sub(low, x), f_.sub(x, high));
  const Value turns = f_.floor(f_.div(beyond, range));
  const Value rest = f_.sub(beyond, f_.mul(turns, range));
  const Value half = f_.floor(f_.mul(turns, f_.number(0.5f)));
  const Value odd = f_.less(f_.add(half, half), turns);
  const Value from_low = f_.add(low, rest), from_high = f_.sub(high, rest);
  const Value folded =
      f_.where(below, f_.where(odd, from_high, from_low), f_.where(odd, from_low, from_high));
  return f_.where(f_.either(below, above), folded, x);
}

Value Sampler::within_bounds(Value x, const Line& line) {
  if (beyond_ == Beyond::zeros) return x;
  if (beyond_ == Beyond::reflection) return reflected(x, line);
  const Value low = f_.number(line.low), high = f_.number(line.high);
  const Value clamped = f_.min(f_.max(x, f_.number(0)), f_.number(static_cast<float>(line.size - 1)));
  return f_.where(f_.either(f_.less(x, low), f_.less(high, x)), clamped, x);
}

Sampler::Pixel Sampler::next(const Pixel& so_far, Value place, const Line& line) {
  const int64_t last = line.size - 1;
  Pixel p = so_far;
  if (beyond_ == Beyond::zeros) {
    const Value inside =
        f_.both(f_.less(f_.number(-1), place), f_.less(place, f_.number(static_cast<float>(line.size))));
    p.within = p.within ? f_.both(p.within, inside) : inside;
  }
  if (beyond_ == Beyond::reflection) place = reflected(place, line);
  Value number = f_.whole(place);
  number = f_.min(f_.max(number, f_.node().constant(Sizes(int64_t{0}))), f_.node().constant(Sizes(last)));
  p.number = p.number ? f_.add(f_.mul(p.number, f_.node().constant(Sizes(line.size))), number) : number;
  return p;
}

Value Sampler::pixel(const Pixel& p) {
  const Value v = f_.make<GatherNdOp>({rows_, p.number}, f_.node().attr("batch_dims", int64_t{1}));
  return p.within ? f_.where(p.within, v, f_.number(0)) : v;
}

Value Sampler::around(size_t line, const Pixel& so_far) {
  if (line == lines_.size()) return pixel(so_far);
  Value sum;
  for (size_t i = 0; i < weights_[line].size() && f_.status(); ++i) {
    const float offset = static_cast<float>(i) - (curve_ == Curve::cubic ? 1 : 0);
    const Value place = f_.add(first_[line], f_.number(offset));
    const Value term = f_.mul(weights_[line][i], around(line + 1, next(so_far, place, lines_[line])));
    sum = sum ? f_.add(sum, term) : term;
  }
  return sum;
}

// Cubic convolution with a = -0.75: the weights of the pixels at -1, 0, 1, 2 for a coordinate t beyond pixel 0.
static std::vector<Value> cubic_weights(Formula& f, Value t) {
  auto n = [&](float v) { return f.number(v); };
  auto near = [&](Value x) {  // ((a + 2) x - (a + 3)) x x + 1
    return f.add(f.mul(f.mul(f.sub(f.mul(n(1.25f), x), n(2.25f)), x), x), n(1));
  };
  auto far = [&](Value x) {  // ((a x - 5 a) x + 8 a) x - 4 a
    return f.add(f.mul(f.sub(f.mul(f.add(f.mul(n(-0.75f), x), n(3.75f)), x), n(6)), x), n(3));
  };
  return {far(f.add(t, n(1))), near(t), near(f.sub(n(1), t)), far(f.sub(n(2), t))};
}

Value Sampler::at(llvm::ArrayRef<Value> coordinates, Curve curve) {
  curve_ = curve;
  Pixel nearest;
  first_.clear(), weights_.clear();
  for (size_t i = 0; i < lines_.size(); ++i) {
    const Value given = curve == Curve::nearest ? f_.make<RoundOp>(coordinates[i]) : coordinates[i];
    const Value x = within_bounds(given, lines_[i]);
    if (curve == Curve::nearest) {
      nearest = next(nearest, f_.make<TruncOp>(x), lines_[i]);
      continue;
    }
    const Value first = f_.floor(x), t = f_.sub(x, first);
    first_.push_back(first);
    weights_.push_back(curve == Curve::cubic ? cubic_weights(f_, t)
                                             : std::vector<Value>{f_.sub(f_.number(1), t), t});
  }
  return curve == Curve::nearest ? pixel(nearest) : around(0, {});
}

namespace {

// -1 and 1 are the middles of the outermost pixels (align_corners) or their outer edges.
Status grid_sample(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"align_corners", "mode", "padding_mode"}));
  if (!element_of(node.in(0)).isF32()) return not_covered("covered are pictures of f32, f16 and bf16");
  INVAR_TRY(const int64_t corners, node.i("align_corners", 0));
  INVAR_TRY(int64_t curve, choice(node, "mode", "linear nearest cubic bilinear bicubic", "linear"));
  if (curve > 2) curve = curve == 3 ? 0 : 2;
  INVAR_TRY(const int64_t beyond, choice(node, "padding_mode", "zeros border reflection", "zeros"));
  const Shape x = node.shape(0), grid = node.shape(1);
  if (x.size() < 3 || grid.size() != x.size())
    return bad_input("picture and grid differ in rank, or have no dimensions");
  const size_t axes = x.size() - 2;
  if (axes > 3 || (curve == 2 && axes != 2))
    return not_covered("covered are one to three dimensions, two of cubic");
  const std::string pair = "a grid " + text_of(grid) + " for a picture " + text_of(x);
  INVAR_CHECK_OK(node.equal(grid.back(), Extent::of(static_cast<int64_t>(axes)), pair));
  INVAR_CHECK_OK(node.equal(x[0], grid[0], pair));
  const std::optional<Polynomial> places = count_of(Shape(grid.begin() + 1, grid.end() - 1));
  if (!places) return not_covered(pair);
  Formula f(node);
  INVAR_TRY(const Value rows, pixels_of(f, 0));
  const Value all = f.shape(node.in(1), {x[0], Extent::of(*places), grid.back()});
  std::vector<Line> lines;
  std::vector<Value> coordinates;
  for (size_t d = 0; d < axes; ++d) {
    const auto n = static_cast<float>(x[2 + d].value);
    lines.push_back(corners ? Line{x[2 + d].value, 0, n - 1} : Line{x[2 + d].value, -0.5f, n - 0.5f});
    // The grid names the last dimension first.
    const Value from_low = f.add(f.cut(all, 2, static_cast<int64_t>(axes - 1 - d), 1), f.number(1));
    const Value half = f.number(0.5f);
    coordinates.push_back(corners ? f.mul(f.mul(from_low, half), f.number(n - 1))
                                  : f.mul(f.sub(f.mul(from_low, f.number(n)), f.number(1)), half));
  }
  INVAR_CHECK_OK(f.status());
  Value out = Sampler(f, rows, lines, static_cast<Beyond>(beyond)).at(coordinates, static_cast<Curve>(curve));
  Shape shape = {x[0], x[1]};
  shape.insert(shape.end(), grid.begin() + 1, grid.end() - 1);
  out = f.shape(f.perm(out, {0, 2, 1}), shape);
  INVAR_CHECK_OK(f.status());
  return node.replace(out);
}

// The grid that GridSample takes: theta times (x, y, [z,] 1) for each pixel.
Status affine_grid(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"align_corners"}));
  INVAR_TRY(const int64_t corners, node.i("align_corners", 0));
  INVAR_TRY(const std::vector<Polynomial> size, node.sizes(1));
  const Shape theta = node.shape(0);
  const size_t axes = size.size() - 2;
  if (size.size() != 4 && size.size() != 5)
    return bad_input("operand 1 has " + std::to_string(size.size()) + " sizes");
  const auto k = static_cast<int64_t>(axes);
  if (theta.size() != 3 || theta[1] != Extent::of(k) || theta[2] != Extent::of(k + 1))
    return misfit({theta},
                  "operand 0 of shape " + text_of(theta) + " for " + std::to_string(k) + " dimensions");
  Formula f(node);
  // A column of theta for each dimension, as [N, 1, ..., 1, axes].
  auto column = [&](int64_t i) {
    Shape shape(axes + 2, Extent::of(1));
    shape.front() = theta[0], shape.back() = theta[1];
    return f.shape(f.cut(node.in(0), 2, i, 1), shape);
  };
  Value sum;
  Shape full = {theta[0]};
  for (int64_t i = 0; i < k; ++i) {  // x is the last dimension
    const size_t d = axes - 1 - static_cast<size_t>(i);
    const Polynomial& pixels = size[2 + d];
    Value line;
    if (const std::optional<int64_t> known = pixels.constant()) {
      const int64_t n = *known, steps = corners ? n - 1 : n;
      if (n < 1 || n >= 1 << 22 || steps == 0)
        return not_covered("a dimension of " + std::to_string(n) + " pixels");
      std::vector<float> places;
      for (int64_t p = 0; p < n; ++p)
        places.push_back(static_cast<float>(2 * p + 1 - n) / static_cast<float>(steps));
      line = f.reals(places, {n});
    } else {
      const std::optional<Polynomial> first = difference(1, pixels),
                                      steps = corners ? difference(pixels, 1) : pixels;
      if (!first || !steps) return not_covered("a dimension of " + pixels.text() + " pixels");
      const Value places = f.make<IotaOp>({node.sizes(*first, {}), node.sizes(Polynomial(2), {})}, {},
                                          tensor_of({Extent::of(pixels)}, node.build().getI64Type()));
      line = f.div(f.real(places), f.real(node.sizes(*steps, {})));
    }
    Shape shape(axes + 2, Extent::of(1));
    shape[1 + d] = Extent::of(pixels);
    const Value term = f.mul(column(i), f.shape(line, shape));
    sum = sum ? f.add(sum, term) : term;
  }
  sum = f.add(sum, column(k));
  INVAR_CHECK_OK(f.status());
  return node.replace(sum);
}

}  // namespace

void decompose_grid_sample(Rooms& rooms) {
  rooms.on("GridSample", 16, grid_sample, "TG>T");
  rooms.on("AffineGrid", 20, affine_grid);
}

}  // namespace invar::compiler
