// Rewrites of graphs and nodes before the compiler reads them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "onnx/onnx.h"

namespace invar::onnx {

// Eliminates sequence values (lists of tensors), which the compiler does not support: the graph
// with nodes on elements in the place of nodes that read elements of statically known sequences
// (spec/onnx.md onnx.26). Others stay as they are. Nothing if it has no sequences.
std::optional<Graph> without_sequences(const Graph&);

// The rank of a value as the file says it; -1: it does not.
using RankOf = std::function<int(const std::string& value)>;
// Adds the ranks of a node's results that follow from its kind alone, for masks of attention:
// lengths are sums of a mask.
void note_ranks(const Node&, const RankOf&, std::map<std::string, int>& ranks);
// The nodes that a fused operator of com.microsoft stands for, which onnxruntime's optimizers made
// of them (spec/onnx.md onnx.41), in their order, with its name and its outputs. Nothing: it is no
// such node, or has a form that is not covered.
std::optional<std::vector<Node>> unfused(const Node&, const RankOf&);

}  // namespace invar::onnx
