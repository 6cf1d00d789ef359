// Lowering of RotaryEmbedding, and the type inference of repro.rope.
#include "compiler/room_api.h"
#include "ops/rope/attributes.h"

namespace invar::compiler {
namespace {

// cos and sin are tables indexed by `positions`; without positions, the angles themselves.
Status lower_rope(NodeView& node, Value cos, Value sin, Value positions, int64_t heads, int64_t rotary) {
  if (positions) {
    INVAR_TRY(cos, node.make<GatherOp>({cos, positions}));
    INVAR_TRY(sin, node.make<GatherOp>({sin, positions}));
  }
  INVAR_TRY(int64_t interleaved, node.int_attr("interleaved", 0));
  SmallVector<NamedAttribute> attrs{node.attr("num_heads", heads), node.attr("rotary_dim", rotary),
                                    node.attr("interleaved", int64_t{interleaved != 0})};
  if (node.shape(0).size() == 4) attrs.push_back(node.attr("heads_first", int64_t{1}));
  INVAR_TRY(Value out, node.make<RopeOp>({node.in(0), cos, sin}, attrs));
  return node.replace(out);
}

// The number of heads: dimension 1 of [batch, heads, sequence, size], else the attribute.
Result<int64_t> num_heads(const NodeView& node) {
  const Shape x = node.shape(0);
  if (x.size() == 4 && x[1].constant()) return x[1].value;
  return node.int_attr("num_heads", 0);
}

Status rotary_embedding(NodeView& node) {
  INVAR_CHECK_OK(node.expect(3, 4, {"interleaved", "num_heads", "rotary_embedding_dim"}));
  INVAR_TRY(int64_t heads, num_heads(node));
  INVAR_TRY(int64_t rotary, node.int_attr("rotary_embedding_dim", 0));
  return lower_rope(node, node.in(1), node.in(2), node.has(3) ? node.in(3) : Value(), heads, rotary);
}

// com.microsoft: x, positions, and tables of cosines and sines. Without attributes a table row is
// half a head wide.
Status rotary_embedding_of_tables(NodeView& node) {
  INVAR_CHECK_OK(
      node.expect(4, 4, {"interleaved", "is_packed_batching", "num_heads", "rotary_embedding_dim", "scale"}));
  INVAR_CHECK_OK(node.require_attr("is_packed_batching", int64_t{0}));
  INVAR_CHECK_OK(node.require_attr("scale", 1.0f));
  const Shape x = node.shape(0), positions = node.shape(1), table = node.shape(2);
  if (positions.size() != 2)
    return not_covered("positions are covered as [batch, sequence], not as one offset");
  INVAR_TRY(int64_t heads, num_heads(node));
  INVAR_TRY(int64_t rotary, node.int_attr("rotary_embedding_dim", 0));
  if (heads == 0 && rotary == 0 && x.size() == 3 && x[2].constant() && table.size() == 2 &&
      table[1].constant() && table[1].value > 0)
    heads = x[2].value / (2 * table[1].value);
  return lower_rope(node, node.in(2), node.in(3), node.in(1), heads, rotary);
}

// rope.6: the rotation with heads first equals that with heads last. The rewrite moves the
// transpose behind it, where attention can absorb it.
struct RotateHeadsLast : OpRewritePattern<RopeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(RopeOp op, PatternRewriter& rewriter) const override {
    Value flat =
        op.getHeadsFirst().value_or(0) && op.getX().hasOneUse() ? match_heads_last(op.getX()) : Value();
    if (!flat) return failure();
    auto transpose = op.getX().getDefiningOp<TransposeOp>();
    SmallVector<NamedAttribute> attrs(op->getAttrs());
    llvm::erase_if(attrs, [](NamedAttribute a) {
      return a.getName() == "heads_first" || a.getName() == "numerics" || a.getName() == "version";
    });
    const auto add = [&](llvm::StringRef name, ValueRange operands, llvm::ArrayRef<NamedAttribute> with,
                         Type type) {
      return make_op(rewriter, op.getLoc(), name, operands, with, type)->getResult(0);
    };
    Value y = add(RopeOp::getOperationName(), {flat, op.getCos(), op.getSin()}, attrs, flat.getType());
    y = add(ReshapeOp::getOperationName(), y, {}, transpose.getX().getType());
    y = add(TransposeOp::getOperationName(), y, rewriter.getNamedAttr("perm", transpose.getPermAttr()),
            op.getType());
    rewriter.replaceOp(op, y);
    return success();
  }
};

}  // namespace

Result<ValueType> infer_rope(InferredCall& in, const ops::RopeAttributes& a) {
  const Shape &x = in[0].shape, &cos = in[1].shape, &sin = in[2].shape;
  const int64_t heads = a.num_heads;
  const bool heads_first = a.heads_first != 0;
  if (x.size() != (heads_first ? 4 : 3) || !x.back().constant())
    return not_covered("covered are [batch, sequence, heads * size] and [batch, heads, sequence, size]");
  if (heads <= 0 || (heads_first ? x[1] != Dim::of(heads) : x[2].value % heads != 0))
    return bad_input(std::to_string(heads) + " heads do not divide " + text_of(x[heads_first ? 1 : 2]));
  const int64_t size = heads_first ? x[3].value : x[2].value / heads;
  const int64_t rotated = a.rotary_dim ? a.rotary_dim : size;
  if (rotated <= 0 || rotated > size || rotated % 2)
    return bad_input("cannot rotate " + std::to_string(rotated) + " of " + std::to_string(size) +
                     " elements");
  if (constexpr const char* kWrong = "cosines and sines differ in shape"; cos != sin)
    return may_be_equal(cos, sin) ? not_covered(kWrong) : bad_input(kWrong);
  const Dim& seq = x[heads_first ? 2 : 1];
  if (cos != Shape{x[0], seq, Dim::of(rotated / 2)} && cos != Shape{Dim::of(1), seq, Dim::of(rotated / 2)})
    return not_covered("covered are angles of shape [batch or 1, sequence, rotated / 2]");
  return in[0];
}

void import_rope(RuleRegistry& registry) {
  registry.add_pattern<RotateHeadsLast>();
  registry.add_rule("RotaryEmbedding", 23, rotary_embedding);
  registry.add_rule("com.microsoft.RotaryEmbedding", 1, rotary_embedding_of_tables);
}

}  // namespace invar::compiler
