#include <cstring>

#include "compiler/lowering/builders/constant_angles.h"
#include "compiler/passes/idiom_recognition.h"

namespace invar::compiler {
namespace {

// The node's only operand, with nothing else to look at.
template <class Op>
Status unary(Node& node) {
  return direct<Op>(node, 1);
}
template <class Op>
Status binary(Node& node) {
  return direct<Op>(node, 2);
}

// A function of f32 or of f64.
template <class Op, class Wide>
Status of_width(Node& node) {
  return element_of(node.in(0)).isF64() ? direct<Wide>(node, 1) : direct<Op>(node, 1);
}

// One operand and f32 attributes, ONNX's names and defaults beside ours.
struct Scalar {
  const char *onnx, *name;
  float standard;
};
template <class Op>
Status scaled(Node& node, std::initializer_list<Scalar> scalars) {
  SmallVector<NamedAttribute> attrs;
  std::initializer_list<llvm::StringRef> none;
  INVAR_CHECK_OK(scalars.size() == 0 ? node.expect(1, 1, none)
                 : scalars.size() == 1
                     ? node.expect(1, 1, {scalars.begin()[0].onnx})
                     : node.expect(1, 1, {scalars.begin()[0].onnx, scalars.begin()[1].onnx}));
  for (const Scalar& s : scalars) {
    INVAR_TRY(float value, node.f(s.onnx, s.standard));
    attrs.push_back(node.attr(s.name, value));
  }
  INVAR_TRY(Value out, node.make<Op>(node.in(0), attrs));
  return node.replace(out);
}

// x1, x2, ...: folded from the left.
template <class Op>
Result<Value> chain(Node& node) {
  unsigned n = 0;
  while (node.has(n)) ++n;
  INVAR_CHECK_OK(node.expect(1, n, {}));
  Value total = node.in(0);
  for (unsigned i = 1; i < n; ++i) {
    INVAR_TRY(Value next, node.make<Op>({total, node.in(i)}));
    total = next;
  }
  return total;
}
template <class Op>
Status n_ary(Node& node) {
  INVAR_TRY(Value total, chain<Op>(node));
  return node.replace(total);
}

// The sum, divided by how many there are.
Status mean(Node& node) {
  INVAR_TRY(Value total, chain<AddOp>(node));
  float n = 0;
  while (node.has(static_cast<unsigned>(n))) n = n + 1;
  if (n > 1) {
    INVAR_TRY(Value out, node.make<DivOp>({total, node.constant(n)}));
    total = out;
  }
  return node.replace(total);
}

// The only f32 of operand i where it is a constant in the model file.
std::optional<float> known(Node& node, unsigned i) {
  if (!getElementTypeOrSelf(node.in(i).getType()).isF32()) return std::nullopt;
  std::optional<std::string> bytes = node.bytes(i);
  if (!bytes || bytes->size() != 4) return std::nullopt;
  float value;
  std::memcpy(&value, bytes->data(), 4);
  return value;
}

// A string attribute.
Result<std::string> text(Node& node, llvm::StringRef name, const char* fallback) {
  Attribute a = node.attribute(name);
  if (!a) return std::string(fallback);
  if (auto v = dyn_cast<StringAttr>(a)) return v.str();
  return bad_input("attribute \"" + name.str() + "\" is not a string");
}

// Bounds are attributes up to opset 10, then operands; a missing one bounds nothing.
Status clip(Node& node) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  if (node.version() < 11) return scaled<ClipOp>(node, {{"min", "min", -kInf}, {"max", "max", kInf}});
  INVAR_CHECK_OK(node.expect(1, 3, {}));
  std::optional<float> low = node.has(1) ? known(node, 1) : -kInf, high = node.has(2) ? known(node, 2) : kInf;
  bool real = getElementTypeOrSelf(node.in(0).getType()).isF32();
  if (real && low && high) {
    INVAR_TRY(Value out, node.make<ClipOp>(node.in(0), {node.attr("min", *low), node.attr("max", *high)}));
    return node.replace(out);
  }
  Value out = node.in(0);
  if (node.has(1)) {
    INVAR_TRY(Value above, node.make<MaxOp>({out, node.in(1)}));
    out = above;
  }
  if (node.has(2)) {
    INVAR_TRY(Value below, node.make<MinOp>({out, node.in(2)}));
    out = below;
  }
  return node.replace(out);
}

Status gelu(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"approximate"}));
  INVAR_TRY(std::string how, text(node, "approximate", "none"));
  if (how != "none" && how != "tanh")
    return bad_input("attribute \"approximate\" is neither \"none\" nor \"tanh\"");
  INVAR_TRY(Value out, how == "none" ? node.make<GeluOp>(node.in(0)) : node.make<GeluTanhOp>(node.in(0)));
  return node.replace(out);
}

