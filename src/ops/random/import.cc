// Lowering of RandomNormal, RandomUniform and their like, where they say a seed (onnx.35), and type
// inference of dropout.
#include <bit>

#include "compiler/room_api.h"

namespace invar::compiler {
namespace {

constexpr int64_t kFloat = 1;  // TensorProto.DataType
// The numbers of the second factor of a normal number begin there; no tensor has that many
// elements.
constexpr int64_t kSecond = int64_t{1} << 40;

// The result's shape and element type, of a node with two attributes of its distribution. Like:
// those of operand 0, unless an attribute says another type.
template <bool like>
Result<RankedTensorType> drawn_type(NodeView& node, llvm::StringRef first, llvm::StringRef second) {
  INVAR_CHECK_OK(like ? node.expect(1, 1, {"dtype", "seed", first, second})
                      : node.expect(0, 0, {"dtype", "seed", first, second, "shape"}));
  if (!node.attribute("seed"))
    return not_covered("it draws random numbers without attribute \"seed\": no two runs draw the same");
  INVAR_TRY(const int64_t code, node.int_attr("dtype", kFloat));
  Type element = onnx_type(node.context(), static_cast<int32_t>(code));
  if (like && !node.attribute("dtype")) element = element_of(node.in(0));
  if (!element || !isa<FloatType>(element) || !dtype_of(element))
    return not_covered("random numbers of another type than f32, f16, bf16 and f64");
  if (like) return tensor_of(node.shape(0), element);
  INVAR_TRY(const std::vector<int64_t> sizes, node.ints_attr("shape"));
  Shape shape;
  for (int64_t size : sizes) {
    if (size < 0) return bad_input("attribute \"shape\" contains " + std::to_string(size));
    shape.push_back(Dim::of(size));
  }
  return tensor_of(shape, element);
}

// Multiples of 2^-24 in [0, 1) (random.4). The seed is the number whose bits are the attribute's.
Value draw(ExprBuilder& f, float seed, int64_t offset, RankedTensorType type) {
  const int64_t number = std::bit_cast<uint32_t>(seed);
  return f.make<RandomUniformOp>({f.node().constant(Ints(number)), f.node().constant(Ints(offset))}, {},
                                 tensor_of(shape_of(type), f.node().builder().getF32Type()));
}

template <bool like>
Status uniform(NodeView& node) {
  INVAR_TRY(const RankedTensorType type, drawn_type<like>(node, "high", "low"));
  INVAR_TRY(const float seed, node.float_attr("seed", 0));
  INVAR_TRY(const float low, node.float_attr("low", 0));
  INVAR_TRY(const float high, node.float_attr("high", 1));
  ExprBuilder f(node);
  const Value drawn = f.add(f.mul(draw(f, seed, 0, type), f.f32(high - low)), f.f32(low));
  const Value out = f.cast(drawn, type.getElementType());
  INVAR_CHECK_OK(f.status());
  return node.replace(out);
}

// Box and Muller's way: sqrt(-2 log(1 - u)) cos(2 pi v).
template <bool like>
Status normal(NodeView& node) {
  INVAR_TRY(const RankedTensorType type, drawn_type<like>(node, "mean", "scale"));
  INVAR_TRY(const float seed, node.float_attr("seed", 0));
  INVAR_TRY(const float mean, node.float_attr("mean", 0));
  INVAR_TRY(const float scale, node.float_attr("scale", 1));
  ExprBuilder f(node);
  const Value u = draw(f, seed, 0, type), v = draw(f, seed, kSecond, type);
  const Value radius = f.make<SqrtOp>(f.mul(f.make<LogOp>(f.sub(f.f32(1), u)), f.f32(-2)));
  const Value z = f.mul(radius, f.make<CospiOp>(f.mul(v, f.f32(2))));
  const Value out = f.cast(f.add(f.mul(z, f.f32(scale)), f.f32(mean)), type.getElementType());
  INVAR_CHECK_OK(f.status());
  return node.replace(out);
}

}  // namespace

void import_random(RuleRegistry& registry) {
  registry.add_rule("RandomNormal", 1, normal<false>, ">*");
  registry.add_rule("RandomNormalLike", 1, normal<true>, "*>*");
  registry.add_rule("RandomUniform", 1, uniform<false>, ">*");
  registry.add_rule("RandomUniformLike", 1, uniform<true>, "*>*");
}

}  // namespace invar::compiler
