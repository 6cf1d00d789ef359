// Lowering of the elementwise operators that need more than a row of ops.toml. Those rows, window
// functions and the propagation of dimensions are in import/.
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/room_api.h"
#include "ops/elementwise/import/rules.h"

namespace invar::compiler {
namespace {

// Nodes that become one operation of the same operand.
template <class Op>
Status unary(NodeView& node) {
  return lower_to<Op>(node, 1);
}

// An operation of f32 that has a counterpart for f64.
template <class Op, class Wide>
Status unary_f32_or_f64(NodeView& node) {
  return element_of(node.in(0)).isF64() ? unary<Wide>(node) : unary<Op>(node);
}

// A float attribute: ONNX's name, ours, and its default.
struct FloatAttrMapping {
  const char *onnx, *name;
  float standard;
};
template <class Op>
Status unary_with_attrs(NodeView& node, std::initializer_list<FloatAttrMapping> scalars) {
  SmallVector<NamedAttribute> attrs;
  SmallVector<llvm::StringRef> names;
  for (const FloatAttrMapping& s : scalars) names.push_back(s.onnx);
  INVAR_CHECK_OK(node.expect(1, 1, names));
  for (const FloatAttrMapping& s : scalars) {
    INVAR_TRY(float value, node.float_attr(s.onnx, s.standard));
    attrs.push_back(node.attr(s.name, value));
  }
  INVAR_TRY(Value out, node.make<Op>(node.in(0), attrs));
  return node.replace(out);
}

// Applies a binary operation to all operands, from left to right. Before opset 8 they have one
// shape.
template <class Op>
Result<Value> reduce_left(NodeView& node) {
  unsigned n = 0;
  while (node.has(n)) ++n;
  INVAR_CHECK_OK(node.expect(1, n, {}));
  Value total = node.in(0);
  for (unsigned i = 1; i < n; ++i) {
    if (node.version() < 8 && node.shape(i) != node.shape(0))
      return unequal_shapes(node.shape(0), node.shape(i),
                            "shapes " + text_of(node.shape(0)) + " and " + text_of(node.shape(i)) +
                                " differ; operands broadcast from opset 8 on");
    INVAR_TRY(Value next, node.make<Op>({total, node.in(i)}));
    total = next;
  }
  return total;
}
template <class Op>
Status variadic(NodeView& node) {
  INVAR_TRY(Value total, reduce_left<Op>(node));
  return node.replace(total);
}

// The sum divided by the number of operands.
Status mean(NodeView& node) {
  INVAR_TRY(Value total, reduce_left<AddOp>(node));
  unsigned n = 0;
  while (node.has(n)) ++n;
  if (n > 1) {
    INVAR_TRY(Value out, node.make<DivOp>({total, node.constant(static_cast<float>(n))}));
    total = out;
  }
  return node.replace(total);
}

// The value of operand i if it is a constant of one f32.
std::optional<float> constant_f32(NodeView& node, unsigned i) {
  if (!getElementTypeOrSelf(node.in(i).getType()).isF32()) return std::nullopt;
  std::optional<std::string> bytes = node.constant_bytes(i);
  if (!bytes || bytes->size() != 4) return std::nullopt;
  float value;
  std::memcpy(&value, bytes->data(), 4);
  return value;
}

// A string attribute.
Result<std::string> string_attr(NodeView& node, llvm::StringRef name, const char* fallback) {
  Attribute a = node.attribute(name);
  if (!a) return std::string(fallback);
  if (auto v = dyn_cast<StringAttr>(a)) return v.str();
  return bad_input("attribute \"" + name.str() + "\" is not a string");
}

// The bounds are attributes before opset 11, then operands. A missing one is infinite; from opset 6
// to 10 it is the largest number.
Status clip(NodeView& node) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  if (node.version() < 11) {
    const float most = node.version() < 6 ? kInf : std::numeric_limits<float>::max();
    return unary_with_attrs<ClipOp>(node, {{"min", "min", -most}, {"max", "max", most}});
  }
  INVAR_CHECK_OK(node.expect(1, 3, {}));
  std::optional<float> low = node.has(1) ? constant_f32(node, 1) : -kInf,
                       high = node.has(2) ? constant_f32(node, 2) : kInf;
  bool is_f32 = getElementTypeOrSelf(node.in(0).getType()).isF32();
  if (is_f32 && low && high) {
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

Status gelu(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"approximate"}));
  INVAR_TRY(std::string how, string_attr(node, "approximate", "none"));
  if (how != "none" && how != "tanh")
    return bad_input("attribute \"approximate\" is neither \"none\" nor \"tanh\"");
  INVAR_TRY(Value out, how == "none" ? node.make<GeluOp>(node.in(0)) : node.make<GeluTanhOp>(node.in(0)));
  return node.replace(out);
}

