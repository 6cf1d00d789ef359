#include <climits>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "onnx/external.h"
#include "onnx/onnx.h"
#include "onnx/proto.h"
#include "onnx/sort.h"
#include "onnx/tensor.h"
#include "onnx/text.h"

namespace invar::onnx {
namespace {

using ::onnx::AttributeProto;

const char* kind_name(const AttributeProto& a) {
  switch (a.type()) {
    case AttributeProto::GRAPH: return "graph";
    case AttributeProto::GRAPHS: return "graphs";
    case AttributeProto::TENSORS: return "tensors";
    case AttributeProto::SPARSE_TENSOR: return "sparse tensor";
    case AttributeProto::SPARSE_TENSORS: return "sparse tensors";
    case AttributeProto::TYPE_PROTO: return "type";
    case AttributeProto::TYPE_PROTOS: return "types";
    default: return "unknown";
  }
}

class GraphReader {
 public:
  explicit GraphReader(const std::string& path)
      : path_(path),
        external_(std::filesystem::path(path).parent_path().empty()
                      ? "."
                      : std::filesystem::path(path).parent_path().string()) {}

  Result<Graph> read(const ::onnx::ModelProto& model);

 private:
  Status read_opsets(const ::onnx::ModelProto& model);
  Status read_initializers(const ::onnx::GraphProto& graph);
  Result<ValueInfo> read_value(const ::onnx::ValueInfoProto& proto, const char* role);
  Result<Node> read_node(const ::onnx::NodeProto& proto, size_t index);
  Status read_attribute(const AttributeProto& a, Node& node, const std::string& where);

