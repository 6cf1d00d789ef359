#include "ir/rules.h"

namespace invar::ir {
namespace {

Status rotary_embedding(Node& node) {
  INVAR_CHECK_OK(node.expect(3, 4, {"interleaved", "num_heads", "rotary_embedding_dim"}));
  Value cos = node.in(1), sin = node.in(2);
  if (node.has(3)) {  // tables of all positions, and which of them
    INVAR_TRY(cos, node.make<GatherOp>({cos, node.in(3)}));
    INVAR_TRY(sin, node.make<GatherOp>({sin, node.in(3)}));
  }
  INVAR_TRY(int64_t heads, node.i("num_heads", 0));
  INVAR_TRY(int64_t rotary, node.i("rotary_embedding_dim", 0));
  INVAR_TRY(int64_t interleaved, node.i("interleaved", 0));
  INVAR_TRY(Value out, node.make<RopeOp>({node.in(0), cos, sin},
                                         {node.attr("num_heads", heads), node.attr("rotary_dim", rotary),
                                          node.attr("interleaved", int64_t{interleaved != 0})}));
  return node.replace(out);
}

}  // namespace

LogicalResult RopeOp::inferReturnTypes(MLIRContext*, std::optional<Location> loc, Adaptor op,
                                       SmallVectorImpl<Type>& out) {
  Shape x = shape_of(op.getX().getType()), cos = shape_of(op.getCos().getType());
  int64_t heads = op.getNumHeads(), rotary = op.getRotaryDim();
  if (x.size() != 3 || !x[2].constant()) return refuse(loc, "covered is [batch, sequence, heads * size]");
  if (heads <= 0 || x[2].value % heads)
    return mismatch(loc, std::to_string(heads) + " heads do not divide " + text_of(x[2]));
  int64_t size = x[2].value / heads, turned = rotary ? rotary : size;
  if (turned <= 0 || turned > size || turned % 2)
    return mismatch(loc,
                    "cannot rotate " + std::to_string(turned) + " of " + std::to_string(size) + " elements");
  if (cos != shape_of(op.getSin().getType())) return mismatch(loc, "cosines and sines differ in shape");
  if (cos != Shape{x[0], x[1], Extent::of(turned / 2)})
    return refuse(loc, "covered are angles of shape [batch, sequence, rotated / 2]");
  out.push_back(op.getX().getType());
  return success();
}

void import_rope(Rooms& rooms) {
  rooms.on("RotaryEmbedding", 23, rotary_embedding);
}

}  // namespace invar::ir