// Of the sum of x and a bias, which may be absent where `least` is 1.
template <class Op, unsigned least>
Status biased(Node& node) {
  INVAR_CHECK_OK(node.expect(least, 2, {}));
  Value x = node.in(0);
  if (node.has(1)) {
    INVAR_TRY(Value sum, node.make<AddOp>({x, node.in(1)}));
    x = sum;
  }
  INVAR_TRY(Value out, node.make<Op>(x));
  return node.replace(out);
}

Status swish_of(Node& node, float standard) {
  INVAR_CHECK_OK(node.expect(1, 1, {"alpha"}));
  INVAR_TRY(float alpha, node.f("alpha", standard));
  if (alpha == 1.0f) {
    INVAR_TRY(Value out, node.make<SiluOp>(node.in(0)));
    return node.replace(out);
  }
  INVAR_TRY(Value out, node.make<SwishOp>(node.in(0), {node.attr("alpha", alpha)}));
  return node.replace(out);
}
// The gate's swish times the other operand.
Status swish_gate(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"alpha"}));
  INVAR_TRY(float alpha, node.f("alpha", 1.0f));
  if (node.shape(0) != node.shape(1))
    return unequal(node.shape(0), node.shape(1), "operands of different shapes");
  INVAR_TRY(Value gate, alpha == 1.0f ? node.make<SiluOp>(node.in(0))
                                      : node.make<SwishOp>(node.in(0), {node.attr("alpha", alpha)}));
  INVAR_TRY(Value out, node.make<MulOp>({gate, node.in(1)}));
  return node.replace(out);
}
Status swish(Node& node) {
  return swish_of(node, 1.0f);
}
Status quick_gelu(Node& node) {
  return swish_of(node, 1.702f);
}

Status remainder(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"fmod"}));
  INVAR_TRY(int64_t towards_zero, node.i("fmod", 0));
  INVAR_TRY(Value out, towards_zero ? node.make<FmodOp>({node.in(0), node.in(1)})
                                    : node.make<ModOp>({node.in(0), node.in(1)}));
  return node.replace(out);
}

Result<Value> cast_to(Node& node, Value v, Type element) {
  if (getElementTypeOrSelf(v.getType()) == element) return v;
  return node.make<CastOp>(v, {}, tensor_of(shape_of(v.getType()), element));
}

// elementwise.18: an exponent of u64 as one of i64 with the same power modulo 2^64: of odd bases the powers have a period that
// divides 2^62, of even ones they are 0 from 2^6 on.
Result<Value> exponent_of(Node& node, Value y) {
  constexpr int64_t kPeriod = int64_t{1} << 62;
  auto number = [&](int64_t v) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(static_cast<uint64_t>(v) >> (8 * i));
    return node.constant(bytes, DType::i64);
  };
  INVAR_TRY(y, cast_to(node, y, node.build().getI64Type()));
  INVAR_TRY(Value large, node.make<LessOp>({y, number(0)}));
  INVAR_TRY(Value low, node.make<BitwiseAndOp>({y, number(kPeriod - 1)}));
  INVAR_TRY(low, node.make<BitwiseOrOp>({low, number(kPeriod)}));
  return node.make<WhereOp>({large, low, y});
}