// An activation of x + bias; the bias may be absent if `least` is 1.
template <class Op, unsigned least>
Status with_bias(NodeView& node) {
  INVAR_CHECK_OK(node.expect(least, 2, {}));
  Value x = node.in(0);
  if (node.has(1)) {
    INVAR_TRY(Value sum, node.make<AddOp>({x, node.in(1)}));
    x = sum;
  }
  INVAR_TRY(Value out, node.make<Op>(x));
  return node.replace(out);
}

Status lower_swish(NodeView& node, float standard) {
  INVAR_CHECK_OK(node.expect(1, 1, {"alpha"}));
  INVAR_TRY(float alpha, node.float_attr("alpha", standard));
  if (alpha == 1.0f) {
    INVAR_TRY(Value out, node.make<SiluOp>(node.in(0)));
    return node.replace(out);
  }
  INVAR_TRY(Value out, node.make<SwishOp>(node.in(0), {node.attr("alpha", alpha)}));
  return node.replace(out);
}
// SwiGLU: swish(gate) * x.
Status swish_gate(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"alpha"}));
  INVAR_TRY(float alpha, node.float_attr("alpha", 1.0f));
  if (node.shape(0) != node.shape(1))
    return unequal_shapes(node.shape(0), node.shape(1), "operands of different shapes");
  INVAR_TRY(Value gate, alpha == 1.0f ? node.make<SiluOp>(node.in(0))
                                      : node.make<SwishOp>(node.in(0), {node.attr("alpha", alpha)}));
  INVAR_TRY(Value out, node.make<MulOp>({gate, node.in(1)}));
  return node.replace(out);
}
Status swish(NodeView& node) {
  return lower_swish(node, 1.0f);
}
Status quick_gelu(NodeView& node) {
  return lower_swish(node, 1.702f);
}

Status remainder(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"fmod"}));
  INVAR_TRY(int64_t towards_zero, node.int_attr("fmod", 0));
  INVAR_TRY(Value out, towards_zero ? node.make<FmodOp>({node.in(0), node.in(1)})
                                    : node.make<ModOp>({node.in(0), node.in(1)}));
  return node.replace(out);
}

// elementwise.18: an i64 exponent with the same power modulo 2^64 as a u64 exponent. The powers of
// an odd base have a period that divides 2^62; those of an even base are 0 from exponent 64 on.
Result<Value> reduce_u64_exponent(NodeView& node, Value y) {
  constexpr int64_t kPeriod = int64_t{1} << 62;
  auto number = [&](int64_t v) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(static_cast<uint64_t>(v) >> (8 * i));
    return node.constant(bytes, DType::i64);
  };
  INVAR_TRY(y, cast_to(node, y, node.builder().getI64Type()));
  INVAR_TRY(Value large, node.make<LessOp>({y, number(0)}));
  INVAR_TRY(Value low, node.make<BitwiseAndOp>({y, number(kPeriod - 1)}));
  INVAR_TRY(low, node.make<BitwiseOrOp>({low, number(kPeriod)}));
  return node.make<WhereOp>({large, low, y});
}

// elementwise.18: the result has the type of the base.
Status power(NodeView& node) {
  INVAR_TRY(Value y, second_operand(node));
  Type type = getElementTypeOrSelf(node.in(0).getType()), other = getElementTypeOrSelf(node.in(1).getType());
  bool is_integer = type.isSignlessInteger(32) || type.isSignlessInteger(64);
  bool is_integer_exponent = other.isIntOrIndex() && !other.isInteger(1);
  std::optional<float> exponent = constant_f32(node, 1);
  if (type.isF64() || other.isF64()) return not_covered("powers of f64");
  Value x = node.in(0);
  if (type.isF32() && shape_of(y.getType()).size() <= node.shape(0).size() &&
      (exponent == 2.0f || exponent == -1.0f)) {
    // Both round the same exact value once.
    INVAR_TRY(Value same, exponent == 2.0f ? node.make<MulOp>({x, x}) : node.make<ReciprocalOp>(x));
    return node.replace(same);
  }
  if (is_integer ? type != other : isa<FloatType>(type) && is_integer_exponent) {
    Type common = is_integer && is_integer_exponent ? Type(node.builder().getI64Type())
                                                    : Type(node.builder().getF32Type());
    INVAR_TRY(Value wide_x, is_integer ? cast_to(node, x, common) : Result<Value>(x));
    INVAR_TRY(Value wide_y, is_integer && other.isUnsignedInteger(64) ? reduce_u64_exponent(node, y)
                                                                      : cast_to(node, y, common));
    x = wide_x, y = wide_y;
  }
  INVAR_TRY(Value raised, node.make<PowOp>({x, y}));
  INVAR_CHECK_OK(check_second_operand(node, raised));
  INVAR_TRY(Value result, is_integer ? cast_to(node, raised, type) : Result<Value>(raised));
  return node.replace(result);
}

