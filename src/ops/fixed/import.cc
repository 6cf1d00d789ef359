// Type inference of fixed-point sums. No ONNX node becomes one.
#include "compiler/room_api.h"

namespace invar::compiler {
Result<ValueType> infer_fixed_sum(InferredCall& in) {
  const Shape& x = in[0].shape;
  if (x.empty()) return bad_input("x has no dimension of units");
  return ValueType{DType::i64, Shape(x.begin() + 1, x.end())};
}

Result<ValueType> infer_fixed_magnitude(InferredCall& in) {
  if (in[0].shape.empty()) return bad_input("x has no dimension of units");
  return ValueType{DType::i64, {}};
}

Result<ValueType> infer_fixed_value(InferredCall& in) {
  if (!in[1].shape.empty()) return bad_input("the magnitude is not one number");
  return ValueType{DType::f32, in[0].shape};
}

void import_fixed(RuleRegistry&) {}

}  // namespace invar::compiler
