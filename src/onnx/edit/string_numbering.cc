// Numbers the strings of a graph: values that are moved, compared and looked up alone.
#include <algorithm>

#include "onnx/strings.h"
#include "onnx/tensor.h"

namespace invar::onnx {
namespace {

constexpr char kMl[] = "ai.onnx.ml";
// The label of a key that an encoder does not know, where the model gives none.
constexpr char kUnused[] = "_Unused";

// Operators of the default domain that only move elements, and the operand from which on they do.
const std::map<std::string, size_t>& movers() {
  static const std::map<std::string, size_t> all = {
      {"Concat", 0},   {"Expand", 0},   {"Flatten", 0},   {"Gather", 0},    {"GatherElements", 0},
      {"GatherND", 0}, {"Identity", 0}, {"Reshape", 0},   {"Slice", 0},     {"Split", 0},
      {"Squeeze", 0},  {"Tile", 0},     {"Transpose", 0}, {"Unsqueeze", 0}, {"Where", 1}};
  return all;
}

const std::vector<std::string>* strings_in(const Node& node, const char* name) {
  const auto at = node.attributes.find(name);
  return at == node.attributes.end() ? nullptr : std::get_if<std::vector<std::string>>(&at->second);
}
const TensorRef* string_tensor(const Node& node, const std::string& name) {
  const auto at = node.attributes.find(name);
  const auto* t = at == node.attributes.end() ? nullptr : std::get_if<TensorRef>(&at->second);
  return t && t->data_type == kString ? t : nullptr;
}
std::string string_in(const Node& node, const char* name) {
  const auto at = node.attributes.find(name);
  const auto* s = at == node.attributes.end() ? nullptr : std::get_if<std::string>(&at->second);
  return s ? *s : kUnused;
}

bool is_classifier(const Node& node) {
  return node.domain == kMl && node.op_type.ends_with("Classifier");
}
bool is_encoder(const Node& node, const char* op) {
  return node.domain == kMl && node.op_type == op;
}
bool has_side(const Node& node, const std::string& side) {
  return strings_in(node, (side + "_strings").c_str()) || string_tensor(node, side + "_tensor");
}

class StringNumberer {
 public:
  explicit StringNumberer(const Graph& graph) : graph_(graph) {}
  Result<std::optional<NumberedGraph>> run();

 private:
  void find_strings(const Node&);
  void collect(const TensorRef& t) {
    for (std::string& s : strings_of(t)) known_.insert(std::move(s));
  }
  void collect(const std::vector<std::string>* list) {
    if (list) known_.insert(list->begin(), list->end());
  }
  bool reads_strings(const Node& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](const std::string& in) { return values_.contains(in); });
  }
  bool holds_string_tensors(const Graph&) const;
  int64_t number(const std::string& s) const { return numbers_.at(s); }
  std::vector<int64_t> numbers(const std::vector<std::string>& list) const {
    std::vector<int64_t> all;
    for (const std::string& s : list) all.push_back(number(s));
    return all;
  }
  TensorRef numbered(const TensorRef&) const;
  Node numbered(const Node&) const;
  void rename(Node&, const char* from, const char* to) const;

  const Graph& graph_;
  std::set<std::string> values_;  // names of values that are strings
  std::set<std::string> known_;
  std::map<std::string, int64_t> numbers_;
  std::string refused_;
};

// What the node makes of strings: whether its results are some, and which it knows.
void StringNumberer::find_strings(const Node& node) {
  const bool reads = reads_strings(node);
  const auto gives = [&] {
    if (!node.outputs.empty() && !node.outputs[0].empty()) values_.insert(node.outputs[0]);
  };
  if (is_classifier(node) && strings_in(node, "classlabels_strings")) {
    if (reads) refused_ += "\n" + node.op_type;
    collect(strings_in(node, "classlabels_strings"));
    return gives();
  }
  if (is_encoder(node, "LabelEncoder") && (has_side(node, "keys") || has_side(node, "values"))) {
    for (const char* side : {"keys", "values"}) {
      collect(strings_in(node, (std::string(side) + "_strings").c_str()));
      if (const TensorRef* t = string_tensor(node, std::string(side) + "_tensor")) collect(*t);
    }
    if (!has_side(node, "values")) return;
    known_.insert(string_in(node, "default_string"));
    if (const TensorRef* t = string_tensor(node, "default_tensor")) collect(*t);
    return gives();
  }
  if (is_encoder(node, "CategoryMapper")) {
    collect(strings_in(node, "cats_strings"));
    known_.insert(string_in(node, "default_string"));
    return reads ? void() : gives();
  }
  if (is_encoder(node, "OneHotEncoder")) return collect(strings_in(node, "cats_strings"));
  if (std::optional<TensorRef> t = constant_of(node); t && t->data_type == kString) {
    collect(*t);
    return gives();
  }
  const bool standard = node.domain.empty();
  const auto to = node.attributes.find("to");
  const bool to_string = standard && node.op_type == "Cast" && to != node.attributes.end() &&
                         std::get_if<int64_t>(&to->second) && std::get<int64_t>(to->second) == kString;
  if (!reads && !to_string) return;
  if (to_string && reads) return gives();
  if (is_encoder(node, "ArrayFeatureExtractor")) return gives();
  if (standard && (node.op_type == "Equal" || node.op_type == "Shape" || node.op_type == "Size")) return;
  const auto mover = movers().find(node.op_type);
  if (!standard || mover == movers().end() || !node.bodies.empty()) {
    refused_ += (refused_.empty() ? "" : ", ") + node.op_type;
    return;
  }
  for (const std::string& out : node.outputs)
    if (!out.empty()) values_.insert(out);
}

