// Order and names of a graph.
#pragma once

#include <string>

#include "onnx/onnx.h"

namespace invar::onnx {

// "node 'name' (Op)", or "node #3 (Op)" where it has no name.
std::string node_label(const Node& node, size_t index);

// Checks that every value is defined exactly once and every use is defined, and puts the nodes in an order in
// which each follows what it and the graphs within it read. Nodes already in such an order keep it. Errors name the
// node; `where` begins them.
Status check_and_sort(Graph& graph, const std::string& where);

}  // namespace invar::onnx
