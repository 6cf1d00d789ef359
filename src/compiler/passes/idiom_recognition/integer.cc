// Products and convolutions of dequantized integers (choices.13): the sum of the integers, which is
// exact, dequantized by the product of the scales.
#include "compiler/passes/canonicalize/patterns.h"
#include "compiler/passes/idiom_recognition.h"

namespace invar::compiler {
namespace {

bool has_one_element(Value v) {
  const Shape shape = shape_of(v.getType());
  return shape.empty() || (shape.size() == 1 && shape[0] == Dim::of(1));
}
bool is_integer_of(Value v, unsigned bits) {
  const Type e = element_of(v);
  return e.isIntOrIndex() && e.getIntOrFloatBitWidth() == bits;
}

// A factor q with one scale and zero point, or one for each index of `axis`.
DequantizeLinearOp match_factor(Value v, std::optional<int64_t> axis) {
  auto q = v.getDefiningOp<DequantizeLinearOp>();
  if (!q || !is_integer_of(q.getX(), 8) || q.getBlock() != 0) return {};
  if (has_one_element(q.getScale())) return q;
  const auto rank = static_cast<int64_t>(shape_of(v.getType()).size());
  const auto along = static_cast<int64_t>(q.getAxis());
  return axis && (along < 0 ? along + rank : along) == *axis ? q : DequantizeLinearOp();
}

std::vector<float> floats_of(Value v) {
  const std::optional<std::string> bytes = constant_bytes(v);
  std::vector<float> out(bytes ? bytes->size() / sizeof(float) : 0);
  for (size_t i = 0; i < out.size(); ++i) {
    uint32_t bits = 0;
    for (size_t b = sizeof(float); b-- > 0;) bits = bits << 8 | static_cast<uint8_t>((*bytes)[4 * i + b]);
    out[i] = std::bit_cast<float>(bits);
  }
  return out;
}
// Whether the scales of a bias are the products, bit for bit and normal, of those of the factors.
bool is_scale_product(Value bias, Value x, Value w) {
  const std::vector<float> all = floats_of(bias), a = floats_of(x), b = floats_of(w);
  if (a.size() != 1 || b.empty() || all.size() != b.size()) return false;
  for (size_t i = 0; i < b.size(); ++i) {
    const float each = a[0] * b[i];
    if (!std::isnormal(each) || std::bit_cast<uint32_t>(each) != std::bit_cast<uint32_t>(all[i]))
      return false;
  }
  return true;
}

// Makes operations in the place of one.
struct Replacement {
  Operation* root;
  OpBuilder build;
  explicit Replacement(Operation* op) : root(op), build(op) {}