  std::string path_;
  ExternalFiles external_;
  std::set<std::pair<std::string, std::string>> functions_;  // (domain, name) that the model itself defines
  Graph graph_;
};

Status GraphReader::read_opsets(const ::onnx::ModelProto& model) {
  for (const auto& set : model.opset_import()) {
    const std::string domain = set.domain() == "ai.onnx" ? "" : set.domain();  // two spellings of the default
    if (set.version() < 1 || !graph_.opsets.emplace(domain, set.version()).second)
      return bad_input(path_ + ": opset of domain " + quote(domain) + " is given twice or has no version");
  }
  if (graph_.opsets.empty())
    return bad_input(path_ + ": no opset_import; not a model that can be understood");
  return {};
}

Status GraphReader::read_initializers(const ::onnx::GraphProto& graph) {
  for (const auto& proto : graph.initializer()) {
    const std::string where = path_ + ": initialiser " + quote(proto.name());
    INVAR_TRY(TensorRef t, from_proto(proto, where));
    if (!t.file.empty()) {
      INVAR_CHECK_OK(external_.check(t, where));
    }
    graph_.initializers.push_back(std::move(t));
  }
  if (graph.sparse_initializer_size())
    return not_covered(path_ + ": sparse initialiser " + quote(graph.sparse_initializer(0).values().name()) +
                       " is not covered");
  return {};
}

Result<ValueInfo> GraphReader::read_value(const ::onnx::ValueInfoProto& proto, const char* role) {
  const std::string where = path_ + ": " + role + " " + quote(proto.name());
  if (proto.name().empty()) return bad_input(path_ + ": a " + role + " has no name");
  if (!proto.type().has_tensor_type()) return not_covered(where + " is not a tensor, which is not covered");
  const auto& tensor = proto.type().tensor_type();
  ValueInfo v{proto.name(), tensor.elem_type(), tensor.has_shape(), {}};
  if (v.data_type != kString && !bits_of(v.data_type))
    return bad_input(where + " has unknown element type " + std::to_string(v.data_type));
  for (const auto& d : tensor.shape().dim()) {
    Dim dim;
    if (d.has_dim_value()) {
      dim.value = d.dim_value();
      if (dim.value < 0) return bad_input(where + " has a negative dimension");
    } else {
      dim.name = d.dim_param();
    }
    v.shape.push_back(dim);
  }
  return v;
}

Status GraphReader::read_attribute(const AttributeProto& a, Node& node, const std::string& where) {
  const std::string label = where + ": attribute " + quote(a.name());
  if (a.name().empty()) return bad_input(where + ": an attribute has no name");
  if (node.attributes.contains(a.name()) || node.other_attributes.contains(a.name()))
    return bad_input(label + " is given twice");
  if (!a.ref_attr_name().empty())
    return bad_input(label + " refers to a function's attribute outside a function");
  AttrValue value;
  switch (a.type()) {
    case AttributeProto::INT: value = int64_t{a.i()}; break;
    case AttributeProto::FLOAT: value = a.f(); break;
    case AttributeProto::STRING: value = a.s(); break;
    case AttributeProto::INTS: value = std::vector<int64_t>(a.ints().begin(), a.ints().end()); break;
    case AttributeProto::FLOATS: value = std::vector<float>(a.floats().begin(), a.floats().end()); break;
    case AttributeProto::STRINGS:
      value = std::vector<std::string>(a.strings().begin(), a.strings().end());
      break;
    case AttributeProto::TENSOR: {
      INVAR_TRY(TensorRef t, from_proto(a.t(), label));
      if (!t.file.empty()) {
        INVAR_CHECK_OK(external_.check(t, label));
      }
      value = std::move(t);
      break;
    }
    case AttributeProto::UNDEFINED: return bad_input(label + " has no type");
    default: node.other_attributes[a.name()] = kind_name(a); return {};
  }
  node.attributes.emplace(a.name(), std::move(value));
  return {};
}

Result<Node> GraphReader::read_node(const ::onnx::NodeProto& proto, size_t index) {
  Node node;
  node.name = proto.name();
  node.op_type = proto.op_type();
  node.domain = proto.domain() == "ai.onnx" ? "" : proto.domain();
  node.inputs.assign(proto.input().begin(), proto.input().end());
  node.outputs.assign(proto.output().begin(), proto.output().end());
  const std::string where = path_ + ": " + node_label(node, index);
  if (node.op_type.empty()) return bad_input(where + " has no operator");
  // A node of another domain without an opset is kept: the compiler names it together with all else it cannot
  // cover.
  if (node.domain.empty() && !graph_.opsets.contains(""))
    return bad_input(where + ": the model imports no opset of the default domain");
  for (const auto& a : proto.attribute()) INVAR_CHECK_OK(read_attribute(a, node, where));
  // A function of the model may redefine any operator, so no later stage may take this node for the
  // standard's.
  if (functions_.contains({node.domain, node.op_type}))
    node.other_attributes["(definition)"] = "model-local function";
  return node;
}

Result<Graph> GraphReader::read(const ::onnx::ModelProto& model) {
  if (!model.has_graph()) return bad_input(path_ + ": not an ONNX model: it has no graph");
  graph_.ir_version = model.ir_version();
  if (graph_.ir_version < 3)
    return bad_input(path_ + ": IR version " + std::to_string(graph_.ir_version) +
                     " is not one of 3 and later");
  graph_.name = model.graph().name();
  INVAR_CHECK_OK(read_opsets(model));
  for (const auto& f : model.functions())
    functions_.emplace(f.domain() == "ai.onnx" ? "" : f.domain(), f.name());
  for (const auto& p : model.metadata_props())
    if (!graph_.metadata.emplace(p.key(), p.value()).second)
      return bad_input(path_ + ": metadata " + quote(p.key()) + " is given twice");
  INVAR_CHECK_OK(read_initializers(model.graph()));

  std::set<std::string> initialised, described;
  for (const auto& t : graph_.initializers) initialised.insert(t.name);
  for (const auto& proto : model.graph().input()) {
    INVAR_TRY(ValueInfo v, read_value(proto, "graph input"));
    if (!initialised.contains(v.name))
      graph_.inputs.push_back(std::move(v));  // older files list initialisers as inputs too
  }
  for (const auto& proto : model.graph().output()) {
    INVAR_TRY(ValueInfo v, read_value(proto, "graph output"));
    if (!described.insert(v.name).second)
      return bad_input(path_ + ": graph output " + quote(v.name) + " is given twice");
    graph_.outputs.push_back(std::move(v));
  }
  described.clear();
  for (const auto& proto : model.graph().value_info()) {
    if (!proto.type().has_tensor_type()) continue;  // a hint; its node is refused by name where it matters
    INVAR_TRY(ValueInfo v, read_value(proto, "value"));
    if (!described.insert(v.name).second)
      return bad_input(path_ + ": value " + quote(v.name) + " is described twice");
    graph_.values.push_back(std::move(v));
  }
  for (const auto& proto : model.graph().node()) {
    INVAR_TRY(Node node, read_node(proto, graph_.nodes.size()));
    graph_.nodes.push_back(std::move(node));
  }
  INVAR_CHECK_OK(check_and_sort(graph_, path_));
  return std::move(graph_);
}

}  // namespace

Result<::onnx::ModelProto> parse_model(const std::string& path) {
  INVAR_TRY(MappedFile file, MappedFile::open(path));
  if (file.bytes().size() > INT_MAX)
    return bad_input(path +
                     ": larger than the 2 GiB that an ONNX file may have; keep weights as external data");
  ::onnx::ModelProto model;
  if (!model.ParseFromArray(file.bytes().data(), static_cast<int>(file.bytes().size())))
    return bad_input(path + ": not a well-formed ONNX file (truncated, or not protobuf)");
  return model;
}

Result<Graph> read(const std::string& path) {
  INVAR_TRY(const ::onnx::ModelProto model, parse_model(path));
  return GraphReader(path).read(model);
}

}  // namespace invar::onnx