// elementwise.18: the result has the type of the base.
Status power(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {}));
  Type type = getElementTypeOrSelf(node.in(0).getType()), other = getElementTypeOrSelf(node.in(1).getType());
  bool whole = type.isSignlessInteger(32) || type.isSignlessInteger(64);
  bool whole_exponent = other.isIntOrIndex() && !other.isInteger(1);
  std::optional<float> exponent = known(node, 1);
  if (type.isF64() || other.isF64()) return not_covered("powers of f64");
  Value x = node.in(0), y = node.in(1), out;
  if (type.isF32() && node.shape(1).size() <= node.shape(0).size() &&
      (exponent == 2.0f || exponent == -1.0f)) {
    // One rounding of the same number.
    INVAR_TRY(Value same, exponent == 2.0f ? node.make<MulOp>({x, x}) : node.make<ReciprocalOp>(x));
    return node.replace(same);
  }
  if (whole ? type != other : isa<FloatType>(type) && whole_exponent) {
    Type common = whole && whole_exponent ? Type(node.build().getI64Type()) : Type(node.build().getF32Type());
    INVAR_TRY(Value wide_x, whole ? cast_to(node, x, common) : Result<Value>(x));
    INVAR_TRY(Value wide_y,
              whole && other.isUnsignedInteger(64) ? exponent_of(node, y) : cast_to(node, y, common));
    x = wide_x, y = wide_y;
  }
  INVAR_TRY(Value raised, node.make<PowOp>({x, y}));
  INVAR_TRY(Value result, whole ? cast_to(node, raised, type) : Result<Value>(raised));
  return node.replace(result);
}

Status bit_shift(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"direction"}));
  INVAR_TRY(std::string direction, text(node, "direction", ""));
  if (direction != "LEFT" && direction != "RIGHT")
    return bad_input("attribute \"direction\" is neither \"LEFT\" nor \"RIGHT\"");
  INVAR_TRY(Value out, direction == "LEFT" ? node.make<ShiftLeftOp>({node.in(0), node.in(1)})
                                           : node.make<ShiftRightOp>({node.in(0), node.in(1)}));
  return node.replace(out);
}

template <class Op, bool cosine>
Status sine(Node& node) {
  return element_of(node.in(0)).isF64() ? wide_sine(node, cosine) : unary<Op>(node);
}

Status is_inf(Node& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"detect_negative", "detect_positive"}));
  INVAR_TRY(int64_t negative, node.i("detect_negative", 1));
  INVAR_TRY(int64_t positive, node.i("detect_positive", 1));
  if (element_of(node.in(0)).isF64()) {  // what is equal to an infinity: nothing to NaN, where none counts
    const bool none = !negative && !positive, below = negative && !positive;
    const std::string bound = std::string(6, '\0') + (none ? "\xf8" : "\xf0") + (below ? "\xff" : "\x7f");
    Value x = node.in(0);
    if (negative && positive) {
      INVAR_TRY(x, node.make<AbsOp>(x));
    }
    INVAR_TRY(Value out, node.make<EqualOp>({x, node.constant(bound, DType::f64)}));
    return node.replace(out);
  }
  INVAR_TRY(Value out, node.make<IsinfOp>(node.in(0), {node.attr("negative", int64_t{negative != 0}),
                                                       node.attr("positive", int64_t{positive != 0})}));
  return node.replace(out);
}

// Integers: the larger of x and 0.
Status relu(Node& node) {
  if (!element_of(node.in(0)).isIntOrIndex()) return unary<ReluOp>(node);
  INVAR_CHECK_OK(node.expect(1, 1, {}));
  const DType type = *dtype_of(element_of(node.in(0)));
  INVAR_TRY(Value out, node.make<MaxOp>({node.in(0), node.constant(std::string(size_of(type), '\0'), type)}));
  return node.replace(out);
}

Status where(Node& node) {
  return direct<WhereOp>(node, 3);
}

