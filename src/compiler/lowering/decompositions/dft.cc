// Fourier transforms as products with tables of cosines and sines (spec/onnx.md onnx.16).
#include <algorithm>

#include "compiler/lowering/builders/builder_dsl.h"
#include "num/dd/dd.h"

namespace invar::compiler {
namespace {

using num::DD;

constexpr int64_t kMostEntries = int64_t{1} << 24;  // of a table

struct Turn {
  float cosine, sine;
};

// Of pi / 2 times r / n with 0 <= 2 r <= n, as series in double-double (relative error below 2^-90), rounded once.
Turn of_octant(int64_t r, int64_t n) {
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
std::vector<Turn> turns(int64_t n) {
  std::vector<Turn> all;
  for (int64_t j = 0; j < n; ++j) {
    const int64_t quarter = 4 * j / n, r = 4 * j % n;
    Turn t = of_octant(std::min(r, n - r), n);
    if (2 * r > n) std::swap(t.cosine, t.sine);
    if (quarter & 1) t = {-t.sine, t.cosine};
    if (quarter & 2) t = {-t.cosine, -t.sine};
    all.push_back(t);
  }
  return all;
}

struct Transform {
  Polynomial length;  // of the transform
  bool inverse, onesided, complex;
};

// [n, outputs] of an open length: the angles of the first octant by the functions of binary32, of a quotient that is rounded once.
Value open_table(Formula& f, const Transform& t, const Polynomial& outputs, bool imaginary) {
  Node& node = f.node();
  const Type whole = node.build().getI64Type();
  const auto line = [&](const Polynomial& count, const Shape& shape) {
    return f.shape(f.make<IotaOp>({node.constant(Sizes(0)), node.constant(Sizes(1))}, {},
                                  tensor_of({Extent::of(count)}, whole)),
                   shape);
  };
  const Value n = node.sizes(t.length, {}), one = node.constant(Sizes(1)), two = node.constant(Sizes(2)),
              four = node.constant(Sizes(4));
  const Value at =
      f.mul(line(t.length, {Extent::of(t.length), Extent::of(1)}), line(outputs, {Extent::of(outputs)}));
  const Value quarters = f.mul(f.make<ModOp>({at, n}), four), r = f.make<ModOp>({quarters, n}),
              quarter = f.div(f.sub(quarters, r), n), left = f.sub(n, r);
  const Value angle = f.mul(f.div(f.real(f.min(r, left)), f.real(n)), f.number(0.5f));
  Value cosine = f.make<CospiOp>(angle), sine = f.make<SinpiOp>(angle);
  const auto turned = [&](Value where, Value c, Value s) {
    const Value next = f.where(where, c, cosine);
    sine = f.where(where, s, sine), cosine = next;
  };
  turned(f.less(left, r), sine, cosine);
  turned(f.make<EqualOp>({f.make<ModOp>({quarter, two}), one}), f.make<NegOp>(sine), cosine);
  turned(f.less(one, quarter), f.make<NegOp>(cosine), f.make<NegOp>(sine));
  if (!t.inverse) sine = f.make<NegOp>(sine);
  const Value first = imaginary ? sine : cosine, second = imaginary ? cosine : f.make<NegOp>(sine);
  if (!t.complex) return first;
  const Value both[] = {first, second};
  return f.join(both, 0);
}

// [inputs, outputs] for one part of the result; rows of real parts come before those of imaginary ones.
Value table(Formula& f, const Transform& t, int64_t inputs, int64_t outputs, bool imaginary) {
  const int64_t length = *t.length.constant();
  const std::vector<Turn> turn = turns(length);
  std::vector<float> entries;
  for (int part = 0; part <= t.complex; ++part)
    for (int64_t i = 0; i < inputs; ++i) {
      // Of a transform of real numbers one side is given; the other is its mirror image.
      const bool mirrored = t.inverse && t.onesided && i != 0 && 2 * i != length;
      for (int64_t k = 0; k < outputs; ++k) {
        const Turn& w = turn[static_cast<size_t>(i * k % length)];
        const float sine = t.inverse ? w.sine : -w.sine;
        const float entry = part == 0 ? (imaginary ? sine : w.cosine) : (imaginary ? w.cosine : -sine);
        entries.push_back(mirrored ? 2 * entry : entry);
      }
    }
  return f.reals(entries, {inputs * (t.complex ? 2 : 1), outputs});
}

// The axis of x [..., n, ..., 1 or 2] is transformed.
Result<Value> transformed(Formula& f, Value x, size_t axis, Transform t) {
  Shape shape = shape_of(x.getType());
  const size_t last = shape.size() - 1;
  if (axis >= last) return bad_input("the axis of the parts is that of the transform");
  if (shape[last] != Extent::of(1) && shape[last] != Extent::of(2))
    return misfit({{shape[last]}}, "the last dimension is " + text_of(shape[last]) + " instead of 1 or 2");
  t.complex = shape[last] == Extent::of(2);
  const std::optional<int64_t> length = t.length.constant();
  const std::optional<Polynomial> half = quotient(t.length, 2), more = half ? sum(*half, 1) : half;
  if (!more) return not_covered("a transform of length " + t.length.text());
  const Polynomial inputs = t.inverse && t.onesided ? *more : t.length;
  const Polynomial outputs = !t.inverse && t.onesided ? *more : t.length;
  if (length.value_or(1) < 1) return bad_input("a transform of " + t.length.text());
  if (length && (*length > kMostEntries || *inputs.constant() * *outputs.constant() > kMostEntries))
    return not_covered("a transform of length " + t.length.text());
  if (!t.inverse && t.onesided && t.complex) return bad_input("one side of a transform of complex numbers");
  if (!length && (shape[axis] != Extent::of(t.length) || (t.inverse && t.onesided)))
    return not_covered("dimension " + text_of(shape[axis]) + " transformed as " + t.length.text());
  if (length && !shape[axis].constant())
    return not_covered("dimension " + text_of(shape[axis]) + " transformed as " + t.length.text());
  if (length && shape[axis].value > *inputs.constant()) x = f.cut(x, axis, 0, *inputs.constant());
  if (length && shape[axis].value < *inputs.constant()) {
    const SmallVector<int64_t> begins(shape.size(), 0);
    shape[axis] = Extent::of(inputs);
    x = f.make<PadOp>(x, f.node().attr("begins", Sizes(begins)), tensor_of(shape, element_of(x)));
  }
  // Parts first, then the axis, last: [..., (parts, inputs)].
  shape[axis] = Extent::of(inputs);
  SmallVector<int64_t> perm, back;
  Shape flat;
  for (size_t d = 0; d < last; ++d)
    if (d != axis) perm.push_back(static_cast<int64_t>(d)), flat.push_back(shape[d]);
  perm.push_back(static_cast<int64_t>(last)), perm.push_back(static_cast<int64_t>(axis));
  const std::optional<Polynomial> rows = product(inputs, t.complex ? 2 : 1);
  if (!rows) return not_covered("a transform of length " + t.length.text());
  flat.push_back(Extent::of(*rows));
  const bool one_row = flat.size() == 1;
  if (one_row) flat.insert(flat.begin(), Extent::of(1));
  x = f.shape(f.perm(x, perm), flat);
  if (Status s = f.status(); !s) return s.error();
  const bool real_only = t.inverse && t.onesided;
  SmallVector<Value> parts;
  for (int part = 0; part <= !real_only; ++part) {
    const Value waves = length ? table(f, t, *inputs.constant(), *outputs.constant(), part == 1)
                               : open_table(f, t, outputs, part == 1);
    if (Status s = f.status(); !s) return s.error();
    Value v = f.of(product(f.node(), x, waves));
    if (t.inverse)
      v = f.div(v, length ? f.number(static_cast<float>(*length)) : f.real(f.node().sizes(t.length, {})));
    Shape result = flat;
    result.back() = Extent::of(outputs);
    if (one_row) result.erase(result.begin());
    result.push_back(Extent::of(1));
    parts.push_back(f.shape(v, result));
  }
  for (size_t d = 0; d < last; ++d)
    back.push_back(static_cast<int64_t>(d == axis ? last - 1 : d < axis ? d : d - 1));
  back.push_back(static_cast<int64_t>(last));
  const Value out = f.perm(f.join(parts, static_cast<int64_t>(last)), back);
  if (Status s = f.status(); !s) return s.error();
  return out;
}

// Since opset 20 the axis is an operand.
Status dft(Node& node) {
  const bool attribute = node.version() < 20;
  if (attribute) {
    INVAR_CHECK_OK(node.expect(1, 2, {"axis", "inverse", "onesided"}));
  } else {
    INVAR_CHECK_OK(node.expect(1, 3, {"inverse", "onesided"}));
  }
  INVAR_TRY(const int64_t inverse, node.i("inverse", 0));
  INVAR_TRY(const int64_t onesided, node.i("onesided", 0));
  const Shape shape = node.shape(0);
  INVAR_TRY(int64_t axis, attribute ? node.i("axis", 1) : number_of(node, 2, -2));
  INVAR_TRY(axis, Node::axis(axis, shape.size()));
  const Extent& n = shape[static_cast<size_t>(axis)];
  std::optional<Polynomial> length = polynomial_of(n);
  if (node.has(1)) {
    INVAR_TRY(const auto given, node.known_sizes(1));
    if (given.size() != 1) return bad_input("operand 1 is not one number");
    if (!given[0]) return node.unknown(1);
    length = given[0];
  } else if (length && inverse && onesided) {
    const std::optional<Polynomial> steps = difference(*length, 1);
    length = steps ? product(*steps, 2) : steps;
  }
  if (!length) return not_covered("dimension " + text_of(n) + " transformed");
  Formula f(node);
  INVAR_TRY(const Value out, transformed(f, node.in(0), static_cast<size_t>(axis),
                                         {*length, inverse != 0, onesided != 0, false}));
  return node.replace(out);
}

// Frames of the signal [B, n, 1 or 2], times the window, transformed.
Status stft(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 4, {"onesided"}));
  INVAR_TRY(const int64_t onesided, node.i("onesided", 1));
  const Shape signal = node.shape(0);
  if (signal.size() != 3) return not_covered("a signal of shape " + text_of(signal));
  INVAR_TRY(const int64_t step, number_of(node, 1, 0));
  int64_t length = signal[1].constant() ? signal[1].value : 0;
  if (node.has(2)) {
    if (node.shape(2).size() != 1 || !node.shape(2)[0].constant())
      return not_covered("a window of shape " + text_of(node.shape(2)));
    length = node.shape(2)[0].value;
  }
  INVAR_TRY(length, number_of(node, 3, length));
  if (node.has(2) && node.shape(2) != Shape{Extent::of(length)})
    return bad_input("a window that is not as long as a frame");
  if (step < 1 || length < 1 || (signal[1].constant() && length > signal[1].value))
    return bad_input("frames of " + std::to_string(length) + " every " + std::to_string(step) + " of " +
                     text_of(signal[1]));
  const std::optional<Polynomial> n = polynomial_of(signal[1]), free = n ? difference(*n, length) : n;
  const std::optional<Polynomial> steps = free ? quotient(*free, step) : free;
  const std::optional<Polynomial> frames = steps ? sum(*steps, 1) : steps;
  if (!frames || frames->constant().value_or(1) > kMostEntries / length)
    return not_covered("frames of more than " + std::to_string(kMostEntries) + " samples");
  Formula f(node);
  Value x = node.in(0);
  if (signal[1].constant()) {
    std::vector<int64_t> places;
    for (int64_t i = 0; i < *frames->constant(); ++i)
      for (int64_t j = 0; j < length; ++j) places.push_back(i * step + j);
    x = f.make<GatherOp>({x, node.constant(places)}, node.attr("axis", int64_t{1}));
    x = f.shape(x, {signal[0], Extent::of(*frames), Extent::of(length), signal[2]});
  } else {
    const Extent rows = Extent::of(*frames), one = Extent::of(1);
    auto counted_by = [&](Value from, const Extent& count, int64_t by) {
      return f.make<IotaOp>({from, node.constant(Sizes(by))}, {},
                            tensor_of({count}, node.build().getI64Type()));
    };
    // One frame must fit.
    INVAR_TRY(const Value room, counted_up_to(node, *free));
    const Value begin = f.make<SubOp>({room, node.sizes(*free, {})});
    const Value places = f.add(f.shape(counted_by(begin, rows, step), {rows, one}),
                               counted_by(node.constant(Sizes(0)), Extent::of(length), 1));
    x = f.make<GatherOp>({x, places}, node.attr("axis", int64_t{1}));
  }
  if (node.has(2)) x = f.mul(x, f.shape(node.in(2), {Extent::of(length), Extent::of(1)}));
  INVAR_CHECK_OK(f.status());
  INVAR_TRY(const Value out, transformed(f, x, 2, {length, false, onesided != 0, false}));
  return node.replace(out);
}

}  // namespace

void decompose_dft(Rooms& rooms) {
  rooms.on("DFT", 17, dft);
  rooms.on("STFT", 17, stft, "TITI>T");
}

}  // namespace invar::compiler
