// Type inference of steps of optimisers. No ONNX node becomes one.
#include "compiler/room_api.h"

namespace invar::compiler {
// Operands of one length and the scalars -> [results, length].
Result<ValueType> infer_step(InferredCall& in, int64_t scalars, int64_t results) {
  const Shape &first = in[0].shape, &last = in[in.size() - 1].shape;
  if (first.size() != 1) return bad_input("parameters of one dimension are covered");
  for (size_t i = 0; i + 1 < in.size(); ++i)
    if (in[i].shape != first) return bad_input("gradients and state have the parameters' shape");
  if (last.size() != 1 || (last[0].constant() && last[0].value != scalars))
    return bad_input("the scalars are not " + std::to_string(scalars) + " numbers");
  return ValueType{in[0].dtype, {Dim::of(results), first[0]}};
}

void import_optim(RuleRegistry&) {}

}  // namespace invar::compiler
