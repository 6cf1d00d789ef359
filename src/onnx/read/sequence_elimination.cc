#include "onnx/read/sequence_elimination.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "onnx/tensor.h"

namespace invar::onnx {
namespace {

// What a model may make of lists; nodes that would make more stay.
constexpr size_t kMostElements = 1 << 17, kMostNodes = 1 << 17, kMostBytes = size_t{256} << 20;
constexpr size_t kShownOfName = 64;  // in names that are made of it

using List = std::vector<std::string>;

class Sequences {
 public:
  explicit Sequences(Graph& graph) : graph_(&graph) { name(graph); }
  // What a graph within a node defines is forgotten behind it: others may have its names for something else.
  void within(Graph& graph) {
    Graph* const around = std::exchange(graph_, &graph);
    const size_t known = noted_.size();
    for (const TensorRef& t : graph.initializers) constant(t.name, t);
    std::vector<Node> nodes = std::exchange(graph.nodes, {});
    for (Node& node : nodes) add(std::move(node));
    for (; noted_.size() > known; noted_.pop_back())
      lists_.erase(noted_.back()), cuts_.erase(noted_.back()), constants_.erase(noted_.back()),
          scalars_.erase(noted_.back());
    graph_ = around;
  }

 private:
  // A tensor that is cut along an axis into parts of `size` elements, or of one that have no such axis.
  struct Cuts {
    std::string tensor;
    int64_t axis = 0, size = 1;
    bool keeps = true;
  };

  void name(const Graph&);
  void constant(const std::string& name, const TensorRef&);
  void add(Node);
  bool taken_apart(const Node&);
  bool part(const Node&, const Cuts&);
  void split(const Node&);
  bool joined(const Node&, const List&);
  void mapped(const Node&);
  bool looped(const Node&);
  List copied(const Graph&, std::map<std::string, std::string> names);
  std::optional<int64_t> number(const std::string& name) const;
  // Before as many names are copied.
  bool pays(size_t names) { return (elements_ += names) <= kMostElements; }
  bool pays_bytes(size_t times, size_t bytes) {
    if (bytes && times > kMostBytes / bytes) return false;
    return (bytes_ += times * bytes) <= kMostBytes;
  }
  void keep(const std::string& name, List list) {
    lists_[name] = std::move(list);
    noted_.push_back(name);
  }
  const List* list(const Node& node, size_t i = 0) const {
    const auto it = node.inputs.size() > i ? lists_.find(node.inputs[i]) : lists_.end();
    return it == lists_.end() ? nullptr : &it->second;
  }
  std::string fresh(const std::string& name) {
    std::string made;
    do made = name.substr(0, kShownOfName) + "#" + std::to_string(++made_);
    while (!taken_.insert(made).second);
    return made;
  }
  // A node in the place of `from`.
  Node& put(const Node& from, const char* op_type, int64_t opset, List inputs, List outputs) {
    Node& node = graph_->nodes.emplace_back();
    node.name = from.name, node.op_type = op_type, node.opset = opset;
    node.inputs = std::move(inputs), node.outputs = std::move(outputs);
    return node;
  }

