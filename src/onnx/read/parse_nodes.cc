// Reads nodes and their attributes.
#include "onnx/error_text.h"
#include "onnx/read/model_reader.h"
#include "onnx/read/toposort.h"

namespace invar::onnx {
namespace {

using ::onnx::AttributeProto;

constexpr int kMaxDepth = 24;  // of nested graphs; protobuf's own limit is 33

const char* kind_name(const AttributeProto& a) {
  switch (a.type()) {
    case AttributeProto::GRAPHS: return "graphs";
    case AttributeProto::TENSORS: return "tensors";
    case AttributeProto::SPARSE_TENSOR: return "sparse tensor";
    case AttributeProto::SPARSE_TENSORS: return "sparse tensors";
    case AttributeProto::TYPE_PROTO: return "type";
    case AttributeProto::TYPE_PROTOS: return "types";
    default: return "unknown";
  }
}

bool has_attribute(const Node& node, const std::string& attribute) {
  for (const Body& body : node.bodies)
    if (body.attribute == attribute) return true;
  return node.attributes.contains(attribute) || node.other_attributes.contains(attribute);
}

}  // namespace

std::string GraphReader::name_of_use(const CallFrame& frame, const std::string& name) {
  if (name.empty()) return name;
  auto it = frame.names.find(name);
  return it == frame.names.end() ? frame.prefix + name : it->second;
}

Result<std::string> GraphReader::name_of_definition(const CallFrame& frame, const std::string& name) {
  if (frame.inputs.contains(name))
    return bad_input(path_ + ": function " + quote(frame.function->proto->name()) + " defines " +
                     quote(name) + ", which is already defined: it is an input of it");
  return name_of_use(frame, name);
}

// Within a graph its inputs hide values around it that have their names, as onnxruntime reads it:
// they get names of their own.
CallFrame GraphReader::shadowed(const ::onnx::GraphProto& graph, const CallFrame& frame) {
  CallFrame inner = frame;
  for (const auto& input : graph.input()) {
    const std::string name = name_of_use(frame, input.name());
    for (const std::set<std::string>& defined : defined_around_)
      if (defined.contains(name) && !frame.inputs.contains(input.name()))
        inner.names[input.name()] = name + "::" + std::to_string(shadowing_++);
  }
  return inner;
}

Status GraphReader::read_content(const AttributeProto& a, const std::string& name, const CallFrame& frame,
                                 Node& node, const std::string& label) {
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
    case AttributeProto::GRAPH: {
      if (depth_ == kMaxDepth)
        return not_covered(label + " lies in more than " + std::to_string(kMaxDepth) + " graphs");
      ++depth_;
      Body body{name, {}};
      const Status status = read_graph(a.g(), shadowed(a.g(), frame), body.graph);
      --depth_;
      if (status) node.bodies.push_back(std::move(body));
      return status;
    }
    case AttributeProto::UNDEFINED: return bad_input(label + " has no type");
    default: node.other_attributes[name] = kind_name(a); return {};
  }
  node.attributes.emplace(name, std::move(value));
  return {};
}

// Resolves a reference to a parameter of the function: the call's argument, else the default, else
// absent.
Status GraphReader::read_reference(const AttributeProto& a, const CallFrame& frame, Node& node,
                                   const std::string& label) {
  if (!frame.function) return bad_input(label + " refers to a function's attribute outside a function");
  if (!frame.function->attributes.contains(a.ref_attr_name()))
    return bad_input(label + " refers to " + quote(a.ref_attr_name()) +
                     ", which is no attribute of function " + quote(frame.function->proto->name()));
  if (auto argument = frame.arguments.find(a.ref_attr_name()); argument != frame.arguments.end()) {
    const AttributeProto& outer = *argument->second;
    INVAR_CHECK_OK(charge_inlining(outer.ByteSizeLong()));
    if (outer.ref_attr_name().empty()) return read_content(outer, a.name(), *frame.caller, node, label);
    AttributeProto next = outer;
    next.set_name(a.name());
    return read_reference(next, *frame.caller, node, label);
  }
  auto standard = frame.function->defaults.find(a.ref_attr_name());
  if (standard == frame.function->defaults.end()) return {};
  INVAR_CHECK_OK(charge_inlining(standard->second.ByteSizeLong()));
  return read_content(standard->second, a.name(), frame, node, label);
}

Status GraphReader::read_attribute(const AttributeProto& a, const CallFrame& frame, Node& node,
                                   const std::string& where) {
  const std::string label = where + ": attribute " + quote(a.name());
  if (a.name().empty()) return bad_input(where + ": an attribute has no name");
  if (has_attribute(node, a.name())) return bad_input(label + " is given twice");
  if (!a.ref_attr_name().empty()) return read_reference(a, frame, node, label);
  return read_content(a, a.name(), frame, node, label);
}

Result<Node> GraphReader::read_node(const ::onnx::NodeProto& proto, const CallFrame& frame, size_t index) {
  Node node;
  node.name = proto.name().empty() ? "" : frame.prefix + proto.name();
  node.op_type = proto.op_type();
  node.domain = proto.domain() == "ai.onnx" ? "" : proto.domain();
  for (const std::string& name : proto.input()) node.inputs.push_back(name_of_use(frame, name));
  for (const std::string& name : proto.output()) {
    INVAR_TRY(node.outputs.emplace_back(), name_of_definition(frame, name));
  }
  const std::string where = path_ + ": " + node_label(node, index);
  if (node.op_type.empty()) return bad_input(where + " has no operator");
  // A node of another domain without an opset stays: the compiler reports it with all other
  // unsupported nodes.
  auto opset = frame.opsets->find(node.domain);
  if (node.domain.empty() && opset == frame.opsets->end())
    return bad_input(where + ": the " + (frame.function ? "function" : "model") +
                     " imports no opset of the default domain");
  if (frame.function && opset != frame.opsets->end()) node.opset = opset->second;
  for (const auto& a : proto.attribute()) INVAR_CHECK_OK(read_attribute(a, frame, node, where));
  return node;
}

Status GraphReader::read_nodes(const Repeated<::onnx::NodeProto>& protos, const CallFrame& frame,
                               Graph& graph) {
  for (const auto& proto : protos) {
    if (frame.function) {
      INVAR_CHECK_OK(charge_inlining(proto.ByteSizeLong()));
    }
    if (const Function* function = function_of(proto)) {
      const Node label{frame.prefix + proto.name(), proto.op_type(), proto.domain(), {}, {}, {}, {}};
      const std::string where = path_ + ": " + node_label(label, graph.nodes.size());
      INVAR_CHECK_OK(inline_call(proto, *function, frame, where, graph));
      continue;
    }
    INVAR_TRY(Node node, read_node(proto, frame, graph.nodes.size()));
    graph.nodes.push_back(std::move(node));
  }
  return {};
}

}  // namespace invar::onnx
