// Topological sort of a graph's nodes, and checks that every used value has one definition.
#pragma once

#include <string>

#include "onnx/onnx.h"

namespace invar::onnx {

// "node 'name' (Op)", or "node #3 (Op)" where it has no name.
std::string node_label(const Node& node, size_t index);

// Checks that every value is defined once and every use has a definition. Sorts nodes so that each
// follows the definitions of the values that it and its nested graphs read. The sort is stable: a
// sorted graph stays as it is. Errors begin with `where` and name the node.
Status check_and_sort(Graph& graph, const std::string& where);

}  // namespace invar::onnx
