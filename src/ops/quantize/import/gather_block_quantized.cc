// GatherBlockQuantized of com.microsoft, in which onnxruntime-genai's builder and onnxruntime's
// quantizer keep embeddings (onnx.34): decomposed.
#include "ops/quantize/import/decompose_quantized.h"

namespace invar::compiler {
namespace {

// The attributes and shapes of a table [rows, columns]. zero: the zero point
// without operand 3, of integers to which 8 is added where they have a sign.
struct Layout {
  int64_t bits, block, columns, groups;
  float zero;
};

Result<Layout> layout_of(NodeView& node) {
  INVAR_TRY(int64_t bits, node.int_attr("bits", 4));
  INVAR_TRY(const int64_t block, node.int_attr("block_size", 128));
  INVAR_TRY(const int64_t gathered, node.int_attr("gather_axis", 0));
  INVAR_TRY(const int64_t quantised, node.int_attr("quantize_axis", 1));
  const Shape table = node.shape(0), scales = node.shape(2);
  const int32_t code = packed_code(node.in(0));
  const bool typed = code == 21 || code == 22;  // uint4, int4
  if (!typed && (!element_of(node.in(0)).isUnsignedInteger(8) || (bits != 4 && bits != 8)))
    return not_covered(
        "covered are numbers of 4 and 8 bits in a table of uint8, and tables of int4 and uint4");
  if (table.size() != 2 || scales.size() != 2 || !table[1].constant() || !scales[1].constant())
    return not_covered("covered are a table and scales of rank 2");
  if ((gathered != 0 && gathered != -2) || (quantised != 1 && quantised != -1))
    return not_covered("covered are gather_axis 0 and quantize_axis 1");
  if (!element_of(node.in(2)).isF32()) return not_covered("covered are scales of f32");
  if (block < 16 || (block & (block - 1))) return bad_input("block_size is no power of two from 16 on");
  INVAR_CHECK_OK(node.require_equal(table[0], scales[0], "rows of the table and of the scales"));
  if (typed) bits = 4;
  Layout l{bits, block, table[1].value * (typed ? 1 : 8 / bits), scales[1].value, 0};
  if (block_count(l.columns, block) != l.groups)
    return bad_input(std::to_string(l.groups) + " scales of " + std::to_string(l.columns) +
                     " columns in blocks of " + std::to_string(block));
  if (typed && l.columns % 2) return not_covered("rows of int4 or uint4 that end within a byte");
  l.zero = code == 21 ? 0.0f : code == 22 ? 8.0f : static_cast<float>(int64_t{1} << (bits - 1));
  return l;
}

// Rows of integers of the operand, [index..., columns], as f32 that are at least 0.
Result<Value> rows_of(NodeView& node, unsigned operand, Value index, const Layout& l, int64_t columns) {
  Value table = node.in(operand);
  const bool is_signed = packed_code(table) == 22;
  if (packed_code(table)) {
    INVAR_TRY(table, constant_bytes(node, table, {node.shape(operand)[0], Dim::of(columns / 2)}));
  }
  INVAR_TRY(Value rows, node.make<GatherOp>({table, index}));
  INVAR_TRY(rows, unpacked_integers(node, rows, l.bits));
  if (is_signed) {  // two's complement, 8 more
    INVAR_TRY(rows, node.make<BitwiseXorOp>({rows, node.constant(llvm::StringRef("\x08"), DType::u8)}));
  }
  INVAR_TRY(rows, slice(node, rows, shape_of(rows.getType()).size() - 1, 0, columns));
  return cast_to(node, rows, node.builder().getF32Type());
}

// One number for each block, [index..., groups], as one for each column.
Result<Value> each_column(NodeView& node, Value of_blocks, const Layout& l) {
  Shape shape = shape_of(of_blocks.getType());
  if (l.columns % l.block == 0) {
    shape.push_back(Dim::of(1));
    return reshape(node, of_blocks, shape);
  }
  std::vector<int64_t> block;
  for (int64_t i = 0; i < l.columns; ++i) block.push_back(i / l.block);
  return node.make<GatherOp>({of_blocks, node.constant(Ints(block))},
                             node.attr("axis", static_cast<int64_t>(shape.size()) - 1));
}

// The zero points of the rows at `index`, or the number that stands for them.
Result<Value> zero_points(NodeView& node, Value index, const Layout& l) {
  if (!node.has(3)) return node.constant(l.zero);
  if (element_of(node.in(3)) != element_of(node.in(0)))
    return bad_input("zero points are not of the table's type");
  const bool typed = packed_code(node.in(3)) != 0;
  const int64_t width = typed ? l.groups : block_count(l.groups * l.bits, 8);
  const Shape shape = node.shape(3), expected{node.shape(0)[0], Dim::of(width)};
  if (shape != expected)
    return shape_error({shape},
                       "zero points of the shape " + text_of(shape) + " instead of " + text_of(expected));
  Value zeros;
  if (typed) {  // rows may end within a byte
    INVAR_TRY(zeros, integers_of_4_bits(node, node.in(3)));
    INVAR_TRY(zeros, node.make<GatherOp>({zeros, index}));
    INVAR_TRY(zeros, cast_to(node, zeros, node.builder().getF32Type()));
    if (l.zero != 0) {
      INVAR_TRY(zeros, node.make<AddOp>({zeros, node.constant(l.zero)}));
    }
  } else {
    INVAR_TRY(zeros, rows_of(node, 3, index, l, l.groups));
  }
  return each_column(node, zeros, l);
}

}  // namespace

Status gather_block_quantized(NodeView& node) {
  INVAR_CHECK_OK(node.expect(3, 4, {"bits", "block_size", "gather_axis", "quantize_axis"}));
  INVAR_TRY(const Layout l, layout_of(node));
  INVAR_TRY(const Value index, cast_to(node, node.in(1), node.builder().getI64Type()));
  INVAR_TRY(Value rows, rows_of(node, 0, index, l, l.columns));
  const Shape flat = shape_of(rows.getType());
  if (l.columns % l.block == 0) {
    Shape blocks = flat;
    blocks.back() = Dim::of(l.groups), blocks.push_back(Dim::of(l.block));
    INVAR_TRY(rows, reshape(node, rows, blocks));
  }
  INVAR_TRY(const Value zeros, zero_points(node, index, l));
  INVAR_TRY(rows, node.make<SubOp>({rows, zeros}));
  INVAR_TRY(Value scales, node.make<GatherOp>({node.in(2), index}));
  INVAR_TRY(scales, each_column(node, scales, l));
  INVAR_TRY(rows, node.make<MulOp>({rows, scales}));
  INVAR_TRY(Value out, reshape(node, rows, flat));
  return node.replace(out);
}

}  // namespace invar::compiler
