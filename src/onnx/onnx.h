// Reads and writes ONNX models. Weights are not read: tensors refer to byte ranges of files.
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
struct Dimension {
  int64_t value = -1;
  std::string name;
};

struct TensorRef {  // an initializer
  std::string name;
  int32_t data_type = 0;  // TensorProto.DataType
  std::vector<int64_t> shape;
  // Either the bytes themselves, little-endian, ...
  std::string inline_data;
  // ... or a range of a file relative to the model's folder.
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
  // Attributes of kinds that AttrValue lacks (lists of graphs, sparse tensors, ...): name -> kind.
  // Later stages refuse them by name.
  std::map<std::string, std::string> other_attributes;
  std::vector<Body> bodies;  // attributes that are graphs
  int64_t opset = 0;         // of its domain; 0: the graph's
};

struct ValueInfo {
  std::string name;
  int32_t data_type = 0;
  bool has_shape = false;
  std::vector<Dimension> shape;
  bool is_list = false;  // an input: a list of such tensors, of which nobody has said how many
};

struct Graph {
  std::string name;
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;           // domain ("" = default) -> version
  std::vector<ValueInfo> inputs, outputs, values;  // inputs exclude initializers
  std::vector<TensorRef> initializers;
  std::vector<Node> nodes;                      // topologically sorted by read()
  std::map<std::string, std::string> metadata;  // metadata_props
};

// A graph inside a node. It may capture values of the graphs around it.
struct Body {
  std::string attribute;
  Graph graph;
};

// Reads and checks a .onnx file (spec/onnx.md onnx.1 to onnx.3 and onnx.12): it is well-formed,
// every value is defined once, sizes are consistent, and external data are inside of the model's
// folder and long enough. Nodes are sorted topologically; an error names the nodes of a cycle.
// Calls of model-local functions are inlined.
Result<Graph> read(const std::string& path);

// Turns the input of this name into an initializer. The value must have the declared type and
// shape.
Status bind_input(Graph&, TensorRef value);
// The same with row-major elements in native byte order.
Status bind_input(Graph&, const std::string& name, DType, std::vector<int64_t> shape, const void* data);

// An input that is a list of tensors becomes an input for each, NAME.0, NAME.1, ... (onnx.26),
// where these are among `given`: the names that a call, or whoever compiles, gives. True: some has.
Result<bool> fix_lists(Graph&, const std::vector<std::string>& given);
// Refuses inputs that are lists still.
Status check_lists(const Graph&);

// Fixes dimensions of the inputs to sizes from 0 to 2^31, and all dimensions with the same symbol.
// A dimension without a symbol is named INPUT.AXIS, the length of a list by the list.
Status fix_dims(Graph&, const std::vector<std::pair<std::string, int64_t>>& dims);

// The name, element type and shape of an input of one call.
struct CallInput {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
};
// Gives the inputs the shapes of one call, and with them all dimensions of the same symbols. An
// input of which the file says no shape gets one. Errors name the input and both shapes.
Status fix_shapes(Graph&, const std::vector<CallInput>& inputs);

// Writes a .onnx file. Initializers with a file are written as external data.
Status write(const Graph&, const std::string& path);

}  // namespace invar::onnx
