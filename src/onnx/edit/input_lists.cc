// Inputs that are lists of tensors become an input for each tensor, of which a node makes the list.
#include "onnx/edit/input_lists.h"

#include <algorithm>
#include <set>

#include "onnx/error_text.h"

namespace invar::onnx {
namespace {

constexpr int64_t kMaxLength = 1 << 17;  // onnx.26

std::string element_name(const std::string& list, size_t i) {
  return list + "." + std::to_string(i);
}

std::set<std::string> names_of(const Graph& graph) {
  std::set<std::string> names;
  for (const ValueInfo& v : graph.inputs) names.insert(v.name);
  for (const TensorRef& t : graph.initializers) names.insert(t.name);
  for (const Node& n : graph.nodes) names.insert(n.outputs.begin(), n.outputs.end());
  return names;
}

}  // namespace

Status expand_list(Graph& graph, const std::string& name, int64_t length) {
  if (length < 0 || length > kMaxLength)
    return bad_input("list " + quote(name) + ": " + std::to_string(length) + " tensors are outside 0 to " +
                     std::to_string(kMaxLength));
  const auto list = std::ranges::find(graph.inputs, name, &ValueInfo::name);
  ValueInfo element = *list;
  element.is_list = false;
  for (Dimension& d : element.shape) d.name.clear();  // tensors of a list may differ in what is open
  const std::set<std::string> taken = names_of(graph);
  std::vector<ValueInfo> elements;
  Node made;
  made.op_type = length ? "SequenceConstruct" : "SequenceEmpty", made.opset = 11, made.outputs = {name};
  if (!length) made.attributes["dtype"] = int64_t{element.data_type};
  for (size_t i = 0; i < static_cast<size_t>(length); ++i) {
    element.name = element_name(name, i);
    if (taken.contains(element.name))
      return not_covered("list " + quote(name) + ": the graph has another " + quote(element.name));
    made.inputs.push_back(element.name), elements.push_back(element);
  }
  graph.inputs.insert(graph.inputs.erase(list), elements.begin(), elements.end());
  graph.nodes.insert(graph.nodes.begin(), std::move(made));
  return {};
}

Result<bool> fix_lists(Graph& graph, const std::vector<std::string>& given) {
  const std::set<std::string> names(given.begin(), given.end());
  bool some = false;
  for (const ValueInfo& v : std::vector<ValueInfo>(graph.inputs)) {
    size_t length = 0;
    while (v.is_list && names.contains(element_name(v.name, length))) ++length;
    if (length == 0) continue;
    INVAR_CHECK_OK(expand_list(graph, v.name, static_cast<int64_t>(length)));
    some = true;
  }
  return some;
}

Status check_lists(const Graph& graph) {
  std::string all;
  for (const ValueInfo& v : graph.inputs)
    if (v.is_list)
      all += (all.empty() ? "" : "; ") + ("input " + quote(v.name)) + ": a list of tensors; give " +
             quote(element_name(v.name, 0)) + ", " + quote(element_name(v.name, 1)) +
             " and so on, or say how many by --dim " + quote(v.name) + "=N";
  return all.empty() ? Status() : not_covered(graph.name + ": " + all);
}

}  // namespace invar::onnx