  Graph* graph_;
  std::map<std::string, List> lists_;
  std::map<std::string, Cuts> cuts_;
  std::map<std::string, std::vector<int64_t>>
      constants_;  // short lists of integers and truth values; numbers have one
  std::set<std::string> scalars_, taken_;
  List noted_;  // in these, in the order in which they came
  size_t elements_ = 0, nodes_ = 0, bytes_ = 0, made_ = 0;
};

int64_t attribute(const Node& node, const char* name, int64_t fallback) {
  const auto it = node.attributes.find(name);
  const auto* value = it == node.attributes.end() ? nullptr : std::get_if<int64_t>(&it->second);
  return value ? *value : fallback;
}

std::optional<std::vector<int64_t>> integers(const TensorRef& t) {
  const size_t width = t.data_type == kInt64 ? 8 : t.data_type == kInt32 ? 4 : t.data_type == kBool ? 1 : 0;
  if (!width || !t.file.empty() || t.shape.size() > 1 || t.inline_data.size() > kMostElements)
    return std::nullopt;
  std::vector<int64_t> list;
  for (size_t at = 0; at + width <= t.inline_data.size(); at += width) {
    uint64_t bits = 0;
    for (size_t b = width; b-- > 0;) bits = bits << 8 | static_cast<uint8_t>(t.inline_data[at + b]);
    list.push_back(width == 8   ? static_cast<int64_t>(bits)
                   : width == 4 ? static_cast<int32_t>(bits)
                                : static_cast<int64_t>(bits != 0));
  }
  return list;
}

// All names of the graph and of those within its nodes.
void Sequences::name(const Graph& graph) {
  for (const ValueInfo& v : graph.inputs) taken_.insert(v.name);
  for (const TensorRef& t : graph.initializers) taken_.insert(t.name);
  for (const Node& node : graph.nodes) {
    taken_.insert(node.outputs.begin(), node.outputs.end());
    for (const Body& body : node.bodies) name(body.graph);
  }
}

void Sequences::constant(const std::string& name, const TensorRef& t) {
  std::optional<std::vector<int64_t>> list = integers(t);
  if (!list) return;
  constants_[name] = *std::move(list);
  noted_.push_back(name);
  if (t.shape.empty()) scalars_.insert(name);
}

std::optional<int64_t> Sequences::number(const std::string& name) const {
  const auto it = constants_.find(name);
  return it == constants_.end() || it->second.size() != 1 ? std::nullopt : std::optional(it->second[0]);
}

void Sequences::add(Node node) {
  const bool standard = node.domain.empty() && !node.outputs.empty();
  if (standard && node.op_type == "Constant") {
    if (const auto it = node.attributes.find("value"); it != node.attributes.end())
      if (const auto* t = std::get_if<TensorRef>(&it->second)) constant(node.outputs[0], *t);
    if (node.attributes.contains("value_int")) {
      constants_[node.outputs[0]] = {attribute(node, "value_int", 0)};
      scalars_.insert(node.outputs[0]), noted_.push_back(node.outputs[0]);
    }
  }
  if (standard && taken_apart(node)) return;
  for (Body& body : node.bodies) within(body.graph);
  graph_->nodes.push_back(std::move(node));
}

// True: nodes in its place were put. A node that makes a list stays for what cannot be taken apart: that nothing reads does no harm.
bool Sequences::taken_apart(const Node& node) {
  const std::string &op = node.op_type, &out = node.outputs[0];
  auto place = [&](size_t operand, size_t length, int64_t absent) -> std::optional<size_t> {
    std::optional<int64_t> at = absent;
    if (node.inputs.size() > operand && !node.inputs[operand].empty()) at = number(node.inputs[operand]);
    if (at && *at < 0) *at += static_cast<int64_t>(length);
    if (!at || *at < 0 || *at > static_cast<int64_t>(length)) return std::nullopt;
    return static_cast<size_t>(*at);
  };
  const List* from = list(node);
  if (op == "SequenceConstruct") {
    if (pays(node.inputs.size())) keep(out, node.inputs);
  } else if (op == "SequenceEmpty") {
    keep(out, {});
  } else if (op == "Identity" && node.inputs.size() == 1 && constants_.contains(node.inputs[0])) {
    constants_[out] = constants_.at(node.inputs[0]), noted_.push_back(out);
    if (scalars_.contains(node.inputs[0])) scalars_.insert(out);
  } else if (op == "Identity" && from) {
    if (pays(from->size())) keep(out, *from);
  } else if (op == "SequenceInsert" && from && node.inputs.size() > 1) {
    const std::optional<size_t> at = place(2, from->size(), static_cast<int64_t>(from->size()));
    if (!at || !pays(from->size() + 1)) return false;
    List longer = *from;
    longer.insert(longer.begin() + static_cast<ptrdiff_t>(*at), node.inputs[1]);
    keep(out, std::move(longer));
  } else if (op == "SequenceErase" && from) {
    const std::optional<size_t> at = place(1, from->size(), -1);
    if (!at || *at >= from->size() || !pays(from->size())) return false;
    List shorter = *from;
    shorter.erase(shorter.begin() + static_cast<ptrdiff_t>(*at));
    keep(out, std::move(shorter));
  } else if (op == "SequenceAt" && from && node.inputs.size() == 2) {
    const std::optional<size_t> at = place(1, from->size(), 0);
    if (!at || *at >= from->size()) return false;
    put(node, "Identity", 1, {(*from)[*at]}, {out});
    return true;
  } else if (op == "SequenceAt" && node.inputs.size() == 2 && cuts_.contains(node.inputs[0])) {
    return part(node, cuts_.at(node.inputs[0]));
  } else if (op == "SequenceLength" && from) {
    put(node, "Constant", 13, {}, {out}).attributes["value_int"] = static_cast<int64_t>(from->size());
    return true;
  } else if (op == "ConcatFromSequence" && from) {
    return joined(node, *from);
  } else if (op == "SequenceMap" && from) {
    mapped(node);
  } else if (op == "Loop") {
    return looped(node);
  } else if (op == "SplitToSequence" && !node.inputs.empty()) {
    split(node);
  }
  return false;
}

void Sequences::split(const Node& node) {
  const std::string& out = node.outputs[0];
  const int64_t axis = attribute(node, "axis", 0);
  const bool absent = node.inputs.size() < 2 || node.inputs[1].empty();
  if (!absent && !constants_.contains(node.inputs[1])) return;
  if (!absent && !scalars_.contains(node.inputs[1])) {
    const std::vector<int64_t> sizes = constants_.at(node.inputs[1]);
    if (sizes.empty() || !pays(sizes.size())) return;
    List parts;
    for (size_t i = 0; i < sizes.size(); ++i) parts.push_back(fresh(out));
    keep(out, parts);
    Node& made = put(node, "Split", 2, {node.inputs[0]}, parts);
    made.attributes["axis"] = axis, made.attributes["split"] = sizes;
    return;
  }
  Cuts cuts{node.inputs[0], axis, absent ? 1 : *number(node.inputs[1]),
            !absent || attribute(node, "keepdims", 1) != 0};
  if (cuts.size > 0) cuts_[out] = cuts, noted_.push_back(out);
}

bool Sequences::part(const Node& node, const Cuts& cuts) {
  const std::optional<int64_t> at = number(node.inputs[1]);
  int64_t begin = 0, end = 0;
  if (!at || *at < 0 || __builtin_mul_overflow(*at, cuts.size, &begin) ||
      __builtin_add_overflow(begin, cuts.size, &end))
    return false;
  if (!cuts.keeps) {
    if (!scalars_.contains(node.inputs[1])) return false;
    put(node, "Gather", 1, {cuts.tensor, node.inputs[1]}, {node.outputs[0]}).attributes["axis"] = cuts.axis;
    return true;
  }
  // Its first element, which must be there, and what else there is of it.
  const auto place = fresh(node.outputs[0]);
  put(node, "Constant", 13, {}, {place}).attributes["value_ints"] = std::vector{begin};
  const List halves =
      cuts.size == 1 ? List{node.outputs[0]} : List{fresh(node.outputs[0]), fresh(node.outputs[0])};
  put(node, "Gather", 1, {cuts.tensor, place}, {halves[0]}).attributes["axis"] = cuts.axis;
  if (cuts.size == 1) return true;
  Node& others = put(node, "Slice", 1, {cuts.tensor}, {halves[1]});
  others.attributes["axes"] = std::vector{cuts.axis};
  others.attributes["starts"] = std::vector{begin + 1};
  others.attributes["ends"] = std::vector{end};
  put(node, "Concat", 11, halves, {node.outputs[0]}).attributes["axis"] = cuts.axis;
  return true;
}

bool Sequences::joined(const Node& node, const List& list) {
  const int64_t axis = attribute(node, "axis", 0);
  if (list.empty() || !pays(list.size())) return false;
  List parts = list;
  if (attribute(node, "new_axis", 0) != 0)
    for (std::string& part : parts) {
      Node& made = put(node, "Unsqueeze", 11, {part}, {fresh(part)});
      made.attributes["axes"] = std::vector{axis};
      part = made.outputs[0];
    }
  put(node, "Concat", 11, parts, {node.outputs[0]}).attributes["axis"] = axis;
  return true;
}

void rename(List& names, const std::map<std::string, std::string>& to) {
  for (std::string& name : names)
    if (const auto it = to.find(name); it != to.end()) name = it->second;
}
void rename(Graph& graph, const std::map<std::string, std::string>& to) {
  for (ValueInfo& v : graph.outputs)
    if (const auto it = to.find(v.name); it != to.end()) v.name = it->second;
  for (Node& node : graph.nodes) {
    rename(node.inputs, to);
    for (Body& body : node.bodies) rename(body.graph, to);
  }
}

size_t size_of(const Graph& graph) {
  size_t size = graph.initializers.size() + graph.nodes.size();
  for (const Node& node : graph.nodes)
    for (const Body& body : node.bodies) size += size_of(body.graph);
  return size;
}

// Of constants that a copy holds.
size_t bytes_of(const Graph& graph) {
  size_t bytes = 0;
  for (const TensorRef& t : graph.initializers) bytes += t.inline_data.size();
  for (const Node& node : graph.nodes) {
    for (const auto& [name, value] : node.attributes)
      if (const auto* t = std::get_if<TensorRef>(&value)) bytes += t->inline_data.size();
    for (const Body& body : node.bodies) bytes += bytes_of(body.graph);
  }
  return bytes;
}

bool reads(const Graph& graph, const std::string& name) {
  for (const ValueInfo& v : graph.outputs)
    if (v.name == name) return true;
  for (const Node& node : graph.nodes) {
    if (std::count(node.inputs.begin(), node.inputs.end(), name)) return true;
    for (const Body& body : node.bodies)
      if (reads(body.graph, name)) return true;
  }
  return false;
}

// Nodes of a graph of these inputs, with names of their own; the names of its outputs.
List Sequences::copied(const Graph& body, std::map<std::string, std::string> names) {
  Graph copy = body;
  for (TensorRef& t : copy.initializers) {
    t.name = names[t.name] = fresh(t.name);
    constant(t.name, t);
    graph_->initializers.push_back(t);
  }
  for (Node& inner : copy.nodes)
    for (std::string& output : inner.outputs)
      if (!output.empty()) {
        const std::string made = fresh(output);
        names[output] = made, output = made;
      }
  rename(copy, names);
  for (Node& inner : copy.nodes) add(std::move(inner));
  List made;
  for (const ValueInfo& v : copy.outputs) made.push_back(v.name);
  return made;
}

// A loop that carries lists, of as many steps as constants say: step by step.
bool Sequences::looped(const Node& node) {
  if (node.bodies.size() != 1 || node.inputs.size() < 3) return false;
  const Graph& body = node.bodies[0].graph;
  const size_t carried = node.inputs.size() - 2;
  const std::optional<int64_t> trips = number(node.inputs[0]);
  auto goes_on = [&](const std::string& name) { return number(name) == 1; };
  bool lists = false;
  for (size_t i = 0; i < carried; ++i) lists |= list(node, 2 + i) != nullptr;
  if (!lists || !trips || *trips < 0 || !(node.inputs[1].empty() || goes_on(node.inputs[1]))) return false;
  if (body.inputs.size() != 2 + carried || body.outputs.size() != 1 + carried ||
      node.outputs.size() > carried)
    return false;
  const size_t size = size_of(body) + carried + 2;
  if (static_cast<uint64_t>(*trips) > kMostNodes / size ||
      (nodes_ += static_cast<size_t>(*trips) * size) > kMostNodes)
    return false;
  if (!pays_bytes(static_cast<size_t>(*trips), bytes_of(body))) return false;
  if (node.inputs[1].empty() && reads(body, body.inputs[1].name)) return false;
  List values(node.inputs.begin() + 2, node.inputs.end());
  for (int64_t step = 0; step < *trips; ++step) {
    const std::string at = fresh(body.inputs[0].name);
    Node count;
    count.op_type = "Constant", count.opset = 13, count.outputs = {at}, count.attributes["value_int"] = step;
    add(std::move(count));
    std::map<std::string, std::string> names = {{body.inputs[0].name, at},
                                                {body.inputs[1].name, node.inputs[1]}};
    for (size_t i = 0; i < carried; ++i) names[body.inputs[2 + i].name] = values[i];
    List made = copied(body, std::move(names));
    if (!goes_on(made[0])) return false;
    values.assign(made.begin() + 1, made.end());
  }
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (list(node, 2 + i) && (!lists_.contains(values[i]) || !pays(lists_[values[i]].size()))) return false;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (list(node, 2 + i))
      keep(node.outputs[i], List(lists_[values[i]]));
    else
      put(node, "Identity", 1, {values[i]}, {node.outputs[i]});
  }
  return true;
}

// The graph once for each element, with names of its own.
void Sequences::mapped(const Node& node) {
  const List* first = list(node);
  if (node.bodies.size() != 1) return;
  const Graph& body = node.bodies[0].graph;
  nodes_ += first->size() * (size_of(body) + node.outputs.size());
  if (nodes_ > kMostNodes || body.inputs.size() != node.inputs.size() ||
      body.outputs.size() < node.outputs.size())
    return;
  for (size_t i = 1; i < node.inputs.size(); ++i)
    if (const List* more = list(node, i);
        cuts_.contains(node.inputs[i]) || (more && more->size() != first->size()))
      return;
  const size_t steps = first->size();
  if (!pays_bytes(steps, bytes_of(body))) return;
  std::vector<List> results(node.outputs.size());
  for (size_t step = 0; step < steps; ++step) {
    std::map<std::string, std::string> names;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const List* elements = list(node, i);
      names[body.inputs[i].name] = elements ? (*elements)[step] : node.inputs[i];
    }
    const List made = copied(body, std::move(names));
    for (size_t r = 0; r < results.size(); ++r) results[r].push_back(made[r]);
  }
  for (size_t r = 0; r < results.size(); ++r)
    if (!node.outputs[r].empty()) keep(node.outputs[r], results[r]);
}

}  // namespace

void take_apart_sequences(Graph& graph) {
  const bool any = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return node.op_type.find("Sequence") != std::string::npos || !node.bodies.empty();
  });
  if (any) Sequences(graph).within(graph);
}

}  // namespace invar::onnx
