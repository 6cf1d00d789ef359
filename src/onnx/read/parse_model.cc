// Reads values, types and initializers of a model, and the model file itself.
#include <climits>

#include "base/file/file.h"
#include "onnx/error_text.h"
#include "onnx/raw_data_index.h"
#include "onnx/read/model_reader.h"
#include "onnx/read/toposort.h"
#include "onnx/tensor.h"

namespace invar::onnx {
namespace {

constexpr char kGraphOutput[] = "graph output";

}  // namespace

Result<Opsets> GraphReader::read_opsets(const Repeated<::onnx::OperatorSetIdProto>& sets,
                                        const std::string& where) {
  Opsets opsets;
  for (const auto& set : sets) {
    const std::string domain = set.domain() == "ai.onnx" ? "" : set.domain();  // two spellings of the default
    const auto it = opsets.emplace(domain, set.version()).first;
    if (set.version() < 1 || it->second != set.version())
      return bad_input(where + ": opset of domain " + quote(domain) +
                       (set.version() < 1
                            ? " has no version"
                            : " is " + std::to_string(it->second) + " and " + std::to_string(set.version())));
  }
  return opsets;
}

Status GraphReader::read_initializers(const ::onnx::GraphProto& proto, const CallFrame& frame, Graph& graph) {
  for (const auto& initializer : proto.initializer()) {
    const std::string where = path_ + ": initialiser " + quote(initializer.name());
    INVAR_TRY(TensorRef t, from_proto(initializer, where));
    if (!t.file.empty()) {
      INVAR_CHECK_OK(external_.check(t, where));
    }
    INVAR_TRY(t.name, name_of_definition(frame, t.name));
    graph.initializers.push_back(std::move(t));
  }
  for (const auto& sparse : proto.sparse_initializer()) {
    INVAR_TRY(TensorRef t,
              dense_from_proto(sparse, path_ + ": sparse initialiser " + quote(sparse.values().name())));
    INVAR_TRY(t.name, name_of_definition(frame, t.name));
    graph.initializers.push_back(std::move(t));
  }
  return {};
}

Result<ValueInfo> GraphReader::read_value(const ::onnx::ValueInfoProto& proto, const char* role,
                                          const CallFrame& frame) {
  const std::string where = path_ + ": " + role + " " + quote(proto.name());
  if (proto.name().empty()) return bad_input(path_ + ": a " + role + " has no name");
  ValueInfo v{name_of_use(frame, proto.name()), 0, false, {}};
  // A list of tensors is an input or output for each.
  const bool list = proto.type().has_sequence_type() && !depth_;
  if (list && std::string_view(role) == kGraphOutput) return v;
  v.is_list = list && proto.type().sequence_type().elem_type().has_tensor_type();
  if (!v.is_list && !proto.type().has_tensor_type()) {
    // Nested graphs may omit types. The node that defines a value that is no tensor is refused
    // later.
    if (depth_) return v;
    const auto kind = proto.type().value_case();
    return not_covered(
        where + " is not a tensor" +
        (kind == ::onnx::TypeProto::kSequenceType   ? " but a list of no tensors, which is not covered"
         : kind == ::onnx::TypeProto::kOptionalType ? " but an optional, which is not covered: give a tensor"
                                                    : ", which is not covered"));
  }
  const auto& tensor =
      v.is_list ? proto.type().sequence_type().elem_type().tensor_type() : proto.type().tensor_type();
  v.data_type = tensor.elem_type(), v.has_shape = tensor.has_shape();
  if (v.data_type != kString && !bits_of(v.data_type) && !(depth_ && v.data_type == 0))
    return bad_input(where + " has unknown element type " + std::to_string(v.data_type));
  for (const auto& d : tensor.shape().dim()) {
    Dimension dim;
    if (d.has_dim_value()) {
      dim.value = d.dim_value();  // some exporters write -1 for a dynamic dimension
      if (dim.value < -1) return bad_input(where + " has a negative dimension");
    } else {
      dim.name = d.dim_param();
      // Exporters write these for no name.
      if (dim.name == "?" || dim.name == "None" || dim.name.find_first_not_of(' ') == dim.name.npos)
        dim.name.clear();
    }
    v.shape.push_back(dim);
  }
  return v;
}

Status GraphReader::read_values(const ::onnx::GraphProto& proto, const CallFrame& frame, Graph& graph) {
  std::set<std::string> initialized, described;
  for (const auto& t : graph.initializers) initialized.insert(t.name);
  for (const auto& input : proto.input()) {
    INVAR_TRY(ValueInfo v, read_value(input, "graph input", frame));
    INVAR_TRY(v.name, name_of_definition(frame, input.name()));
    if (depth_ || !initialized.contains(v.name))
      graph.inputs.push_back(std::move(v));  // older files also list initializers as inputs
  }
  for (const auto& output : proto.output()) {
    INVAR_TRY(ValueInfo v, read_value(output, kGraphOutput, frame));
    if (!described.insert(v.name).second && !depth_)
      return bad_input(path_ + ": graph output " + quote(v.name) + " is given twice");
    graph.outputs.push_back(std::move(v));
  }
  described.clear();
  for (const auto& value : proto.value_info()) {
    if (!value.type().has_tensor_type()) continue;  // a hint only; an unsupported node is refused by name
    INVAR_TRY(ValueInfo v, read_value(value, "value", frame));
    // A hint: exporters of quantised graphs describe some twice, and the first holds.
    if (described.insert(v.name).second) graph.values.push_back(std::move(v));
  }
  return {};
}

Status GraphReader::read_graph(const ::onnx::GraphProto& proto, const CallFrame& frame, Graph& graph) {
  graph.name = proto.name();
  INVAR_CHECK_OK(read_initializers(proto, frame, graph));
  INVAR_CHECK_OK(read_values(proto, frame, graph));
  std::set<std::string>& defined = defined_around_.emplace_back();
  for (const TensorRef& t : graph.initializers) defined.insert(t.name);
  for (const ValueInfo& v : graph.inputs) defined.insert(v.name);
  for (const auto& node : proto.node())
    for (const std::string& name : node.output()) defined.insert(name_of_use(frame, name));
  const Status status = read_nodes(proto.node(), frame, graph);
  defined_around_.pop_back();
  return status;
}

Result<Graph> GraphReader::read(const ::onnx::ModelProto& model) {
  if (!model.has_graph()) return bad_input(path_ + ": not an ONNX model: it has no graph");
  Graph graph;
  graph.ir_version = model.ir_version();
  if (graph.ir_version < 3)
    return bad_input(path_ + ": IR version " + std::to_string(graph.ir_version) +
                     " is not one of 3 and later");
  INVAR_TRY(graph.opsets, read_opsets(model.opset_import(), path_));
  if (graph.opsets.empty()) return bad_input(path_ + ": no opset_import; not a model that can be understood");
  INVAR_CHECK_OK(read_functions(model));
  for (const auto& p : model.metadata_props())
    if (!graph.metadata.emplace(p.key(), p.value()).second)
      return bad_input(path_ + ": metadata " + quote(p.key()) + " is given twice");
  const Opsets opsets = graph.opsets;
  INVAR_CHECK_OK(read_graph(model.graph(), CallFrame{&opsets}, graph));
  INVAR_CHECK_OK(external_.all_found());
  INVAR_CHECK_OK(check_and_sort(graph, path_));
  return graph;
}

Result<::onnx::ModelProto> parse_model(const std::string& path) {
  INVAR_TRY(MappedFile file, MappedFile::open(path));
  if (file.bytes().size() > INT_MAX)
    return bad_input(path +
                     ": larger than the 2 GiB that an ONNX file may have; keep weights as external data");
  if (file.bytes().empty()) return bad_input(path + ": an empty file, no ONNX model");
  if (file.text().starts_with("version https://git-lfs.github.com/spec/"))
    return bad_input(path + ": a pointer of git LFS, not the model: run `git lfs pull` in its folder");
  const std::string name = std::filesystem::path(path).filename().string();
  std::optional<std::string> rewritten;
  if (is_plain(name)) rewritten = externalize_raw_data(file.text(), name);
  const std::string_view bytes = rewritten ? std::string_view(*rewritten) : file.text();
  ::onnx::ModelProto model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return bad_input(path + ": not a well-formed ONNX file (truncated, or not protobuf)");
  return model;
}

Result<Graph> read(const std::string& path) {
  INVAR_TRY(const ::onnx::ModelProto model, parse_model(path));
  return GraphReader(path).read(model);
}

}  // namespace invar::onnx