Status bit_shift(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {"direction"}));
  INVAR_TRY(std::string direction, string_attr(node, "direction", ""));
  if (direction != "LEFT" && direction != "RIGHT")
    return bad_input("attribute \"direction\" is neither \"LEFT\" nor \"RIGHT\"");
  INVAR_TRY(Value out, direction == "LEFT" ? node.make<ShiftLeftOp>({node.in(0), node.in(1)})
                                           : node.make<ShiftRightOp>({node.in(0), node.in(1)}));
  return node.replace(out);
}

template <class Op, bool cosine>
Status sine(NodeView& node) {
  return element_of(node.in(0)).isF64() ? lower_constant_sin_f64(node, cosine) : unary<Op>(node);
}

Status is_inf(NodeView& node) {
  INVAR_CHECK_OK(node.expect(1, 1, {"detect_negative", "detect_positive"}));
  INVAR_TRY(int64_t negative, node.int_attr("detect_negative", 1));
  INVAR_TRY(int64_t positive, node.int_attr("detect_positive", 1));
  // f64 compares with an infinity; to detect none, with NaN, which equals nothing.
  if (element_of(node.in(0)).isF64()) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    const double bound = negative   ? (positive ? kInf : -kInf)
                         : positive ? kInf
                                    : std::numeric_limits<double>::quiet_NaN();
    Value x = node.in(0);
    if (negative && positive) {
      INVAR_TRY(x, node.make<AbsOp>(x));
    }
    INVAR_TRY(Value out, node.make<EqualOp>({x, f64_constant(node, bound)}));
    return node.replace(out);
  }
  INVAR_TRY(Value out, node.make<IsinfOp>(node.in(0), {node.attr("negative", int64_t{negative != 0}),
                                                       node.attr("positive", int64_t{positive != 0})}));
  return node.replace(out);
}

// ReLU of integers is max(x, 0).
Status relu(NodeView& node) {
  if (!element_of(node.in(0)).isIntOrIndex()) return unary<ReluOp>(node);
  INVAR_CHECK_OK(node.expect(1, 1, {}));
  const DType type = *dtype_of(element_of(node.in(0)));
  INVAR_TRY(Value out, node.make<MaxOp>({node.in(0), node.constant(std::string(size_of(type), '\0'), type)}));
  return node.replace(out);
}

// PRelu broadcasts the slope to x, but not x to the slope. Before opset 7 a slope of several
// elements has one for each channel.
Status slopes(NodeView& node) {
  INVAR_CHECK_OK(node.expect(2, 2, {}));
  Value slope = node.in(1);
  Shape shape = node.shape(1);
  if (node.version() < 7 && shape.size() == 1 && shape[0] != Dim::of(1) && node.shape(0).size() > 2) {
    shape.insert(shape.end(), node.shape(0).size() - 2, Dim::of(1));
    INVAR_TRY(slope, reshape(node, slope, shape));
  }
  INVAR_TRY(Value out, node.make<PreluOp>({node.in(0), slope}));
  if (const Shape made = shape_of(out.getType()); made != node.shape(0))
    return unequal_shapes(made, node.shape(0), "the slope does not broadcast to operand 0");
  return node.replace(out);
}

