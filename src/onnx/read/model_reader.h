// A ModelProto becomes a Graph: names, types, attributes, and calls of the model's functions.
#pragma once

#include <filesystem>
#include <set>
#include <tuple>

#include "onnx/external_data.h"
#include "onnx/onnx.h"
#include "onnx/proto.h"

namespace invar::onnx {

template <class T>
using Repeated = google::protobuf::RepeatedPtrField<T>;
using Opsets = std::map<std::string, int64_t>;

struct Function {
  const ::onnx::FunctionProto* proto = nullptr;
  Opsets opsets;
  std::set<std::string> attributes;                        // that a call may give
  std::map<std::string, ::onnx::AttributeProto> defaults;  // of those that have one
};

// Where nodes are read from: the model, or the body of a function for one call of it.
struct Frame {
  const Opsets* opsets;
  const Frame* caller = nullptr;
  const Function* function = nullptr;                               // null: the model
  std::map<std::string, const ::onnx::AttributeProto*> given = {};  // by the call
  std::string prefix = {};                        // of the names of values that this call defines
  std::map<std::string, std::string> names = {};  // of the function's inputs and outputs -> the caller's
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

  // read.cc
  static Result<Opsets> read_opsets(const Repeated<::onnx::OperatorSetIdProto>& sets,
                                    const std::string& where);
  Result<ValueInfo> read_value(const ::onnx::ValueInfoProto& proto, const char* role, const Frame& frame);
  Status read_initializers(const ::onnx::GraphProto& proto, const Frame& frame, Graph& graph);
  Status read_values(const ::onnx::GraphProto& proto, const Frame& frame, Graph& graph);
  Status read_graph(const ::onnx::GraphProto& proto, const Frame& frame, Graph& graph);

  // read_nodes.cc
  Status read_nodes(const Repeated<::onnx::NodeProto>& protos, const Frame& frame, Graph& graph);
  Result<Node> read_node(const ::onnx::NodeProto& proto, const Frame& frame, size_t index);
  Status read_attribute(const ::onnx::AttributeProto& a, const Frame& frame, Node& node,
                        const std::string& where);
  Status read_reference(const ::onnx::AttributeProto& a, const Frame& frame, Node& node,
                        const std::string& label);
  Status read_content(const ::onnx::AttributeProto& a, const std::string& name, const Frame& frame,
                      Node& node, const std::string& label);
  // The name of a value among those of the whole model, where it is read and where it is defined.
  static std::string used(const Frame& frame, const std::string& name);
  Result<std::string> defined(const Frame& frame, const std::string& name);

  // functions.cc
  Status read_functions(const ::onnx::ModelProto& model);
  const Function* function_of(const ::onnx::NodeProto& proto) const;
  Status inline_call(const ::onnx::NodeProto& proto, const Function& function, const Frame& frame,
                     const std::string& where, Graph& graph);
  Status charge(size_t bytes);

  std::string path_;
  ExternalFiles external_;
  std::map<Key, Function> functions_;
  std::set<std::pair<std::string, std::string>> function_names_;  // (domain, name) of functions_
  size_t calls_ = 0, made_nodes_ = 0, made_bytes_ = 0;            // of functions, so far
  int nested_ = 0;                                                // graphs around the one that is read
};

}  // namespace invar::onnx
