// The type of an integer convolution. Nodes become one in the rooms of quantization, and by the
// choice integer-1.
#include "compiler/room_api.h"
#include "ops/conv_integer/attributes.h"

namespace invar::compiler {

Result<ValueType> infer_conv_integer(InferredCall& in, const ops::ConvIntegerAttributes& a) {
  return infer_convolution(in, DType::i32, {a.strides, a.dilations, a.pads, a.groups});
}

void import_conv_integer(RuleRegistry&) {}

}  // namespace invar::compiler