// a - b cos(2 pi i / n) + c cos(4 pi i / n), in this order, for i below a size.
Status cosine_window(Node& node, float a, float b, float c) {
  INVAR_CHECK_OK(node.expect(1, 1, {"output_datatype", "periodic"}));
  INVAR_TRY(const int64_t periodic, node.i("periodic", 1));
  INVAR_TRY(const int64_t code, node.i("output_datatype", 1));
  Type element = onnx_type(node.context(), static_cast<int32_t>(code));
  if (!element || !(element.isF32() || element.isF16() || element.isBF16()))
    return not_covered("covered are windows of f32, f16 and bf16");
  INVAR_TRY(const std::vector<Polynomial> size, node.sizes(0));
  const int64_t most = int64_t{1} << 24;  // as floats, all are exact
  const int64_t known = size.size() == 1 ? size[0].constant().value_or(2) : -1;
  if (known < 0) return bad_input("a window of no size");
  if (known > most) return not_covered("a window of more than 2^24 places");
  if ((periodic ? known : known - 1) < 1) return not_covered("a window of less than two places");
  const std::optional<Polynomial> n = sum(size[0], periodic ? 0 : -1);
  if (!n) return not_covered("a window of " + size[0].text());
  Value turn = n->constant() ? node.constant(static_cast<float>(*n->constant())) : node.sizes(*n, {});
  INVAR_TRY(turn, cast_to(node, turn, node.build().getF32Type()));
  INVAR_TRY(Value at, node.make<IotaOp>({node.constant(0.0f), node.constant(1.0f)}, {},
                                        tensor_of({Extent::of(size[0])}, node.build().getF32Type())));
  auto wave = [&](float turns, float factor) -> Result<Value> {
    INVAR_TRY(Value angle, node.make<MulOp>({at, node.constant(turns)}));
    INVAR_TRY(angle, node.make<DivOp>({angle, turn}));
    INVAR_TRY(Value cosine, node.make<CospiOp>(angle));
    return node.make<MulOp>({cosine, node.constant(factor)});
  };
  INVAR_TRY(Value first, wave(2, b));
  INVAR_TRY(Value out, node.make<SubOp>({node.constant(a), first}));
  if (c != 0) {
    INVAR_TRY(Value second, wave(4, c));
    INVAR_TRY(out, node.make<AddOp>({out, second}));
  }
  INVAR_TRY(out, cast_to(node, out, element));
  return node.replace(out);
}

// The slope may be broadcast to x, not x to the slope.
Status slopes(Node& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {}));
  INVAR_TRY(Value out, node.make<PreluOp>({node.in(0), node.in(1)}));
  if (const Shape made = shape_of(out.getType()); made != node.shape(0))
    return unequal(made, node.shape(0), "the slope does not broadcast to operand 0");
  return node.replace(out);
}

// ---- dimensions

using SizeList = llvm::ArrayRef<Polynomial>;
// 1 where `shown` is never negative, 0 where its opposite is always below it: what is not below is above or equal.
std::optional<Polynomial> decided(const std::optional<Polynomial>& shown,
                                  const std::optional<Polynomial>& opposite) {
  if (shown && shown->never_negative()) return 1;
  if (opposite && opposite->never_negative()) return 0;
  return std::nullopt;
}
std::optional<Polynomial> beyond(const Polynomial& a, const Polynomial& b, int64_t by) {  // a - b - by
  const std::optional<Polynomial> gap = difference(a, b);
  return gap ? difference(*gap, by) : gap;
}
std::optional<Polynomial> size_less(SizeList x) {
  return decided(beyond(x[1], x[0], 1), beyond(x[0], x[1], 0));
}
std::optional<Polynomial> size_less_equal(SizeList x) {
  return decided(beyond(x[1], x[0], 0), beyond(x[0], x[1], 1));
}
std::optional<Polynomial> size_equal(SizeList x) {
  if (x[0] == x[1]) return 1;
  const std::optional<Polynomial> above = beyond(x[0], x[1], 1), below = beyond(x[1], x[0], 1);
  if ((above && above->never_negative()) || (below && below->never_negative())) return 0;
  return std::nullopt;
}
// Division of integers cuts towards zero and the remainder has the divisor's sign, so what they are of must not be negative.
std::optional<Polynomial> size_quotient(SizeList x) {
  if (std::optional<Polynomial> exact = exact_quotient(x[0], x[1]); exact && x[1].constant()) return exact;
  const int64_t by = x[1].constant().value_or(0);
  return by > 0 && x[0].never_negative() ? quotient(x[0], by) : std::nullopt;
}
std::optional<Polynomial> size_remainder(SizeList x) {
  const int64_t by = x[1].constant().value_or(0);
  const std::optional<Polynomial> whole = by > 0 ? quotient(x[0], by) : std::nullopt;
  const std::optional<Polynomial> gone = whole ? product(*whole, by) : whole;
  return gone ? difference(x[0], *gone) : gone;
}

