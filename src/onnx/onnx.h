// Model files -> ONNX graph, and back to files. No weight is read here: tensors point into files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"

namespace invar::onnx {

// A dimension: constant, named symbol, or unknown (-1 and no name).
struct Dim {
  int64_t value = -1;
  std::string name;
};

struct TensorRef {  // an initialiser
  std::string name;
  int32_t data_type = 0;  // TensorProto.DataType
  std::vector<int64_t> shape;
  // Either bytes in the model file itself (little-endian)...
  std::string inline_data;
  // ...or a place in another file, relative to the model's folder.
  std::string file;
  uint64_t offset = 0, length = 0;
};

using AttrValue = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                               std::vector<std::string>, TensorRef>;

struct Body;

struct Node {
  std::string name, op_type, domain;
  std::vector<std::string> inputs, outputs;  // "" = absent optional
  std::map<std::string, AttrValue> attributes;
  // Attributes of kinds not in AttrValue (lists of graphs, sparse tensors, ...): name -> kind, so that later stages
  // refuse them by name instead of never seeing them.
  std::map<std::string, std::string> other_attributes;
  std::vector<Body> bodies;  // attributes that are graphs
  int64_t opset = 0;         // of its domain; 0: the graph's
};

struct ValueInfo {
  std::string name;
  int32_t data_type = 0;
  bool has_shape = false;
  std::vector<Dim> shape;
};

struct Graph {
  std::string name;
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;           // domain ("" = default) -> version
  std::vector<ValueInfo> inputs, outputs, values;  // inputs exclude initialisers
  std::vector<TensorRef> initializers;
  std::vector<Node> nodes;                      // topologically sorted by read()
  std::map<std::string, std::string> metadata;  // metadata_props
};

// A graph within a node. It may read what is defined around it, which counts as a use by the node.
struct Body {
  std::string attribute;
  Graph graph;
};

// Reads and checks a .onnx file (spec/onnx.md onnx.1 to onnx.3 and onnx.12): well-formed, values defined once and
// before use (sorts; a cycle names its nodes), sizes consistent, external data inside the model's folder and long
// enough. Calls of the model's own functions are their bodies.
Result<Graph> read(const std::string& path);

// Gives the input of this name a value: it becomes an initialiser. The value must be what the graph says of the input.
Status bind(Graph&, TensorRef value);
// The same, of elements row-major in this processor's order.
Status bind(Graph&, const std::string& name, DType, std::vector<int64_t> shape, const void* data);

// Gives dimensions of the inputs sizes, from 0 to 2^31, and all that are called as they are: by name, or INPUT.AXIS of one that has
// none.
Status fix(Graph&, const std::vector<std::pair<std::string, int64_t>>& dims);

// Writes a .onnx file (protobuf), initialisers by reference.
Status write(const Graph&, const std::string& path);

}  // namespace invar::onnx
