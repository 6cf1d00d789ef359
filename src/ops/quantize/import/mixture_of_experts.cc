// MoE and QMoE of com.microsoft (onnx.43): a router chooses k experts for each token, which are two
// products with an activation between them, and the results are added by their weights.
#include <limits>

#include "ops/quantize/import/decompose_quantized.h"

namespace invar::compiler {
namespace {

constexpr unsigned kNone = ~0U;

// Operands of a product.
struct Projection {
  unsigned weights, bias, scales = kNone, zeros = kNone;
  llvm::StringRef bits = "";
};

struct ExpertOperands {
  Projection up, down, gate;  // fc1, fc2, fc3
  unsigned router_weights = kNone;
};

constexpr ExpertOperands kFloatExperts{.up = {2, 3}, .down = {4, 5}, .gate = {6, 7}};
constexpr ExpertOperands kPackedExperts{.up = {2, 4, 3, 11, "fc1_expert_weight_bits"},
                                        .down = {5, 7, 6, 12, "fc2_expert_weight_bits"},
                                        .gate = {8, 10, 9, 13, "fc3_expert_weight_bits"},
                                        .router_weights = 14};

// Tokens x [T, H] and the experts of each, [T, k], of which there are so many.
struct Routed {
  Value x, index, weights;
  Dim tokens;
  int64_t experts, k;
};

// The k experts of the largest scores, of equal ones the first, and their weights.
Result<Routed> route_tokens(NodeView& node, const ExpertOperands& n) {
  Routed r{};
  const Shape shape = node.shape(0), scores = node.shape(1);
  if (shape.size() < 2 || scores.size() != 2 || !scores[1].constant())
    return not_covered("covered are tokens of rank 2 or 3 and scores [tokens, experts]");
  INVAR_TRY(const Shape rows, flatten_to_matrix(shape, static_cast<int64_t>(shape.size()) - 1));
  INVAR_CHECK_OK(node.require_equal(rows[0], scores[0], "tokens and rows of scores"));
  INVAR_TRY(r.x, reshape(node, node.in(0), rows));
  INVAR_TRY(const Value logits, reshape(node, node.in(1), {rows[0], scores[1]}));
  INVAR_TRY(r.k, node.int_attr("k", 1));
  r.tokens = rows[0], r.experts = scores[1].value;
  if (r.k < 1 || r.k > r.experts)
    return bad_input("k = " + std::to_string(r.k) + " of " + std::to_string(r.experts) + " experts");
  INVAR_TRY(const int64_t normalises, node.int_attr("normalize_routing_weights", 0));
  INVAR_TRY(r.index, argsort(node, logits, 1, r.k, true));
  const auto chosen = [&](Value from) {
    return node.make<GatherElementsOp>({from, r.index}, node.attr("axis", int64_t{1}));
  };
  const auto shares = [&](Value of) { return node.make<SoftmaxOp>(of, node.attr("axis", int64_t{1})); };
  if (n.router_weights != kNone && node.has(n.router_weights)) {
    INVAR_TRY(r.weights, chosen(node.in(n.router_weights)));
    if (!normalises) return r;
    const int64_t one = 1;
    INVAR_TRY(const Value sum,
              node.make<ReduceSumOp>(r.weights, {node.attr("axes", Ints(one)), node.attr("keepdims", one)}));
    INVAR_TRY(r.weights, node.make<DivOp>({r.weights, sum}));
  } else if (normalises) {
    INVAR_TRY(r.weights, chosen(logits));
    INVAR_TRY(r.weights, shares(r.weights));
  } else {
    INVAR_TRY(const Value all, shares(logits));
    INVAR_TRY(r.weights, chosen(all));
  }
  return r;
}

// The part of a constant that belongs to an expert.
Result<Value> part_of(NodeView& node, Value all, int64_t expert) {
  if (auto wide = all.getDefiningOp<CastOp>()) {
    INVAR_TRY(const Value part, part_of(node, wide.getX(), expert));
    return cast_to(node, part, element_of(all));
  }
  Shape shape = shape_of(all.getType());
  auto weight = all.getDefiningOp<ReproWeightOp>();
  if (!weight || weight.getTransposed()) return not_covered("weights of experts that are no constants");
  const auto length = static_cast<int64_t>(weight.getLength()) / shape[0].value;
  shape.erase(shape.begin());
  OpBuilder& build = node.builder();
  StringAttr data = weight.getDataAttr();
  if (data)
    data = build.getStringAttr(
        data.getValue().substr(static_cast<size_t>(expert * length), static_cast<size_t>(length)));
  const auto offset = static_cast<int64_t>(weight.getOffset()) + (data ? 0 : expert * length);
  std::string name = weight.getName().str();  // plan.21
  if (expert) name += " from " + std::to_string(expert * length);
  name += " [";
  for (const auto& [d, dim] : llvm::enumerate(shape)) name += (d ? ", " : "") + std::to_string(dim.value);
  return Value(build.create<ReproWeightOp>(weight.getLoc(), tensor_of(shape, element_of(all)),
                                           build.getStringAttr(name + "]"), weight.getFileAttr(),
                                           build.getI64IntegerAttr(offset), build.getI64IntegerAttr(length),
                                           data, UnitAttr()));
}

// The matrix of an expert, of integers.
Result<PackedMatrix> packed_expert(NodeView& node, const Projection& p, int64_t expert, int64_t bits,
                                   int64_t block) {
  PackedMatrix m{.bits = bits, .block = block};
  INVAR_TRY(m.integers, part_of(node, node.in(p.weights), expert));
  INVAR_TRY(m.scales, part_of(node, node.in(p.scales), expert));
  if (node.has(p.zeros)) {
    INVAR_TRY(m.zeros, part_of(node, node.in(p.zeros), expert));
  }
  if (block) return m;
  // One scale for each column. The operation has that of 8 bits alone; and of 4 bits as one block
  // of 16s.
  const Shape shape = shape_of(m.integers.getType());
  const Dim columns = shape[0];
  if (const int64_t inner = shape[1].value * 8 / bits; bits != 8 && inner % 16 == 0) {
    m.block = inner;
  } else if (bits != 8) {
    INVAR_TRY(m.integers, unpacked_integers(node, m.integers, bits));
    m.bits = 8;
    if (!m.zeros)
      m.zeros =
          node.constant(std::string(static_cast<size_t>(columns.value), static_cast<char>(1 << (bits - 1))),
                        DType::u8, {columns.value, 1});
  }
  if (!node.has(p.zeros)) return m;
  // They are packed along the columns: a byte for each.
  INVAR_TRY(m.zeros, unpacked_integers(node, m.zeros, bits));
  INVAR_TRY(m.zeros, slice(node, m.zeros, 0, 0, columns));
  INVAR_TRY(m.zeros, reshape(node, m.zeros, {columns, Dim::of(1)}));
  return m;
}

// The columns of a product whose weights have the right shapes.
Result<int64_t> columns_of(NodeView& node, const Projection& p, const Routed& r, int64_t inner, int64_t bits,
                           int64_t block) {
  const std::string name = "operand " + std::to_string(p.weights);
  if (!node.has(p.weights)) return bad_input(name + " (weights) is missing");
  const Shape w = node.shape(p.weights);
  if (w.size() != 3 || !w[1].constant() || w[0] != Dim::of(r.experts) || w[2] != Dim::of(inner * bits / 8))
    return shape_error({w}, name + " has the shape " + text_of(w) + " instead of [" +
                                std::to_string(r.experts) + ", columns, " + std::to_string(inner * bits / 8) +
                                "]");
  if (inner * bits % 8) return not_covered("rows that end within a byte");
  const Dim columns = w[1];
  const auto require = [&](unsigned operand, const Shape& shape) -> Status {
    if (operand == kNone || !node.has(operand) || node.shape(operand) == shape) return {};
    return shape_error({node.shape(operand)}, "operand " + std::to_string(operand) + " has the shape " +
                                                  text_of(node.shape(operand)) + " instead of " +
                                                  text_of(shape));
  };
  INVAR_CHECK_OK(require(p.bias, {w[0], columns}));
  if (p.scales == kNone) return columns.value;
  if (!element_of(node.in(p.weights)).isUnsignedInteger(8))
    return not_covered("covered are weights of uint8");
  if (!node.has(p.scales)) return bad_input("operand " + std::to_string(p.scales) + " (scales) is missing");
  const auto bytes = [&](int64_t n) { return Dim::of(block_count(n * bits, 8)); };
  if (block) {
    const int64_t groups = inner / block;
    if (inner % block) return not_covered("rows that block_size does not divide");
    INVAR_CHECK_OK(require(p.scales, {w[0], columns, Dim::of(groups)}));
    INVAR_CHECK_OK(require(p.zeros, {w[0], columns, bytes(groups)}));
  } else {
    INVAR_CHECK_OK(require(p.scales, {w[0], columns}));
    INVAR_CHECK_OK(require(p.zeros, {w[0], bytes(columns.value)}));
  }
  return columns.value;
}

// Bits and block size of a packed product.
struct Packing {
  int64_t bits = 8, block = 0;
};

Result<Packing> packing_of(NodeView& node, const Projection& p) {
  Packing made;
  INVAR_TRY(made.bits, node.int_attr("expert_weight_bits", 4));
  INVAR_TRY(made.bits, node.int_attr(p.bits, made.bits));
  INVAR_TRY(made.block, node.int_attr("block_size", 0));
  if (made.bits != 2 && made.bits != 4 && made.bits != 8) return not_covered("covered are 2, 4 and 8 bits");
  if (made.block < 0) made.block = 0;
  if (made.block && (made.block < 16 || (made.block & (made.block - 1))))
    return bad_input("block_size is no power of two from 16 on");
  return made;
}

// x of every token [T, k or 1, inner] by the matrices of its experts, and their biases:
// [T, k, columns].
Result<Value> experts_product(NodeView& node, const Projection& p, const Routed& r, Value x) {
  const Shape rows = shape_of(x.getType());
  INVAR_TRY(const int64_t columns, columns_of(node, p, r, rows.back().value, 8, 0));
  INVAR_TRY(Value a, reshape(node, x, {rows[0], rows[1], Dim::of(1), rows[2]}));
  INVAR_TRY(const Value b, node.make<GatherOp>({node.in(p.weights), r.index}));
  INVAR_TRY(Value out, node.make<MatmulOp>({a, b}, node.attr("trans_b", int64_t{1})));
  INVAR_TRY(out, reshape(node, out, {r.tokens, Dim::of(r.k), Dim::of(columns)}));
  if (!node.has(p.bias)) return out;
  INVAR_TRY(const Value bias, node.make<GatherOp>({node.in(p.bias), r.index}));
  return node.make<AddOp>({out, bias});
}

// Rows x [T, inner] by the packed matrix of an expert, and its bias: [T, columns].
Result<Value> expert_product(NodeView& node, const Projection& p, const Routed& r, int64_t expert, Value x) {
  INVAR_TRY(const Packing packing, packing_of(node, p));
  const int64_t inner = shape_of(x.getType()).back().value;
  INVAR_TRY(const int64_t columns, columns_of(node, p, r, inner, packing.bits, packing.block));
  INVAR_TRY(const PackedMatrix m, packed_expert(node, p, expert, packing.bits, packing.block));
  INVAR_TRY(const Value out, packed_product(node, x, m));
  if (!node.has(p.bias)) return out;
  INVAR_TRY(Value bias, slice(node, node.in(p.bias), 0, expert, 1));
  INVAR_TRY(bias, reshape(node, bias, {Dim::of(columns)}));
  return node.make<AddOp>({out, bias});
}

// G * sigmoid(alpha G) * (L + beta), both bounded by the limit.
Result<Value> swiglu(NodeView& node, Value gate, Value linear) {
  INVAR_TRY(const float alpha, node.float_attr("activation_alpha", 1.0f));
  INVAR_TRY(const float beta, node.float_attr("activation_beta", 0.0f));
  INVAR_TRY(const float limit, node.float_attr("swiglu_limit", std::numeric_limits<float>::infinity()));
  if (limit != std::numeric_limits<float>::infinity()) {
    INVAR_TRY(gate, node.make<MinOp>({gate, node.constant(limit)}));
    INVAR_TRY(linear, node.make<MinOp>({linear, node.constant(limit)}));
    INVAR_TRY(linear, node.make<MaxOp>({linear, node.constant(-limit)}));
  }
  INVAR_TRY(Value by, node.make<MulOp>({gate, node.constant(alpha)}));
  INVAR_TRY(by, node.make<SigmoidOp>(by));
  INVAR_TRY(gate, node.make<MulOp>({gate, by}));
  INVAR_TRY(linear, node.make<AddOp>({linear, node.constant(beta)}));
  return node.make<MulOp>({gate, linear});
}

// Parts of the last dimension: elements 2 i and 2 i + 1, or its halves.
Result<std::pair<Value, Value>> gate_and_linear(NodeView& node, Value x, bool interleaved) {
  const Shape shape = shape_of(x.getType());
  if (shape.back().value % 2) return bad_input("fused products of an odd number of columns");
  Shape pairs = shape, half = shape;
  half.back() = pairs.back() = Dim::of(shape.back().value / 2);
  pairs.push_back(Dim::of(2));
  if (!interleaved) std::swap(pairs.back(), pairs[pairs.size() - 2]);
  const size_t axis = pairs.size() - (interleaved ? 1 : 2);
  INVAR_TRY(const Value both, reshape(node, x, pairs));
  std::pair<Value, Value> made;
  INVAR_TRY(made.first, slice(node, both, axis, 0, 1));
  INVAR_TRY(made.second, slice(node, both, axis, 1, 1));
  INVAR_TRY(made.first, reshape(node, made.first, half));
  INVAR_TRY(made.second, reshape(node, made.second, half));
  return made;
}

// What the second product reads, of the first one and, where the node has it, the third.
Result<Value> activated(NodeView& node, Value up, Value gate) {
  enum Activation : int64_t { kRelu, kGelu, kSilu, kSwiglu, kIdentity };
  constexpr llvm::StringRef kNames = "relu gelu silu swiglu identity";
  INVAR_TRY(const int64_t kind, enum_attr(node, "activation_type", kNames, kNames.split(' ').first));
  INVAR_TRY(const int64_t fusion, node.int_attr("swiglu_fusion", 0));
  if (kind == kSwiglu) {
    if (fusion < 0 || fusion > 2) return not_covered("covered are swiglu_fusion 0, 1 and 2");
    if ((fusion == 0) != static_cast<bool>(gate))
      return bad_input("swiglu needs fc3, or in its place swiglu_fusion 1 or 2");
    if (gate) return swiglu(node, up, gate);
    INVAR_TRY(const auto parts, gate_and_linear(node, up, fusion == 1));
    return swiglu(node, parts.first, parts.second);
  }
  if (fusion) return not_covered("swiglu_fusion of another activation");
  Value out = up;
  if (kind == kRelu) {
    INVAR_TRY(out, node.make<ReluOp>(up));
  } else if (kind == kGelu) {
    INVAR_TRY(out, node.make<GeluTanhOp>(up));
  } else if (kind == kSilu) {
    INVAR_TRY(out, node.make<SigmoidOp>(up));
    INVAR_TRY(out, node.make<MulOp>({up, out}));
  }
  if (!gate) return out;
  return node.make<MulOp>({out, gate});
}

Status lower_experts(NodeView& node, const ExpertOperands& n) {
  const bool packed = n.up.scales != kNone;
  INVAR_CHECK_OK(node.require_attr("use_sparse_mixer", int64_t{0}));
  INVAR_CHECK_OK(node.require_attr("swiglu_limit_after_activation", int64_t{0}));
  INVAR_TRY(const Routed r, route_tokens(node, n));
  const Dim hidden = node.shape(0).back();
  if (!hidden.constant()) return not_covered("tokens of a size that is not constant");
  // fc1, fc3, the activation and fc2.
  const auto computed = [&](Value x, auto product) -> Result<Value> {
    INVAR_TRY(const Value up, product(n.up, x));
    Value gate;
    if (node.has(n.gate.weights)) {
      INVAR_TRY(gate, product(n.gate, x));
    }
    INVAR_TRY(const Value between, activated(node, up, gate));
    return product(n.down, between);
  };
  Value out;
  if (packed) {
    // An executor leaves out experts that no token has, where these indices are there before them.
    INVAR_TRY(const Value chosen, reshape(node, r.index, {r.tokens, Dim::of(r.k), Dim::of(1)}));
    SmallVector<Value> parts;
    for (int64_t e = 0; e < r.experts; ++e) {
      INVAR_TRY(Value part, computed(r.x, [&](const Projection& p, Value x) {
                  return expert_product(node, p, r, e, x);
                }));
      INVAR_TRY(part, reshape(node, part, {r.tokens, Dim::of(1), shape_of(part.getType()).back()}));
      parts.push_back(part);
    }
    INVAR_TRY(const Value all, concat(node, parts, 1));
    INVAR_TRY(out, node.make<GatherNdOp>({all, chosen}, node.attr("batch_dims", int64_t{1})));
  } else {
    INVAR_TRY(const Value x, reshape(node, r.x, {r.tokens, Dim::of(1), hidden}));
    INVAR_TRY(
        out, computed(x, [&](const Projection& p, Value rows) { return experts_product(node, p, r, rows); }));
  }
  INVAR_TRY(const Value by, reshape(node, r.weights, {r.tokens, Dim::of(r.k), Dim::of(1)}));
  INVAR_TRY(out, node.make<MulOp>({out, by}));
  const int64_t axis = 1;
  INVAR_TRY(out,
            node.make<ReduceSumOp>(out, {node.attr("axes", Ints(axis)), node.attr("keepdims", int64_t{0})}));
  if (shape_of(out.getType()).back() != hidden)
    return bad_input("fc2 does not give rows of the input's size");
  INVAR_TRY(out, reshape(node, out, node.shape(0)));
  return node.replace(out);
}

}  // namespace

Status mixture_of_experts(NodeView& node) {
  INVAR_CHECK_OK(
      node.expect(3, 8,
                  {"activation_alpha", "activation_beta", "activation_type", "k", "normalize_routing_weights",
                   "swiglu_fusion", "swiglu_limit", "swiglu_limit_after_activation", "use_sparse_mixer"}));
  return lower_experts(node, kFloatExperts);
}

// accuracy_level permits lower precision and requires none, so it is ignored.
Status quantized_mixture_of_experts(NodeView& node) {
  INVAR_CHECK_OK(node.expect(
      3, 15,
      {"accuracy_level", "activation_alpha", "activation_beta", "activation_type", "block_size",
       "expert_weight_bits", "fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits",
       "k", "normalize_routing_weights", "quant_type", "swiglu_fusion", "swiglu_limit",
       "swiglu_limit_after_activation", "use_sparse_mixer", "weights_prepacked"}));
  if (const Result<int64_t> integers = enum_attr(node, "quant_type", "int", "int"); !integers)
    return integers.error();
  INVAR_TRY(const int64_t prepacked, node.int_attr("weights_prepacked", -1));
  if (prepacked > 0) return not_covered("weights_prepacked, a layout of one GPU");
  return lower_experts(node, kPackedExperts);
}

}  // namespace invar::compiler
