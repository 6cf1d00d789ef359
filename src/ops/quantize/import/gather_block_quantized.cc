// GatherBlockQuantized of com.microsoft, in which onnxruntime-genai's builder keeps an embedding
// that shares the quantised weight of the last product (onnx.34): decomposed.
#include "compiler/room_api.h"
#include "ops/quantize/import/decompose_quantized.h"

namespace invar::compiler {
namespace {

// Numbers of 8 bits as f32, or pairs of 4 bits, of which the low half comes first.
Result<Value> numbers_of(NodeView& node, Value bytes, int64_t bits) {
  if (bits == 4) {
    INVAR_TRY(Value low, node.make<BitwiseAndOp>({bytes, node.constant(llvm::StringRef("\x0f"), DType::u8)}));
    INVAR_TRY(Value high,
              node.make<ShiftRightOp>({bytes, node.constant(llvm::StringRef("\x04"), DType::u8)}));
    Shape pair = shape_of(bytes.getType()), flat = pair;
    pair.push_back(Dim::of(1)), flat.back() = Dim::of(2 * flat.back().value);
    INVAR_TRY(low, reshape(node, low, pair));
    INVAR_TRY(high, reshape(node, high, pair));
    INVAR_TRY(bytes, concat(node, {low, high}, static_cast<int64_t>(pair.size()) - 1));
    INVAR_TRY(bytes, reshape(node, bytes, flat));
  }
  return cast_to(node, bytes, node.builder().getF32Type());
}

// The attributes and shapes of a table [rows, columns].
struct Layout {
  int64_t bits, block, groups;
};

Result<Layout> layout_of(NodeView& node) {
  INVAR_TRY(const int64_t bits, node.int_attr("bits", 4));
  INVAR_TRY(const int64_t block, node.int_attr("block_size", 128));
  INVAR_TRY(const int64_t gathered, node.int_attr("gather_axis", 0));
  INVAR_TRY(const int64_t quantised, node.int_attr("quantize_axis", 1));
  const Shape table = node.shape(0), scales = node.shape(2);
  const Type u8 = node.builder().getIntegerType(8, false);
  if (element_of(node.in(0)) != u8 || (bits != 4 && bits != 8))
    return not_covered("covered are numbers of 4 and 8 bits in a table of uint8");
  if (table.size() != 2 || scales.size() != 2 || !table[1].constant() || !scales[1].constant())
    return not_covered("covered are a table and scales of rank 2");
  if ((gathered != 0 && gathered != -2) || (quantised != 1 && quantised != -1))
    return not_covered("covered are gather_axis 0 and quantize_axis 1");
  if (!element_of(node.in(2)).isF32()) return not_covered("covered are scales of f32");
  if (block < 16 || (block & (block - 1))) return bad_input("block_size is no power of two from 16 on");
  INVAR_CHECK_OK(node.require_equal(table[0], scales[0], "rows of the table and of the scales"));
  const int64_t columns = table[1].value * 8 / bits, groups = scales[1].value;
  if (columns % block) return not_covered("columns that block_size does not divide");
  if (columns / block != groups)
    return bad_input(std::to_string(groups) + " scales of " + std::to_string(columns) +
                     " columns in blocks of " + std::to_string(block));
  return Layout{bits, block, groups};
}

// The zero points of the rows at `index`, or the number that stands for them.
Result<Value> zero_points(NodeView& node, Value index, const Layout& l) {
  if (!node.has(3)) return node.constant(l.bits == 4 ? 8.0f : 128.0f);
  const Shape shape = node.shape(3), expected{node.shape(0)[0], Dim::of((l.groups * l.bits + 7) / 8)};
  if (!element_of(node.in(3)).isUnsignedInteger(8))
    return bad_input("zero points are not of the table's type");
  if (shape != expected)
    return shape_error({shape},
                       "zero points of the shape " + text_of(shape) + " instead of " + text_of(expected));
  INVAR_TRY(Value zeros, node.make<GatherOp>({node.in(3), index}));
  INVAR_TRY(zeros, numbers_of(node, zeros, l.bits));
  Shape out = shape_of(zeros.getType());
  INVAR_TRY(zeros, slice(node, zeros, out.size() - 1, 0, l.groups));
  out.back() = Dim::of(l.groups), out.push_back(Dim::of(1));
  return reshape(node, zeros, out);
}

}  // namespace

Status gather_block_quantized(NodeView& node) {
  INVAR_CHECK_OK(node.expect(3, 4, {"bits", "block_size", "gather_axis", "quantize_axis"}));
  INVAR_TRY(const Layout l, layout_of(node));
  INVAR_TRY(const Value index, cast_to(node, node.in(1), node.builder().getI64Type()));
  INVAR_TRY(Value rows, node.make<GatherOp>({node.in(0), index}));
  INVAR_TRY(rows, numbers_of(node, rows, l.bits));
  const Shape flat = shape_of(rows.getType());
  Shape blocks = flat, of_block = flat;
  blocks.back() = of_block.back() = Dim::of(l.groups);
  blocks.push_back(Dim::of(l.block)), of_block.push_back(Dim::of(1));
  INVAR_TRY(rows, reshape(node, rows, blocks));
  INVAR_TRY(const Value zeros, zero_points(node, index, l));
  INVAR_TRY(rows, node.make<SubOp>({rows, zeros}));
  INVAR_TRY(Value scales, node.make<GatherOp>({node.in(2), index}));
  INVAR_TRY(scales, reshape(node, scales, of_block));
  INVAR_TRY(rows, node.make<MulOp>({rows, scales}));
  INVAR_TRY(Value out, reshape(node, rows, flat));
  return node.replace(out);
}

}  // namespace invar::compiler