bool StringNumberer::holds_string_tensors(const Graph& graph) const {
  const auto is = [](const TensorRef& t) { return t.data_type == kString; };
  if (std::any_of(graph.initializers.begin(), graph.initializers.end(), is)) return true;
  for (const Node& node : graph.nodes) {
    if (const std::optional<TensorRef> t = constant_of(node); t && is(*t)) return true;
    for (const Body& body : node.bodies)
      if (holds_string_tensors(body.graph)) return true;
  }
  return false;
}

TensorRef StringNumberer::numbered(const TensorRef& t) const {
  TensorRef out = t;
  out.data_type = kInt64;
  out.inline_data.clear();
  for (const std::string& s : strings_of(t)) {
    const auto n = static_cast<uint64_t>(number(s));
    for (int i = 0; i < 8; ++i) out.inline_data += static_cast<char>(n >> (8 * i) & 0xff);
  }
  return out;
}

void StringNumberer::rename(Node& node, const char* from, const char* to) const {
  const std::vector<std::string>* list = strings_in(node, from);
  if (!list) return;
  node.attributes[to] = numbers(*list);
  node.attributes.erase(from);
}

Node StringNumberer::numbered(const Node& given) const {
  Node node = given;
  if (is_classifier(node)) {
    rename(node, "classlabels_strings",
           node.op_type == "TreeEnsembleClassifier" ? "classlabels_int64s" : "classlabels_ints");
  } else if (is_encoder(node, "OneHotEncoder")) {
    rename(node, "cats_strings", "cats_int64s");
  } else if (is_encoder(node, "LabelEncoder")) {
    const bool values = has_side(node, "values");
    rename(node, "keys_strings", "keys_int64s"), rename(node, "values_strings", "values_int64s");
    for (const char* name : {"keys_tensor", "values_tensor", "default_tensor"})
      if (const TensorRef* t = string_tensor(given, name)) node.attributes[name] = numbered(*t);
    if (values) node.attributes["default_int64"] = number(string_in(given, "default_string"));
    node.attributes.erase("default_string");
  } else if (is_encoder(node, "CategoryMapper")) {
    const bool from_strings = values_.contains(node.inputs.empty() ? "" : node.inputs[0]);
    rename(node, "cats_strings", from_strings ? "keys_int64s" : "values_int64s");
    if (const auto ints = node.attributes.find("cats_int64s"); ints != node.attributes.end()) {
      node.attributes[from_strings ? "values_int64s" : "keys_int64s"] = ints->second;
      node.attributes.erase("cats_int64s");
    }
    if (!from_strings) node.attributes["default_int64"] = number(string_in(given, "default_string"));
    node.attributes.erase("default_string");
    node.op_type = "LabelEncoder", node.opset = 2;
  } else if (const auto t = constant_of(node); t && t->data_type == kString) {
    node.attributes = {{"value", numbered(*t)}};
  } else if (node.op_type == "Cast" && reads_strings(given)) {
    node.op_type = "Identity";
    node.attributes.clear();
  }
  return node;
}

Result<std::optional<NumberedGraph>> StringNumberer::run() {
  for (const ValueInfo& v : graph_.inputs)
    if (v.data_type == kString) values_.insert(v.name);
  for (const TensorRef& t : graph_.initializers)
    if (t.data_type == kString) values_.insert(t.name), collect(t);
  for (const Node& node : graph_.nodes) find_strings(node);
  if (refused_.empty())
    for (const Node& node : graph_.nodes)
      for (const Body& body : node.bodies)
        if (holds_string_tensors(body.graph)) refused_ = node.op_type;
  if (values_.empty() && known_.empty()) return std::optional<NumberedGraph>();
  if (!refused_.empty()) {
    if (!holds_string_tensors(graph_)) return std::optional<NumberedGraph>();
    return not_covered((graph_.name.empty() ? "model" : graph_.name) +
                       ": strings are not covered where these operators read them: " + refused_);
  }
  NumberedGraph out{graph_, {{known_.begin(), known_.end()}, {}, {}}};
  for (const std::string& s : out.table.strings) numbers_.emplace(s, static_cast<int64_t>(numbers_.size()));
  for (TensorRef& t : out.graph.initializers)
    if (t.data_type == kString) t = numbered(t);
  for (Node& node : out.graph.nodes) node = numbered(node);
  for (auto* list : {&out.graph.inputs, &out.graph.outputs, &out.graph.values})
    for (ValueInfo& v : *list) {
      if (!values_.contains(v.name)) continue;
      v.data_type = kInt64;
      if (list == &out.graph.inputs) out.table.inputs.insert(v.name);
      if (list == &out.graph.outputs) out.table.outputs.insert(v.name);
    }
  return std::optional(std::move(out));
}

}  // namespace

Result<std::optional<NumberedGraph>> number_strings(const Graph& graph) {
  return StringNumberer(graph).run();
}

std::map<std::string, std::vector<std::string>> column_names(const Graph& graph) {
  std::map<std::string, std::vector<std::string>> all;
  for (const Node& node : graph.nodes) {
    if (node.op_type != "ZipMap" || node.domain != kMl || node.outputs.empty()) continue;
    std::vector<std::string>& names = all[node.outputs[0]];
    if (const auto* strings = strings_in(node, "classlabels_strings")) names = *strings;
    const auto ints = node.attributes.find("classlabels_int64s");
    if (ints == node.attributes.end() || !std::get_if<std::vector<int64_t>>(&ints->second)) continue;
    for (int64_t label : std::get<std::vector<int64_t>>(ints->second)) names.push_back(std::to_string(label));
  }
  return all;
}

}  // namespace invar::onnx
