// MatMulNBits of com.microsoft (onnx.42): products with integers of 2, 4 and 8 bits in blocks.
#include "ops/quantize/import/decompose_quantized.h"

namespace invar::compiler {
namespace {

struct PackedProduct {
  int64_t k, n, bits, block, groups;
};

Result<PackedProduct> packed_product_of(NodeView& node) {
  PackedProduct l{};
  INVAR_TRY(l.k, node.int_attr("K", 0));
  INVAR_TRY(l.n, node.int_attr("N", 0));
  INVAR_TRY(l.bits, node.int_attr("bits", 4));
  INVAR_TRY(l.block, node.int_attr("block_size", 0));
  if (l.bits != 2 && l.bits != 4 && l.bits != 8) return not_covered("covered are 2, 4 and 8 bits");
  if (l.k < 1 || l.n < 1 || l.block < 16 || (l.block & (l.block - 1)))
    return bad_input("K and N are positive, block_size a power of two from 16 on");
  if (Shape a = node.shape(0); a.empty() || a.back() != Dim::of(l.k))
    return shape_error({a.empty() ? a : Shape{a.back()}},
                       "the last dimension of operand 0 is not K = " + std::to_string(l.k));
  l.groups = block_count(l.k, l.block);
  return l;
}

Shape rows_and_columns(int64_t rows, int64_t columns) {
  return {Dim::of(rows), Dim::of(columns)};
}

bool are_bytes(Value v) {
  return element_of(v).isUnsignedInteger(8);
}

// Pairs of integers of 2 bits as pairs of 4 bits: twice as many bytes in the last dimension, of
// which the first `bytes` are kept.
Result<Value> two_bits_as_four(NodeView& node, Value packed, int64_t bytes) {
  INVAR_TRY(Value twos, unpacked_integers(node, packed, 2));
  Shape pair = shape_of(twos.getType()), flat = pair;
  pair.back() = flat.back() = Dim::of(pair.back().value / 2), pair.push_back(Dim::of(2));
  INVAR_TRY(twos, reshape(node, twos, pair));
  const size_t last = pair.size() - 1;
  INVAR_TRY(const Value low, slice(node, twos, last, 0, 1));
  INVAR_TRY(Value high, slice(node, twos, last, 1, 1));
  INVAR_TRY(high, node.make<ShiftLeftOp>({high, node.constant(llvm::StringRef("\x04"), DType::u8)}));
  INVAR_TRY(Value fours, node.make<BitwiseOrOp>({low, high}));
  INVAR_TRY(fours, reshape(node, fours, flat));
  return slice(node, fours, flat.size() - 1, 0, bytes);
}

// Zero points, [N, groups], or one number for all.
Result<Value> zeros_of_product(NodeView& node, const PackedProduct& l) {
  if (!node.has(3)) return node.constant(static_cast<float>(int64_t{1} << (l.bits - 1)));
  if (!are_bytes(node.in(3))) return reshaped_constant(node, 3, rows_and_columns(l.n, l.groups));
  INVAR_TRY(Value zeros,
            reshaped_constant(node, 3, rows_and_columns(l.n, block_count(l.groups * l.bits, 8))));
  INVAR_TRY(zeros, unpacked_integers(node, zeros, l.bits));
  INVAR_TRY(zeros, slice(node, zeros, 1, 0, l.groups));
  return cast_to(node, zeros, node.builder().getF32Type());
}

// (q - z) * s for each weight, [N, K]: zero points that are no integers, or rows in the order of
// g_idx, which says the group of each.
Result<Value> dequantised(NodeView& node, const PackedProduct& l, Value scales) {
  const Type f32 = node.builder().getF32Type();
  INVAR_TRY(Value q, reshaped_constant(node, 1, rows_and_columns(l.n, l.groups * l.block / 8 * l.bits)));
  INVAR_TRY(q, unpacked_integers(node, q, l.bits));
  INVAR_TRY(q, cast_to(node, q, f32));
  INVAR_TRY(q, slice(node, q, 1, 0, l.k));
  INVAR_TRY(Value zeros, zeros_of_product(node, l));
  Value group;
  if (node.has(4)) {
    if (node.shape(4) != Shape{Dim::of(l.k)} && node.shape(4) != Shape{Dim::of(l.groups * l.block)})
      return shape_error({node.shape(4)}, "g_idx has the shape " + text_of(node.shape(4)));
    INVAR_TRY(group, cast_to(node, node.in(4), node.builder().getI64Type()));
    INVAR_TRY(group, slice(node, group, 0, 0, l.k));
  } else {
    std::vector<int64_t> of;
    for (int64_t i = 0; i < l.k; ++i) of.push_back(i / l.block);
    group = node.constant(Ints(of));
  }
  const auto each = [&](Value x) { return node.make<GatherOp>({x, group}, node.attr("axis", int64_t{1})); };
  if (!shape_of(zeros.getType()).empty()) {
    INVAR_TRY(zeros, each(zeros));
  }
  INVAR_TRY(scales, each(scales));
  INVAR_TRY(q, node.make<SubOp>({q, zeros}));
  return node.make<MulOp>({q, scales});
}

}  // namespace

// The operation has no integers of 2 bits, so these get 4 each.
Result<Value> packed_product(NodeView& node, Value a, PackedMatrix m) {
  const int64_t middle = int64_t{1} << (m.bits - 1);
  if (m.bits == 2) {
    const auto bytes = [](Value v) { return shape_of(v.getType()).back().value; };
    const Shape scales = shape_of(m.scales.getType());
    const int64_t groups = scales.size() > 1 ? scales.back().value : 1;
    INVAR_TRY(m.integers, two_bits_as_four(node, m.integers, 2 * bytes(m.integers)));
    if (m.zeros) {
      INVAR_TRY(m.zeros, two_bits_as_four(node, m.zeros, block_count(groups, 2)));
    }
    m.bits = 4;
  }
  SmallVector<Value> in = {a, m.integers, m.scales};
  if (m.zeros) in.push_back(m.zeros);
  return node.make<MatmulNbitsOp>(
      in, {node.attr("bits", m.bits), node.attr("block", m.block), node.attr("trans_b", int64_t{1}),
           node.attr("zero", m.zeros ? int64_t{0} : middle)});
}

// accuracy_level permits lower precision and requires none, so it is ignored.
Status matmul_nbits(NodeView& node) {
  INVAR_CHECK_OK(node.expect(3, 6, {"K", "N", "accuracy_level", "bits", "block_size", "weight_prepacked"}));
  INVAR_CHECK_OK(node.require_attr("weight_prepacked", int64_t{0}));
  INVAR_TRY(const PackedProduct l, packed_product_of(node));
  if (!are_bytes(node.in(1)) || !node.in(1).getDefiningOp<ReproWeightOp>())
    return not_covered("weights that are no constant of uint8");
  if (node.has(3) && !are_bytes(node.in(3)) && !element_of(node.in(3)).isF32())
    return not_covered("covered are zero points of uint8 and of the type of the scales");
  INVAR_TRY(const Value scales, reshaped_constant(node, 2, rows_and_columns(l.n, l.groups)));
  Value out;
  if (node.has(4) || (node.has(3) && !are_bytes(node.in(3)))) {
    INVAR_TRY(const Value weights, dequantised(node, l, scales));
    INVAR_TRY(out, matrix_product(node, node.in(0), weights, true));
  } else {
    const Dim n = Dim::of(l.n), groups = Dim::of(l.groups);
    PackedMatrix m{.scales = scales, .bits = l.bits, .block = l.block};
    INVAR_TRY(m.integers, reshaped_constant(node, 1, {n, groups, Dim::of(l.block / 8 * l.bits)}));
    if (node.has(3)) {
      INVAR_TRY(m.zeros, reshaped_constant(node, 3, {n, Dim::of(block_count(l.groups * l.bits, 8))}));
    }
    INVAR_TRY(out, packed_product(node, node.in(0), m));
  }
  if (node.has(5)) {
    INVAR_TRY(out, node.make<AddOp>({out, node.in(5)}));
  }
  return node.replace(out);
}

}  // namespace invar::compiler
