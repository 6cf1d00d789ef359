// The type inference of repro.tree_ensemble. ml_trees.cc, a decomposition of the compiler, has the
// rules of the operators of ai.onnx.ml that become it.
#include "compiler/room_api.h"
#include "ops/tree_ensemble/attributes.h"

namespace invar::compiler {

Result<ValueType> infer_tree_ensemble(InferredCall& in, const ops::TreeEnsembleAttributes& a) {
  const Shape& x = in[0].shape;
  if (x.size() != 2) return bad_input("rows of shape " + text_of(x) + " are not [N, F]");
  const Shape& nodes = in[1].shape;
  if (nodes.size() != 2 || nodes[1] != Dim::of(4))
    return bad_input("nodes of shape " + text_of(nodes) + " are not [M, 4]");
  for (size_t i = 2; i < 7; ++i)
    if (in[i].shape.size() != 1)
      return bad_input("operand " + std::to_string(i) + " of shape " + text_of(in[i].shape) + " is no list");
  if (!may_be_equal(nodes[0], in[2].shape[0]))
    return in.unequal_dims(nodes[0], in[2].shape[0], "numbers of nodes and thresholds");
  if (!may_be_equal(in[4].shape[0], in[5].shape[0]))
    return in.unequal_dims(in[4].shape[0], in[5].shape[0], "numbers of targets and weights");
  if (a.aggregate < 0 || a.aggregate > 3)
    return bad_input("aggregate " + std::to_string(a.aggregate) + " is not from 0 to 3");
  return ValueType{in[0].dtype, {x[0], in[6].shape[0]}};
}

void import_tree_ensemble(RuleRegistry&) {}

}  // namespace invar::compiler