// Fuses x * sigmoid(x) to SiLU and x * sigmoid(alpha * x) to Swish, in either operand order. The
// unfused graph rounds alpha * x to its canonical form and the fused operation does not
// (elementwise.10); only subnormal products differ, and exp of those is 1, as of zero.
struct FuseGate : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MulOp product, PatternRewriter& rewriter) const override {
    for (int side : {0, 1}) {
      auto gate = product->getOperand(side).getDefiningOp<SigmoidOp>();
      if (!gate || !gate->hasOneUse()) continue;
      Value x = product->getOperand(1 - side);
      const ScalarOp scaled = match_scalar_op<MulOp>(gate.getX());
      Operation* fused = nullptr;
      if (gate.getX() == x)
        fused = make_op(rewriter, product.getLoc(), SiluOp::getOperationName(), x, {}, product.getType());
      else if (scaled && scaled.x == x && std::isfinite(scaled.scalar))
        fused = make_op(rewriter, product.getLoc(), SwishOp::getOperationName(), x,
                        rewriter.getNamedAttr("alpha", rewriter.getF32FloatAttr(scaled.scalar)),
                        product.getType());
      if (!fused) continue;
      rewriter.replaceOp(product, fused);
      return success();
    }
    return failure();
  }
};

}  // namespace

void import_elementwise(RuleRegistry& registry) {
  import_table(registry);
  import_dim_propagation(registry);
  import_window_functions(registry);
  registry.add_rule("Exp", 1, unary_f32_or_f64<ExpOp, ExpF64Op>);
  registry.add_rule("Log", 1, unary_f32_or_f64<LogOp, LogF64Op>);
  registry.add_rule("Sin", 7, sine<SinOp, false>);
  registry.add_rule("Cos", 7, sine<CosOp, true>);
  registry.add_rule("Relu", 1, relu, Widening::integers);
  registry.add_rule("Elu", 1, [](NodeView& n) {
    return unary_with_attrs<EluOp>(n, {{"alpha", "alpha", 1.0f}});
  });
  registry.add_rule("Selu", 1, [](NodeView& n) {
    const bool rounds = n.version() < 6;  // the older defaults have four digits
    return unary_with_attrs<SeluOp>(n, {{"alpha", "alpha", rounds ? 1.6732f : 0x1.ac5afap+0f},
                                        {"gamma", "gamma", rounds ? 1.0507f : 0x1.0cfabep+0f}});
  });
  registry.add_rule("Celu", 12, [](NodeView& n) {
    return unary_with_attrs<CeluOp>(n, {{"alpha", "alpha", 1.0f}});
  });
  registry.add_rule("LeakyRelu", 1, [](NodeView& n) {
    return unary_with_attrs<LeakyreluOp>(n, {{"alpha", "alpha", 0.01f}});
  });
  registry.add_rule("ThresholdedRelu", 10, [](NodeView& n) {
    return unary_with_attrs<ThresholdedreluOp>(n, {{"alpha", "alpha", 1.0f}});
  });
  registry.add_rule("Shrink", 9, [](NodeView& n) {
    return unary_with_attrs<ShrinkOp>(n, {{"lambd", "lambd", 0.5f}, {"bias", "bias", 0.0f}});
  });
  registry.add_rule("HardSigmoid", 1, [](NodeView& n) {
    return unary_with_attrs<HardsigmoidOp>(n, {{"alpha", "alpha", 0.2f}, {"beta", "beta", 0.5f}});
  });
  registry.add_rule("Gelu", 20, gelu);
  registry.add_rule("Swish", 24, swish);
  registry.add_rule("SwiGLU", 28, swish_gate);
  registry.add_rule("com.microsoft.QuickGelu", 1, quick_gelu);
  registry.add_rule("com.microsoft.Gelu", 1, unary<GeluOp>);
  registry.add_rule("com.microsoft.BiasGelu", 1, with_bias<GeluOp, 2>);
  registry.add_rule("com.microsoft.FastGelu", 1, with_bias<GeluTanhOp, 1>);
  registry.add_rule("Clip", 1, clip, Widening::integers);
  registry.add_rule("IsInf", 10, is_inf);
  registry.add_rule("Mod", 10, remainder, Widening::integers);
  registry.add_rule("Pow", 1, power, "TE>T@12");
  registry.add_rule("BitShift", 11, bit_shift, Widening::integers);
  registry.add_rule("Max", 1, variadic<MaxOp>, Widening::integers);
  registry.add_rule("Min", 1, variadic<MinOp>, Widening::integers);
  registry.add_rule("Sum", 1, variadic<AddOp>, Widening::integers);
  registry.add_rule("Mean", 1, mean);
  registry.add_rule("PRelu", 1, slopes);
  registry.add_pattern<FuseGate>();
}

}  // namespace invar::compiler
