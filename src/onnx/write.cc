// Writes a Graph as an ONNX protobuf file.
#include <climits>

#include "base/file/file.h"
#include "onnx/error_text.h"
#include "onnx/onnx.h"
#include "onnx/proto.h"
#include "onnx/read/toposort.h"

namespace invar::onnx {
namespace {

using ::onnx::AttributeProto;

struct AttributeWriter {
  AttributeProto& a;
  void operator()(int64_t v) const { a.set_type(AttributeProto::INT), a.set_i(v); }
  void operator()(float v) const { a.set_type(AttributeProto::FLOAT), a.set_f(v); }
  void operator()(const std::string& v) const { a.set_type(AttributeProto::STRING), a.set_s(v); }
  void operator()(const std::vector<int64_t>& v) const {
    a.set_type(AttributeProto::INTS), a.mutable_ints()->Assign(v.begin(), v.end());
  }
  void operator()(const std::vector<float>& v) const {
    a.set_type(AttributeProto::FLOATS), a.mutable_floats()->Assign(v.begin(), v.end());
  }
  void operator()(const std::vector<std::string>& v) const {
    a.set_type(AttributeProto::STRINGS), a.mutable_strings()->Assign(v.begin(), v.end());
  }
  void operator()(const TensorRef& v) const {
    a.set_type(AttributeProto::TENSOR), to_proto(v, *a.mutable_t());
  }
};

void write_value(const ValueInfo& v, ::onnx::ValueInfoProto& proto) {
  proto.set_name(v.name);
  auto* tensor = proto.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(v.data_type);
  if (!v.has_shape) return;
  auto* shape = tensor->mutable_shape();
  for (const Dimension& d : v.shape) {
    auto* dim = shape->add_dim();
    if (!d.name.empty())
      dim->set_dim_param(d.name);
    else if (d.value >= 0)
      dim->set_dim_value(d.value);
  }
}

}  // namespace

Status write(const Graph& graph, const std::string& path) {
  ::onnx::ModelProto model;
  model.set_ir_version(graph.ir_version);
  model.set_producer_name(kProducer);
  for (const auto& [domain, version] : graph.opsets) {
    auto* set = model.add_opset_import();
    set->set_domain(domain);
    set->set_version(version);
  }
  for (const auto& [key, value] : graph.metadata) {
    auto* p = model.add_metadata_props();
    p->set_key(key);
    p->set_value(value);
  }
  auto* g = model.mutable_graph();
  g->set_name(graph.name);
  for (const auto& v : graph.inputs) write_value(v, *g->add_input());
  for (const auto& v : graph.outputs) write_value(v, *g->add_output());
  for (const auto& v : graph.values) write_value(v, *g->add_value_info());
  for (const auto& t : graph.initializers) to_proto(t, *g->add_initializer());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!node.other_attributes.empty())
      return not_covered(path + ": " + node_label(node, i) + ": attribute " +
                         quote(node.other_attributes.begin()->first) + " (" +
                         node.other_attributes.begin()->second + ") cannot be written");
    if (!node.bodies.empty())
      return not_covered(path + ": " + node_label(node, i) + ": attribute " +
                         quote(node.bodies[0].attribute) + " (graph) cannot be written");
    auto* n = g->add_node();
    n->set_name(node.name);
    n->set_op_type(node.op_type);
    n->set_domain(node.domain);
    for (const auto& name : node.inputs) n->add_input(name);
    for (const auto& name : node.outputs) n->add_output(name);
    for (const auto& [name, value] : node.attributes) {
      auto* a = n->add_attribute();
      a->set_name(name);
      std::visit(AttributeWriter{*a}, value);
    }
  }
  if (model.ByteSizeLong() > INT_MAX)
    return bad_input(path + ": would be larger than the 2 GiB that an ONNX file may have");
  std::string bytes;
  if (!model.SerializeToString(&bytes)) return Error{Code::internal, path + ": cannot be serialised"};
  return write_file(path, bytes);
}

}  // namespace invar::onnx