// x * sigmoid(x) and x * sigmoid(alpha * x), in either order: products commute. alpha * x is stored in the composition and not in the
// operation (elementwise.10), which only subnormal products could show: of those, as of zeros, exp is 1.
struct FuseGate : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MulOp product, PatternRewriter& rewriter) const override {
    for (int side : {0, 1}) {
      auto gate = product->getOperand(side).getDefiningOp<SigmoidOp>();
      if (!gate || !gate->hasOneUse()) continue;
      Value x = product->getOperand(1 - side);
      const WithNumber scaled = with_number<MulOp>(gate.getX());
      Operation* fused = nullptr;
      if (gate.getX() == x)
        fused = make_op(rewriter, product.getLoc(), SiluOp::getOperationName(), x, {}, product.getType());
      else if (scaled && scaled.x == x && std::isfinite(scaled.by))
        fused =
            make_op(rewriter, product.getLoc(), SwishOp::getOperationName(), x,
                    rewriter.getNamedAttr("alpha", rewriter.getF32FloatAttr(scaled.by)), product.getType());
      if (!fused) continue;
      rewriter.replaceOp(product, fused);
      return success();
    }
    return failure();
  }
};

}  // namespace

void import_elementwise(Rooms& rooms) {
  rooms.sizes<AddOp>([](SizeList x) { return sum(x[0], x[1]); });
  rooms.sizes<SubOp>([](SizeList x) { return difference(x[0], x[1]); });
  rooms.sizes<NegOp>([](SizeList x) { return product(x[0], -1); });
  rooms.sizes<AbsOp>([](SizeList x) { return x[0].never_negative() ? std::optional(x[0]) : std::nullopt; });
  rooms.sizes<MulOp>([](SizeList x) { return product(x[0], x[1]); });
  rooms.sizes<DivOp>(size_quotient);
  rooms.sizes<ModOp>(size_remainder);
  rooms.sizes<MaxOp>([](SizeList x) { return most(x[0], x[1]); });
  rooms.sizes<MinOp>([](SizeList x) { return least(x[0], x[1]); });
  rooms.sizes<EqualOp>(size_equal);
  rooms.sizes<LessOp>(size_less);
  rooms.sizes<LessEqualOp>(size_less_equal);
  rooms.sizes<GreaterOp>([](SizeList x) { return size_less({x[1], x[0]}); });
  rooms.sizes<GreaterEqualOp>([](SizeList x) { return size_less_equal({x[1], x[0]}); });
  rooms.carries<WhereOp>();
  rooms.on("Abs", 6, unary<AbsOp>, Widens::integers);
  rooms.on("Neg", 6, unary<NegOp>, Widens::integers);
  rooms.on("Sign", 9, unary<SignOp>, Widens::integers);
  rooms.on("Floor", 6, unary<FloorOp>);
  rooms.on("Ceil", 6, unary<CeilOp>);
  rooms.on("Round", 11, unary<RoundOp>);
  rooms.on("Sqrt", 6, unary<SqrtOp>);
  rooms.on("Reciprocal", 6, unary<ReciprocalOp>);
  rooms.on("Exp", 6, of_width<ExpOp, ExpF64Op>);
  rooms.on("Log", 6, of_width<LogOp, LogF64Op>);
  rooms.on("Softplus", 1, unary<SoftplusOp>);
  rooms.on("Sin", 7, sine<SinOp, false>);
  rooms.on("Cos", 7, sine<CosOp, true>);
  rooms.on("Tan", 7, unary<TanOp>);
  rooms.on("Asin", 7, unary<AsinOp>);
  rooms.on("Acos", 7, unary<AcosOp>);
  rooms.on("Atan", 7, unary<AtanOp>);
  rooms.on("Sinh", 9, unary<SinhOp>);
  rooms.on("Cosh", 9, unary<CoshOp>);
  rooms.on("Tanh", 6, unary<TanhOp>);
  rooms.on("Asinh", 9, unary<AsinhOp>);
  rooms.on("Acosh", 9, unary<AcoshOp>);
  rooms.on("Atanh", 9, unary<AtanhOp>);
  rooms.on("Erf", 9, unary<ErfOp>);
  rooms.on("Relu", 6, relu, Widens::integers);
  rooms.on("Sigmoid", 6, unary<SigmoidOp>);
  rooms.on("HardSwish", 14, unary<HardswishOp>);
  rooms.on("Softsign", 1, unary<SoftsignOp>);
  rooms.on("Mish", 18, unary<MishOp>);
  rooms.on("Elu", 6, [](Node& n) { return scaled<EluOp>(n, {{"alpha", "alpha", 1.0f}}); });
  rooms.on("Selu", 6, [](Node& n) {
    return scaled<SeluOp>(n, {{"alpha", "alpha", 0x1.ac5afap+0f}, {"gamma", "gamma", 0x1.0cfabep+0f}});
  });
  rooms.on("Celu", 12, [](Node& n) { return scaled<CeluOp>(n, {{"alpha", "alpha", 1.0f}}); });
  rooms.on("LeakyRelu", 6, [](Node& n) { return scaled<LeakyreluOp>(n, {{"alpha", "alpha", 0.01f}}); });
  rooms.on("ThresholdedRelu", 10, [](Node& n) {
    return scaled<ThresholdedreluOp>(n, {{"alpha", "alpha", 1.0f}});
  });
  rooms.on("Shrink", 9, [](Node& n) {
    return scaled<ShrinkOp>(n, {{"lambd", "lambd", 0.5f}, {"bias", "bias", 0.0f}});
  });
  rooms.on("HardSigmoid", 6, [](Node& n) {
    return scaled<HardsigmoidOp>(n, {{"alpha", "alpha", 0.2f}, {"beta", "beta", 0.5f}});
  });
  rooms.on("Gelu", 20, gelu);
  rooms.on("Swish", 24, swish);
  rooms.on("SwiGLU", 28, swish_gate);
  rooms.on("com.microsoft.QuickGelu", 1, quick_gelu);
  rooms.on("com.microsoft.Gelu", 1, unary<GeluOp>);
  rooms.on("com.microsoft.BiasGelu", 1, biased<GeluOp, 2>);
  rooms.on("com.microsoft.FastGelu", 1, biased<GeluTanhOp, 1>);
  rooms.on("Clip", 6, clip, Widens::integers);
  rooms.on("IsNaN", 9, unary<IsnanOp>);
  rooms.on("IsInf", 10, is_inf);
  rooms.on("Not", 1, unary<LogicalNotOp>);
  rooms.on("Add", 7, binary<AddOp>, Widens::integers);
  rooms.on("Sub", 7, binary<SubOp>, Widens::integers);
  rooms.on("Mul", 7, binary<MulOp>, Widens::integers);
  rooms.on("Div", 7, binary<DivOp>, Widens::integers);
  rooms.on("Mod", 10, remainder, Widens::integers);
  rooms.on("Pow", 7, power, "TE>T@12");
  rooms.on("BitwiseAnd", 18, binary<BitwiseAndOp>, Widens::integers);
  rooms.on("BitwiseOr", 18, binary<BitwiseOrOp>, Widens::integers);
  rooms.on("BitwiseXor", 18, binary<BitwiseXorOp>, Widens::integers);
  rooms.on("BitwiseNot", 18, unary<BitwiseNotOp>, Widens::integers);
  rooms.on("BitShift", 11, bit_shift, Widens::integers);
  rooms.on("Max", 8, n_ary<MaxOp>, Widens::integers);
  rooms.on("Min", 8, n_ary<MinOp>, Widens::integers);
  rooms.on("Sum", 8, n_ary<AddOp>, Widens::integers);
  rooms.on("Mean", 8, mean);
  rooms.on("HannWindow", 17, [](Node& n) { return cosine_window(n, 0.5f, 0.5f, 0); });
  rooms.on("HammingWindow", 17, [](Node& n) { return cosine_window(n, 25.0f / 46, 21.0f / 46, 0); });
  rooms.on("BlackmanWindow", 17, [](Node& n) { return cosine_window(n, 0.42f, 0.5f, 0.08f); });
  rooms.on("PRelu", 7, slopes);
  rooms.on("Equal", 7, binary<EqualOp>, Widens::integers);
  rooms.on("Less", 7, binary<LessOp>, Widens::integers);
  rooms.on("LessOrEqual", 12, binary<LessEqualOp>, Widens::integers);
  rooms.on("Greater", 7, binary<GreaterOp>, Widens::integers);
  rooms.on("GreaterOrEqual", 12, binary<GreaterEqualOp>, Widens::integers);
  rooms.on("And", 7, binary<LogicalAndOp>);
  rooms.on("Or", 7, binary<LogicalOrOp>);
  rooms.on("Xor", 7, binary<LogicalXorOp>);
  rooms.on("Where", 9, where);
  rooms.fold<FuseGate>();
}

}  // namespace invar::compiler
