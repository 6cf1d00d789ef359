// DFT and STFT as matrix products with twiddle factors (onnx.16).
#include <algorithm>

#include "compiler/lowering/builders/expr_builder.h"
#include "num/dd/dd.h"

namespace invar::compiler {
namespace {

using num::DD;

constexpr int64_t kMaxMatrixEntries = int64_t{1} << 24;

struct CosSin {
  float cosine, sine;
};

// Cosine and sine of pi / 2 * r / n, 0 <= 2 r <= n: Taylor series in double-double (relative error
// below 2^-90), rounded once.
CosSin octant_cos_sin(int64_t r, int64_t n) {
  const DD half_pi{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
  const DD x = num::dd_mul(half_pi, num::dd_div({static_cast<double>(r), 0}, {static_cast<double>(n), 0}));
  const DD square = num::dd_neg(num::dd_mul(x, x));
  DD sine{0, 0}, cosine{0, 0};
  for (double k = 26; k > 0; k -= 2) {  // Horner's scheme; the first term left out is below 2^-98
    sine = num::dd_mul(num::dd_div(square, {(k + 1) * k, 0}), num::dd_add({1, 0}, sine));
    cosine = num::dd_mul(num::dd_div(square, {k * (k - 1), 0}), num::dd_add({1, 0}, cosine));
  }
  sine = num::dd_mul(x, num::dd_add({1, 0}, sine));
  return {num::f32_from_dd(num::dd_add({1, 0}, cosine)), num::f32_from_dd(sine)};
}

// Cosine and sine of 2 pi j / n for j in [0, n).
std::vector<CosSin> twiddle_factors(int64_t n) {
  std::vector<CosSin> all;
  for (int64_t j = 0; j < n; ++j) {
    const int64_t quarter = 4 * j / n, r = 4 * j % n;
    CosSin t = octant_cos_sin(std::min(r, n - r), n);
    if (2 * r > n) std::swap(t.cosine, t.sine);
    if (quarter & 1) t = {-t.sine, t.cosine};
    if (quarter & 2) t = {-t.cosine, -t.sine};
    all.push_back(t);
  }
  return all;
}

struct DftParams {
  DimExpr length;  // of the transform
  bool inverse, onesided, complex;
};

// The matrix [n, outputs] of a symbolic length: angles reduced to the first octant, then the f32
// functions, of a quotient that is rounded once.
Value dynamic_dft_matrix(ExprBuilder& f, const DftParams& t, const DimExpr& outputs, bool imaginary) {
  NodeView& node = f.node();
  const Type i64 = node.builder().getI64Type();
  const auto line = [&](const DimExpr& count, const Shape& shape) {
    return f.reshape(f.make<IotaOp>({node.constant(Ints(0)), node.constant(Ints(1))}, {},
                                    tensor_of({Dim::of(count)}, i64)),
                     shape);
  };
  const Value n = node.size_tensor(t.length, {}), one = node.constant(Ints(1)), two = node.constant(Ints(2)),
              four = node.constant(Ints(4));
  const Value at = f.mul(line(t.length, {Dim::of(t.length), Dim::of(1)}), line(outputs, {Dim::of(outputs)}));
  const Value quarters = f.mul(f.make<ModOp>({at, n}), four), r = f.make<ModOp>({quarters, n}),
              quarter = f.div(f.sub(quarters, r), n), left = f.sub(n, r);
  const Value angle = f.mul(f.div(f.to_f32(f.min(r, left)), f.to_f32(n)), f.f32(0.5f));
  Value cosine = f.make<CospiOp>(angle), sine = f.make<SinpiOp>(angle);
  const auto rotate = [&](Value where, Value c, Value s) {
    const Value next = f.where(where, c, cosine);
    sine = f.where(where, s, sine), cosine = next;
  };
  rotate(f.less(left, r), sine, cosine);
  rotate(f.make<EqualOp>({f.make<ModOp>({quarter, two}), one}), f.make<NegOp>(sine), cosine);
  rotate(f.less(one, quarter), f.make<NegOp>(cosine), f.make<NegOp>(sine));
  if (!t.inverse) sine = f.make<NegOp>(sine);
  const Value first = imaginary ? sine : cosine, second = imaginary ? cosine : f.make<NegOp>(sine);
  if (!t.complex) return first;
  const Value both[] = {first, second};
  return f.concat(both, 0);
}

// The matrix [inputs, outputs] for the real or imaginary part of the result; for complex input the
// rows of real parts come first.
Value dft_matrix(ExprBuilder& f, const DftParams& t, int64_t inputs, int64_t outputs, bool imaginary) {
  const int64_t length = *t.length.constant();
  const std::vector<CosSin> twiddles = twiddle_factors(length);
  std::vector<float> entries;
  for (int part = 0; part <= t.complex; ++part)
    for (int64_t i = 0; i < inputs; ++i) {
      // A onesided input stands for its mirror image, too.
      const bool mirrored = t.inverse && t.onesided && i != 0 && 2 * i != length;
      for (int64_t k = 0; k < outputs; ++k) {
        const CosSin& twiddle = twiddles[static_cast<size_t>(i * k % length)];
        const float sine = t.inverse ? twiddle.sine : -twiddle.sine;
        const float entry =
            part == 0 ? (imaginary ? sine : twiddle.cosine) : (imaginary ? twiddle.cosine : -sine);
        entries.push_back(mirrored ? 2 * entry : entry);
      }
    }
  return f.f32_tensor(entries, {inputs * (t.complex ? 2 : 1), outputs});
}

// Transforms one axis of x [..., n, ..., 1 or 2].
Result<Value> apply_dft(ExprBuilder& f, Value x, size_t axis, DftParams t) {
  Shape shape = shape_of(x.getType());
  const size_t last = shape.size() - 1;
  if (axis >= last) return bad_input("the axis of the parts is that of the transform");
  if (shape[last] != Dim::of(1) && shape[last] != Dim::of(2))
    return shape_error({{shape[last]}},
                       "the last dimension is " + text_of(shape[last]) + " instead of 1 or 2");
  t.complex = shape[last] == Dim::of(2);
  const std::optional<int64_t> length = t.length.constant();
  const std::optional<DimExpr> half = floor_div(t.length, 2), more = half ? sum(*half, 1) : half;
  if (!more) return not_covered("a transform of length " + text_of(t.length));
  const DimExpr inputs = t.inverse && t.onesided ? *more : t.length;
  const DimExpr outputs = !t.inverse && t.onesided ? *more : t.length;
  if (length.value_or(1) < 1) return bad_input("a transform of " + text_of(t.length));
  if (length && (*length > kMaxMatrixEntries || *inputs.constant() * *outputs.constant() > kMaxMatrixEntries))
    return not_covered("a transform of length " + text_of(t.length));
  if (!t.inverse && t.onesided && t.complex) return bad_input("one side of a transform of complex numbers");
  if (!length && (shape[axis] != Dim::of(t.length) || (t.inverse && t.onesided)))
    return not_covered("dimension " + text_of(shape[axis]) + " transformed as " + text_of(t.length));
  if (length && !shape[axis].constant())
    return not_covered("dimension " + text_of(shape[axis]) + " transformed as " + text_of(t.length));
  if (length && shape[axis].value > *inputs.constant()) x = f.slice(x, axis, 0, *inputs.constant());
  if (length && shape[axis].value < *inputs.constant()) {
    const SmallVector<int64_t> begins(shape.size(), 0);
    shape[axis] = Dim::of(inputs);
    x = f.make<PadOp>(x, f.node().attr("begins", Ints(begins)), tensor_of(shape, element_of(x)));
  }
  // [..., parts * inputs].
  shape[axis] = Dim::of(inputs);
  SmallVector<int64_t> perm, back;
  Shape flat;
  for (size_t d = 0; d < last; ++d)
    if (d != axis) perm.push_back(static_cast<int64_t>(d)), flat.push_back(shape[d]);
  perm.push_back(static_cast<int64_t>(last)), perm.push_back(static_cast<int64_t>(axis));
  const std::optional<DimExpr> rows = product(inputs, t.complex ? 2 : 1);
  if (!rows) return not_covered("a transform of length " + text_of(t.length));
  flat.push_back(Dim::of(*rows));
  const bool one_row = flat.size() == 1;
  if (one_row) flat.insert(flat.begin(), Dim::of(1));
  x = f.reshape(f.transpose(x, perm), flat);
  if (Status s = f.status(); !s) return s.error();
  const bool real_only = t.inverse && t.onesided;
  SmallVector<Value> parts;
  for (int part = 0; part <= !real_only; ++part) {
    const Value waves = length ? dft_matrix(f, t, *inputs.constant(), *outputs.constant(), part == 1)
                               : dynamic_dft_matrix(f, t, outputs, part == 1);
    if (Status s = f.status(); !s) return s.error();
    Value v = f.check(matrix_product(f.node(), x, waves));
    if (t.inverse)
      v = f.div(v,
                length ? f.f32(static_cast<float>(*length)) : f.to_f32(f.node().size_tensor(t.length, {})));
    Shape result = flat;
    result.back() = Dim::of(outputs);
    if (one_row) result.erase(result.begin());
    result.push_back(Dim::of(1));
    parts.push_back(f.reshape(v, result));
  }
  for (size_t d = 0; d < last; ++d)
    back.push_back(static_cast<int64_t>(d == axis ? last - 1 : d < axis ? d : d - 1));
  back.push_back(static_cast<int64_t>(last));
  const Value out = f.transpose(f.concat(parts, static_cast<int64_t>(last)), back);
  if (Status s = f.status(); !s) return s.error();
  return out;
}

// Since opset 20 the axis is an operand.
Status dft(NodeView& node) {
  const bool attribute = node.version() < 20;
  if (attribute) {
    INVAR_CHECK_OK(node.expect(1, 2, {"axis", "inverse", "onesided"}));
  } else {
    INVAR_CHECK_OK(node.expect(1, 3, {"inverse", "onesided"}));
  }
  INVAR_TRY(const int64_t inverse, node.int_attr("inverse", 0));
  INVAR_TRY(const int64_t onesided, node.int_attr("onesided", 0));
  const Shape shape = node.shape(0);
  INVAR_TRY(int64_t axis, attribute ? node.int_attr("axis", 1) : constant_int(node, 2, -2));
  INVAR_TRY(axis, NodeView::normalize_axis(axis, shape.size()));
  const Dim& n = shape[static_cast<size_t>(axis)];
  std::optional<DimExpr> length = dim_expr_of(n);
  if (node.has(1)) {
    INVAR_TRY(const auto given, node.known_dim_exprs(1));
    if (given.size() != 1) return bad_input("operand 1 is not one number");
    if (!given[0]) return node.not_constant(1);
    length = given[0];
  } else if (length && inverse && onesided) {
    const std::optional<DimExpr> steps = difference(*length, 1);
    length = steps ? product(*steps, 2) : steps;
  }
  if (!length) return not_covered("dimension " + text_of(n) + " transformed");
  ExprBuilder f(node);
  INVAR_TRY(const Value out, apply_dft(f, node.in(0), static_cast<size_t>(axis),
                                       {*length, inverse != 0, onesided != 0, false}));
  return node.replace(out);
}

// Gathers the frames of the signal [B, n, 1 or 2], multiplies by the window and transforms them. A
// signal of rank 2, as PyTorch exports it, is real.
Status stft(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 4, {"onesided"}));
  INVAR_TRY(const int64_t onesided, node.int_attr("onesided", 1));
  Shape signal = node.shape(0);
  if (signal.size() == 2) signal.push_back(Dim::of(1));
  if (signal.size() != 3) return not_covered("a signal of shape " + text_of(signal));
  INVAR_TRY(const int64_t step, constant_int(node, 1, 0));
  int64_t length = signal[1].constant() ? signal[1].value : 0;
  if (node.has(2)) {
    if (node.shape(2).size() != 1 || !node.shape(2)[0].constant())
      return not_covered("a window of shape " + text_of(node.shape(2)));
    length = node.shape(2)[0].value;
  }
  INVAR_TRY(length, constant_int(node, 3, length));
  if (node.has(2) && node.shape(2) != Shape{Dim::of(length)})
    return bad_input("a window that is not as long as a frame");
  if (step < 1 || length < 1 || (signal[1].constant() && length > signal[1].value))
    return bad_input("frames of " + std::to_string(length) + " every " + std::to_string(step) + " of " +
                     text_of(signal[1]));
  const std::optional<DimExpr> n = dim_expr_of(signal[1]), free = n ? difference(*n, length) : n;
  const std::optional<DimExpr> steps = free ? floor_div(*free, step) : free;
  const std::optional<DimExpr> frames = steps ? sum(*steps, 1) : steps;
  if (!frames || frames->constant().value_or(1) > kMaxMatrixEntries / length)
    return not_covered("frames of more than " + std::to_string(kMaxMatrixEntries) + " samples");
  ExprBuilder f(node);
  Value x = f.reshape(node.in(0), signal);
  if (signal[1].constant()) {
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < *frames->constant(); ++i)
      for (int64_t j = 0; j < length; ++j) indices.push_back(i * step + j);
    x = f.make<GatherOp>({x, node.constant(indices)}, node.attr("axis", int64_t{1}));
    x = f.reshape(x, {signal[0], Dim::of(*frames), Dim::of(length), signal[2]});
  } else {
    const Dim rows = Dim::of(*frames), one = Dim::of(1);
    auto counted_by = [&](Value from, const Dim& count, int64_t by) {
      return f.make<IotaOp>({from, node.constant(Ints(by))}, {},
                            tensor_of({count}, node.builder().getI64Type()));
    };
    // A signal shorter than one frame is an error.
    INVAR_TRY(const Value checked, nonnegative_size_tensor(node, *free));
    const Value begin = f.make<SubOp>({checked, node.size_tensor(*free, {})});
    const Value indices = f.add(f.reshape(counted_by(begin, rows, step), {rows, one}),
                                counted_by(node.constant(Ints(0)), Dim::of(length), 1));
    x = f.make<GatherOp>({x, indices}, node.attr("axis", int64_t{1}));
  }
  if (node.has(2)) x = f.mul(x, f.reshape(node.in(2), {Dim::of(length), Dim::of(1)}));
  INVAR_CHECK_OK(f.status());
  INVAR_TRY(const Value out, apply_dft(f, x, 2, {length, false, onesided != 0, false}));
  return node.replace(out);
}

}  // namespace

void decompose_dft(RuleRegistry& registry) {
  registry.add_rule("DFT", 17, dft);
  registry.add_rule("STFT", 17, stft, "TITI>T");
}

}  // namespace invar::compiler