  NamedAttribute attr(llvm::StringRef name, int64_t v) {
    return build.getNamedAttr(name, build.getI64IntegerAttr(v));
  }
  template <class Op>
  Value make(ValueRange in, llvm::ArrayRef<NamedAttribute> attrs = {}, Type type = {}) {
    Result<Operation*> made = make_checked(build, root->getLoc(), Op::getOperationName(), in, attrs, type);
    return made ? (*made)->getResult(0) : Value();
  }
  Value zeros(Type element, llvm::ArrayRef<int64_t> shape) {
    size_t bytes = element.getIntOrFloatBitWidth() / 8;
    for (const int64_t n : shape) bytes *= static_cast<size_t>(n);
    return make_constant(build, root->getLoc(), std::string(bytes, '\0'), *dtype_of(element), shape);
  }
  // Operands, then their zero points, where there are any.
  SmallVector<Value> with_zeros(SmallVector<Value> in, DequantizeLinearOp x, DequantizeLinearOp w) {
    if (x.getZeros() || w.getZeros())
      in.push_back(x.getZeros() ? x.getZeros() : zeros(element_of(x.getX()), {}));
    if (w.getZeros()) in.push_back(w.getZeros());
    return in;
  }
  Value dequantized(Value sum, DequantizeLinearOp x, DequantizeLinearOp w, int64_t axis) {
    const Value scale = sum ? make<MulOp>({x.getScale(), w.getScale()}) : Value();
    if (!scale) return {};
    return make<DequantizeLinearOp>({sum, scale}, {attr("axis", axis), attr("block", int64_t{0})},
                                    tensor_of(shape_of(sum.getType()), build.getF32Type()));
  }
  bool done(Value out, Value sum, DerivedValueCache& context) {
    if (!out || out.getType() != root->getResult(0).getType()) return false;
    root->getResult(0).replaceAllUsesWith(out);
    context.made.push_back(sum.getDefiningOp());
    quantize_at_once(out);
    return true;
  }
  // The quantization of the result follows it, so that a kernel can do both. Files often have the
  // nodes of several branches in turn.
  void quantize_at_once(Value out) {
    auto next = out.hasOneUse() ? dyn_cast<QuantizeLinearOp>(*out.user_begin()) : QuantizeLinearOp();
    const auto is_there = [&](Value v) {
      Operation* const made = v.getDefiningOp();
      return !made || (made->getBlock() == root->getBlock() && made->isBeforeInBlock(root));
    };
    if (next && next.getX() == out && next->getBlock() == root->getBlock() && is_there(next.getScale()) &&
        (!next.getZeros() || is_there(next.getZeros())))
      next->moveAfter(out.getDefiningOp());
  }
};

bool replace_conv(ConvOp conv, DerivedValueCache& context) {
  DequantizeLinearOp x = match_factor(conv.getX(), {}), w = match_factor(conv.getWeight(), 0);
  if (!x || !w) return false;
  Replacement r(conv);
  const Shape shape = shape_of(conv.getWeight().getType());
  Value bias = conv.getBias();
  auto integers = bias ? bias.getDefiningOp<DequantizeLinearOp>() : DequantizeLinearOp();
  const bool in_sum = integers && is_integer_of(integers.getX(), 32) && integers.getBlock() == 0 &&
                      is_scale_product(integers.getScale(), x.getScale(), w.getScale());
  const Value added = in_sum ? integers.getX() : r.zeros(r.build.getI32Type(), {shape[0].value});
  const Value sum = r.make<ConvIntegerOp>(r.with_zeros({x.getX(), w.getX(), added}, x, w),
                                          {r.build.getNamedAttr("strides", conv.getStridesAttr()),
                                           r.build.getNamedAttr("dilations", conv.getDilationsAttr()),
                                           r.build.getNamedAttr("pads", conv.getPadsAttr()),
                                           r.build.getNamedAttr("groups", conv.getGroupsAttr())});
  Value out = r.dequantized(sum, x, w, 1);
  if (out && bias && !in_sum) {
    Shape channels(shape.size() - 1, Dim::of(1));
    channels[0] = shape[0];
    if (!element_of(bias).isF32())
      bias = r.make<CastOp>(bias, {}, tensor_of(shape_of(bias.getType()), r.build.getF32Type()));
    const Value each =
        bias ? r.make<ReshapeOp>(bias, {}, tensor_of(channels, r.build.getF32Type())) : Value();
    out = each ? r.make<AddOp>({out, each}) : Value();
  }
  return r.done(out, sum, context);
}

bool replace_matmul(MatmulOp product, DerivedValueCache& context) {
  if (product.getTransA().value_or(0)) return false;
  const bool transposed = product.getTransB() != 0;
  const auto rank = static_cast<int64_t>(shape_of(product.getB().getType()).size());
  DequantizeLinearOp a = match_factor(product.getA(), {}),
                     b = match_factor(product.getB(), transposed ? rank - 2 : rank - 1);
  if (!a || !b) return false;
  Replacement r(product);
  Value right = b.getX();
  if (transposed) {
    SmallVector<int64_t> perm = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    std::swap(perm[static_cast<size_t>(rank) - 1], perm[static_cast<size_t>(rank) - 2]);
    right = make_transpose(r.build, product.getLoc(), right, perm);
  }
  const Value sum = r.make<MatmulIntegerOp>(r.with_zeros({a.getX(), right}, a, b));
  return r.done(r.dequantized(sum, a, b, -1), sum, context);
}

}  // namespace

bool recognize_integer(Operation* anchor, DerivedValueCache& context) {
  if (auto conv = dyn_cast<ConvOp>(anchor)) return replace_conv(conv, context);
  auto product = dyn_cast<MatmulOp>(anchor);
  return product && replace_matmul(product, context);
}

}  // namespace invar::compiler
