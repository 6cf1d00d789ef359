// Binds graph inputs to constant values.
#include <algorithm>

#include "base/endian.h"
#include "onnx/error_text.h"
#include "onnx/tensor.h"

namespace invar::onnx {

Status bind_input(Graph& graph, TensorRef value) {
  auto input = std::find_if(graph.inputs.begin(), graph.inputs.end(),
                            [&](const ValueInfo& v) { return v.name == value.name; });
  if (input == graph.inputs.end()) {
    std::string known;
    for (const ValueInfo& v : graph.inputs) known += (known.empty() ? "; there are " : ", ") + quote(v.name);
    return bad_input("input " + quote(value.name) + ": the graph has none of this name left to bind" + known);
  }
  if (input->is_list) return check_lists(graph);
  bool fits =
      input->data_type == value.data_type && (!input->has_shape || input->shape.size() == value.shape.size());
  for (size_t d = 0; fits && input->has_shape && d < value.shape.size(); ++d)
    fits = input->shape[d].value < 0 || input->shape[d].value == value.shape[d];
  std::string wanted;
  for (const Dimension& d : input->shape)
    wanted += (wanted.empty() ? "" : ", ") + (d.value >= 0     ? std::to_string(d.value)
                                              : d.name.empty() ? "?"
                                                               : d.name);
  if (!fits)
    return bad_input("input " + quote(value.name) + ": a value of " + name_of_type(value.data_type) + " " +
                     shape_text(value.shape) + " is not what the graph takes, " +
                     name_of_type(input->data_type) + (input->has_shape ? " [" + wanted + "]" : ""));
  graph.inputs.erase(input);
  graph.initializers.push_back(std::move(value));
  return {};
}

Status bind_input(Graph& graph, const std::string& name, DType dtype, std::vector<int64_t> shape,
                  const void* data) {
  TensorRef value;
  value.name = name, value.data_type = code_of(dtype), value.shape = std::move(shape);
  size_t bytes = size_of(dtype);
  for (const int64_t d : value.shape) bytes *= static_cast<size_t>(d);
  value.inline_data.resize(bytes);
  copy_little_endian(value.inline_data.data(), data, bytes, size_of(dtype));
  return bind_input(graph, std::move(value));
}

}  // namespace invar::onnx
