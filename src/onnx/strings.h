// Strings at the edges of a graph, as numbers (spec/onnx.md onnx.53).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "onnx/onnx.h"

namespace invar::onnx {

struct StringTable {
  std::vector<std::string> strings;       // number i is strings[i]; in ascending order of bytes
  std::set<std::string> inputs, outputs;  // of the graph that hold strings
};

struct NumberedGraph {
  Graph graph;
  StringTable table;
};

// The graph with int64 in the place of strings; nothing if it has none, or none that this covers:
// then it stays, and the compiler refuses its operators. Errors: not_covered where it holds string
// tensors that an operator reads which is not covered.
Result<std::optional<NumberedGraph>> number_strings(const Graph&);

// The names of the columns of each output that ZipMap makes.
std::map<std::string, std::vector<std::string>> column_names(const Graph&);

}  // namespace invar::onnx
