// Inlines calls of model-local functions.
#include <google/protobuf/io/coded_stream.h>

#include "onnx/error_text.h"
#include "onnx/read/model_reader.h"

namespace invar::onnx {
namespace {

// Limits of inlining: nested calls multiply, so a small file can describe a huge model.
constexpr size_t kMaxInlinedNodes = 1 << 17, kMaxInlinedBytes = 256 << 20;
constexpr int kMaxCallDepth = 64;
constexpr size_t kMaxFunctionPrefix = 32;  // characters of a function's name in the names of its values

// Field numbers of newer ONNX versions, which the installed onnx.proto may lack.
constexpr uint32_t kFunctionDefaults = 11, kFunctionOverload = 13, kNodeOverload = 8;

// The contents of the length-delimited fields with this number.
std::vector<std::string> unknown_field(const google::protobuf::MessageLite& message, uint32_t number) {
  const std::string bytes = message.SerializeAsString();
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  std::vector<std::string> found;
  while (const uint32_t tag = in.ReadTag()) {
    uint64_t number64;
    uint32_t size = 4;
    std::string value;
    const bool ok = (tag & 7) == 0   ? in.ReadVarint64(&number64)
                    : (tag & 7) == 1 ? in.Skip(8)
                    : (tag & 7) == 5 ? in.Skip(4)
                                     : (tag & 7) == 2 && in.ReadVarint32(&size) &&
                                           in.ReadString(&value, static_cast<int>(size));
    if (!ok) break;
    if (tag >> 3 == number && (tag & 7) == 2) found.push_back(std::move(value));
  }
  return found;
}

std::string overload_of(const google::protobuf::MessageLite& message, uint32_t number) {
  const std::vector<std::string> found = unknown_field(message, number);
  return found.empty() ? "" : found.back();
}

std::string normalize_domain(const std::string& domain) {
  return domain == "ai.onnx" ? "" : domain;
}

}  // namespace

Status GraphReader::read_functions(const ::onnx::ModelProto& model) {
  for (const auto& proto : model.functions()) {
    const std::string where = path_ + ": function " + quote(proto.name());
    Function f;
    f.proto = &proto;
    INVAR_TRY(f.opsets, read_opsets(proto.opset_import(), where));
    f.attributes.insert(proto.attribute().begin(), proto.attribute().end());
    for (const std::string& bytes : unknown_field(proto, kFunctionDefaults)) {
      ::onnx::AttributeProto a;
      if (!a.ParseFromString(bytes) || !a.ref_attr_name().empty() || !f.attributes.insert(a.name()).second)
        return bad_input(where + ": attribute " + quote(a.name()) + " is given twice or no value");
      f.defaults.emplace(a.name(), std::move(a));
    }
    function_names_.emplace(normalize_domain(proto.domain()), proto.name());
    const Key key(normalize_domain(proto.domain()), proto.name(), overload_of(proto, kFunctionOverload));
    if (!functions_.emplace(key, std::move(f)).second) return bad_input(where + " is defined twice");
  }
  return {};
}

const Function* GraphReader::function_of(const ::onnx::NodeProto& proto) const {
  const std::string domain = normalize_domain(proto.domain());
  if (!function_names_.contains({domain, proto.op_type()})) return nullptr;
  auto it = functions_.find({domain, proto.op_type(), overload_of(proto, kNodeOverload)});
  return it == functions_.end() ? nullptr : &it->second;
}

Status GraphReader::charge_inlining(size_t bytes) {
  inlined_bytes_ += bytes;
  if (++inlined_nodes_ > kMaxInlinedNodes || inlined_bytes_ > kMaxInlinedBytes)
    return not_covered(path_ + ": its functions make more than " + std::to_string(kMaxInlinedNodes) +
                       " nodes or " + std::to_string(kMaxInlinedBytes >> 20) + " MiB of their calls");
  return {};
}

Status GraphReader::inline_call(const ::onnx::NodeProto& proto, const Function& function,
                                const CallFrame& frame, const std::string& where, Graph& graph) {
  const ::onnx::FunctionProto& body = *function.proto;
  int depth = 0;
  for (const CallFrame* f = &frame; f->function; f = f->caller) {
    if (f->function == &function)
      return bad_input(where + ": function " + quote(body.name()) + " calls itself");
    if (++depth == kMaxCallDepth)
      return not_covered(where + ": calls of functions lie in more than " + std::to_string(kMaxCallDepth) +
                         " others");
  }
  if (proto.input_size() > body.input_size() || proto.output_size() > body.output_size())
    return bad_input(where + ": function " + quote(body.name()) + " has not as many inputs or outputs");
  INVAR_CHECK_OK(charge_inlining(proto.ByteSizeLong() +
                                 static_cast<size_t>(body.input_size() + body.output_size()) * 64));
  CallFrame callee{&function.opsets, &frame, &function};
  for (const auto& a : proto.attribute())
    if (!function.attributes.contains(a.name()) || !callee.arguments.emplace(a.name(), &a).second)
      return bad_input(where + ": attribute " + quote(a.name()) + " is given twice, or function " +
                       quote(body.name()) + " has none of this name");

  callee.prefix = body.name().substr(0, kMaxFunctionPrefix) + "#" + std::to_string(++calls_) + "/";
  for (int i = 0; i < body.input_size(); ++i) {
    const std::string& name = body.input(i);
    if (name.empty() || !callee.inputs.insert(name).second)
      return bad_input(where + ": function " + quote(body.name()) + " has an input twice or without a name");
    callee.names[name] = i < proto.input_size() ? name_of_use(frame, proto.input(i)) : "";
  }
  std::vector<Node> forwards;  // identities, for outputs that are inputs
  for (int i = 0; i < body.output_size(); ++i) {
    const std::string& name = body.output(i);
    std::string outside;
    if (i < proto.output_size()) {
      INVAR_TRY(outside, name_of_definition(frame, proto.output(i)));
    }
    if (callee.inputs.contains(name)) {
      if (outside.empty()) continue;
      Node& node = forwards.emplace_back();
      node.op_type = "Identity", node.opset = 1;
      node.inputs = {callee.names[name]}, node.outputs = {outside};
    } else if (!callee.names.emplace(name, outside.empty() ? callee.prefix + name : outside).second) {
      return bad_input(where + ": function " + quote(body.name()) + " has output " + quote(name) + " twice");
    }
  }
  INVAR_CHECK_OK(read_nodes(body.node(), callee, graph));
  graph.nodes.insert(graph.nodes.end(), forwards.begin(), forwards.end());
  return {};
}

}  // namespace invar::onnx
