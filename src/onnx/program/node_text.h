// How the normal form spells types, attributes and inputs (program.10 to program.12).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/onnx.h"

namespace invar::onnx {

std::string quoted(std::string_view);  // a string of plan.2
std::string joined(const std::vector<std::string>&);
// The dtype of plan.2, or `onnx` and the number of TensorProto.DataType for a type without one.
std::string type_text(int32_t data_type);
// "NAME=VALUE, ..." of all attributes but graphs, ascending by name.
std::string attributes_text(const Node&, const std::function<std::string(const TensorRef&)>& tensor_text);
// "DTYPE SHAPE NAME". `dims` numbers the names of dimensions by their first occurrence.
std::string input_text(const ValueInfo&, std::map<std::string, std::string>& dims);

}  // namespace invar::onnx
