// Constants of weights that are packed in blocks: their bytes, and the integers in these.
#include "ops/quantize/import/decompose_quantized.h"

namespace invar::compiler {

Result<Value> reshaped_constant(NodeView& node, unsigned operand, const Shape& shape) {
  const Value x = node.in(operand);
  const Shape had = node.shape(operand);
  if (had == shape) return x;
  const std::optional<DimExpr> have = element_count(had), wanted = element_count(shape);
  if (!have || !wanted || *have != *wanted)
    return shape_error({had}, "operand " + std::to_string(operand) + " has the shape " + text_of(had) +
                                  " instead of " + text_of(shape));
  auto weight = x.getDefiningOp<ReproWeightOp>();
  if (!weight) return reshape(node, x, shape);
  OpBuilder build(weight);
  build.setInsertionPointAfter(weight);
  auto other = cast<ReproWeightOp>(build.clone(*weight));
  other.getOut().setType(tensor_of(shape, element_of(x)));
  return Value(other.getOut());
}

Result<Value> constant_bytes(NodeView& node, Value x, const Shape& shape) {
  auto weight = x.getDefiningOp<ReproWeightOp>();
  if (!weight) return not_covered("numbers of 4 bits, or of 8 bits with an exponent, that are computed");
  const std::string name = weight.getName().str() + " as bytes";
  return Value(node.builder().create<ReproWeightOp>(
      weight.getLoc(), tensor_of(shape, node.builder().getIntegerType(8, false)),
      node.builder().getStringAttr(name), weight.getFileAttr(), weight.getOffsetAttr(),
      weight.getLengthAttr(), weight.getDataAttr(), UnitAttr()));
}

Result<Value> unpacked_integers(NodeView& node, Value bytes, int64_t bits) {
  if (bits == 8) return bytes;
  const auto byte = [&](int64_t v) { return node.constant(std::string(1, static_cast<char>(v)), DType::u8); };
  Shape one = shape_of(bytes.getType()), flat = one;
  if (!flat.back().constant()) return not_covered("an open number of packed integers");
  flat.back() = Dim::of(8 / bits * flat.back().value), one.push_back(Dim::of(1));
  SmallVector<Value> parts;
  for (int64_t at = 0; at < 8; at += bits) {
    Value part = bytes;
    if (at) {
      INVAR_TRY(part, node.make<ShiftRightOp>({part, byte(at)}));
    }
    if (at + bits < 8) {
      INVAR_TRY(part, node.make<BitwiseAndOp>({part, byte((1 << bits) - 1)}));
    }
    INVAR_TRY(part, reshape(node, part, one));
    parts.push_back(part);
  }
  INVAR_TRY(const Value all, concat(node, parts, static_cast<int64_t>(one.size()) - 1));
  return reshape(node, all, flat);
}

}  // namespace invar::compiler
