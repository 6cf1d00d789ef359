// Converts a ModelProto to a Graph: values, types, attributes, and inlined calls of model-local
// functions.
#pragma once

#include <filesystem>
#include <set>
#include <tuple>

#include "onnx/onnx.h"
#include "onnx/proto.h"
#include "onnx/read/external_data.h"

namespace invar::onnx {

template <class T>
using Repeated = google::protobuf::RepeatedPtrField<T>;
using Opsets = std::map<std::string, int64_t>;

struct Function {
  const ::onnx::FunctionProto* proto = nullptr;
  Opsets opsets;
  std::set<std::string> attributes;                        // parameters
  std::map<std::string, ::onnx::AttributeProto> defaults;  // of parameters that have one
};

// The scope from which nodes are read: the model, or one call of a function.
struct CallFrame {
  const Opsets* opsets;
  const CallFrame* caller = nullptr;
  const Function* function = nullptr;                                   // null: the model
  std::map<std::string, const ::onnx::AttributeProto*> arguments = {};  // attributes of the call
  std::string prefix = {};                                              // of names that this call defines
  std::map<std::string, std::string> names = {};  // the function's inputs and outputs -> values of the caller
  std::set<std::string> inputs = {};              // of the function
};

class GraphReader {
 public:
  explicit GraphReader(const std::string& path)
      : path_(path),
        external_(std::filesystem::path(path).parent_path().empty()
                      ? "."
                      : std::filesystem::path(path).parent_path().string()) {}

  Result<Graph> read(const ::onnx::ModelProto& model);

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // domain, name, overload

  // parse_model.cc
  static Result<Opsets> read_opsets(const Repeated<::onnx::OperatorSetIdProto>& sets,
                                    const std::string& where);
  Result<ValueInfo> read_value(const ::onnx::ValueInfoProto& proto, const char* role, const CallFrame& frame);
  Status read_initializers(const ::onnx::GraphProto& proto, const CallFrame& frame, Graph& graph);
  Status read_values(const ::onnx::GraphProto& proto, const CallFrame& frame, Graph& graph);
  Status read_graph(const ::onnx::GraphProto& proto, const CallFrame& frame, Graph& graph);

  // parse_nodes.cc
  Status read_nodes(const Repeated<::onnx::NodeProto>& protos, const CallFrame& frame, Graph& graph);
  Result<Node> read_node(const ::onnx::NodeProto& proto, const CallFrame& frame, size_t index);
  Status read_attribute(const ::onnx::AttributeProto& a, const CallFrame& frame, Node& node,
                        const std::string& where);
  Status read_reference(const ::onnx::AttributeProto& a, const CallFrame& frame, Node& node,
                        const std::string& label);
  Status read_content(const ::onnx::AttributeProto& a, const std::string& name, const CallFrame& frame,
                      Node& node, const std::string& label);
  CallFrame shadowed(const ::onnx::GraphProto& graph, const CallFrame& frame);
  // The unique name of a value in the whole model, at a use and at its definition.
  static std::string name_of_use(const CallFrame& frame, const std::string& name);
  Result<std::string> name_of_definition(const CallFrame& frame, const std::string& name);

  // inline_functions.cc
  Status read_functions(const ::onnx::ModelProto& model);
  const Function* function_of(const ::onnx::NodeProto& proto) const;
  Status inline_call(const ::onnx::NodeProto& proto, const Function& function, const CallFrame& frame,
                     const std::string& where, Graph& graph);
  // Counts a node and bytes against the limits of inlining.
  Status charge_inlining(size_t bytes);

  std::string path_;
  ExternalFiles external_;
  std::map<Key, Function> functions_;
  std::set<std::pair<std::string, std::string>> function_names_;  // (domain, name) of functions_
  size_t calls_ = 0, inlined_nodes_ = 0, inlined_bytes_ = 0;
  int depth_ = 0;                                      // of nested graphs
  std::vector<std::set<std::string>> defined_around_;  // the values that each graph around defines
  size_t shadowing_ = 0;                               // inputs of graphs that have such a name
};

}  // namespace invar::onnx
