// The model's own functions: calls become their bodies.
#include <google/protobuf/io/coded_stream.h>

#include "onnx/read/model_reader.h"
#include "onnx/error_text.h"

namespace invar::onnx {
namespace {

// What calls may add to a model; more is refused, since each function may call others many times.
constexpr size_t kMostNodes = 1 << 17, kMostBytes = 256 << 20;
constexpr int kMostCalls = 64;       // within one another
constexpr size_t kShownOfName = 32;  // of a function, in the names of values

// Fields that the installed onnx.proto may not know yet.
constexpr uint32_t kDefaults = 11, kOverload = 13, kNodeOverload = 8;

std::vector<std::string> field(const google::protobuf::MessageLite& message, uint32_t number) {
  const std::string bytes = message.SerializeAsString();
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  std::vector<std::string> found;
  while (const uint32_t tag = in.ReadTag()) {
    uint64_t number64;
    uint32_t size = 4;
    std::string value;
    const bool sound = (tag & 7) == 0   ? in.ReadVarint64(&number64)
                       : (tag & 7) == 1 ? in.Skip(8)
                       : (tag & 7) == 5 ? in.Skip(4)
                                        : (tag & 7) == 2 && in.ReadVarint32(&size) &&
                                              in.ReadString(&value, static_cast<int>(size));
    if (!sound) break;
    if (tag >> 3 == number && (tag & 7) == 2) found.push_back(std::move(value));
  }
  return found;
}

std::string overload_of(const google::protobuf::MessageLite& message, uint32_t number) {
  const std::vector<std::string> found = field(message, number);
  return found.empty() ? "" : found.back();
}

std::string domain_of(const std::string& given) {
  return given == "ai.onnx" ? "" : given;
}

}  // namespace

Status GraphReader::read_functions(const ::onnx::ModelProto& model) {
  for (const auto& proto : model.functions()) {
    const std::string where = path_ + ": function " + quote(proto.name());
    Function f;
    f.proto = &proto;
    INVAR_TRY(f.opsets, read_opsets(proto.opset_import(), where));
    f.attributes.insert(proto.attribute().begin(), proto.attribute().end());
    for (const std::string& bytes : field(proto, kDefaults)) {
      ::onnx::AttributeProto a;
      if (!a.ParseFromString(bytes) || !a.ref_attr_name().empty() || !f.attributes.insert(a.name()).second)
        return bad_input(where + ": attribute " + quote(a.name()) + " is given twice or no value");
      f.defaults.emplace(a.name(), std::move(a));
    }
    function_names_.emplace(domain_of(proto.domain()), proto.name());
    const Key key(domain_of(proto.domain()), proto.name(), overload_of(proto, kOverload));
    if (!functions_.emplace(key, std::move(f)).second) return bad_input(where + " is defined twice");
  }
  return {};
}

const Function* GraphReader::function_of(const ::onnx::NodeProto& proto) const {
  const std::string domain = domain_of(proto.domain());
  if (!function_names_.contains({domain, proto.op_type()})) return nullptr;
  auto it = functions_.find({domain, proto.op_type(), overload_of(proto, kNodeOverload)});
  return it == functions_.end() ? nullptr : &it->second;
}

Status GraphReader::charge(size_t bytes) {
  made_bytes_ += bytes;
  if (++made_nodes_ > kMostNodes || made_bytes_ > kMostBytes)
    return not_covered(path_ + ": its functions make more than " + std::to_string(kMostNodes) + " nodes or " +
                       std::to_string(kMostBytes >> 20) + " MiB of their calls");
  return {};
}

Status GraphReader::inline_call(const ::onnx::NodeProto& proto, const Function& function, const Frame& frame,
                                const std::string& where, Graph& graph) {
  const ::onnx::FunctionProto& body = *function.proto;
  int depth = 0;
  for (const Frame* f = &frame; f->function; f = f->caller) {
    if (f->function == &function)
      return bad_input(where + ": function " + quote(body.name()) + " calls itself");
    if (++depth == kMostCalls)
      return not_covered(where + ": calls of functions lie in more than " + std::to_string(kMostCalls) +
                         " others");
  }
  if (proto.input_size() > body.input_size() || proto.output_size() > body.output_size())
    return bad_input(where + ": function " + quote(body.name()) + " has not as many inputs or outputs");
  INVAR_CHECK_OK(
      charge(proto.ByteSizeLong() + static_cast<size_t>(body.input_size() + body.output_size()) * 64));
  Frame callee{&function.opsets, &frame, &function};
  for (const auto& a : proto.attribute())
    if (!function.attributes.contains(a.name()) || !callee.given.emplace(a.name(), &a).second)
      return bad_input(where + ": attribute " + quote(a.name()) + " is given twice, or function " +
                       quote(body.name()) + " has none of this name");

  callee.prefix = body.name().substr(0, kShownOfName) + "#" + std::to_string(++calls_) + "/";
  for (int i = 0; i < body.input_size(); ++i) {
    const std::string& name = body.input(i);
    if (name.empty() || !callee.inputs.insert(name).second)
      return bad_input(where + ": function " + quote(body.name()) + " has an input twice or without a name");
    callee.names[name] = i < proto.input_size() ? used(frame, proto.input(i)) : "";
  }
  std::vector<Node> passed;  // outputs that are inputs
  for (int i = 0; i < body.output_size(); ++i) {
    const std::string& name = body.output(i);
    std::string outside;
    if (i < proto.output_size()) {
      INVAR_TRY(outside, defined(frame, proto.output(i)));
    }
    if (callee.inputs.contains(name)) {
      if (outside.empty()) continue;
      Node& node = passed.emplace_back();
      node.op_type = "Identity", node.opset = 1;
      node.inputs = {callee.names[name]}, node.outputs = {outside};
    } else if (!callee.names.emplace(name, outside.empty() ? callee.prefix + name : outside).second) {
      return bad_input(where + ": function " + quote(body.name()) + " has output " + quote(name) + " twice");
    }
  }
  INVAR_CHECK_OK(read_nodes(body.node(), callee, graph));
  graph.nodes.insert(graph.nodes.end(), passed.begin(), passed.end());
  return {};
}

}  // namespace invar::onnx
