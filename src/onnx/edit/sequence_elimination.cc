// Tracks sequences of tensors symbolically, as lists of value names, and replaces the nodes that
// read them.
#include "onnx/rewrites.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "onnx/edit/graph_walks.h"
#include "onnx/tensor.h"

namespace invar::onnx {
namespace {

// Limits on what elimination may add to a model. Nodes beyond them stay as they are.
constexpr size_t kMaxElements = 1 << 17, kMaxNodes = 1 << 17, kMaxBytes = size_t{256} << 20;
constexpr size_t kMaxNamePrefix = 64;  // characters of a name that derived names keep

using Names = std::vector<std::string>;

class SequenceEliminator {
 public:
  explicit SequenceEliminator(Graph& graph) : graph_(&graph) {
    collect_names(graph);
    for (const ValueInfo& v : graph.inputs) {
      if (!v.has_shape) continue;
      std::vector<int64_t>& dims = dims_[v.name];
      for (const Dimension& d : v.shape) dims.push_back(d.value);
    }
  }
  // Rewrites a graph. Afterwards forgets the values that it defines, since sibling graphs may reuse
  // their names; what its outputs are, where they are lists, goes to `lists`.
  void run(Graph& graph, std::map<size_t, Names>* lists = nullptr) {
    Graph* const parent = std::exchange(graph_, &graph);
    const size_t known = defined_.size();
    for (const TensorRef& t : graph.initializers) define_constant(t.name, t);
    std::vector<Node> nodes = std::exchange(graph.nodes, {});
    for (Node& node : nodes) add(std::move(node));
    if (parent == &graph) give_elements();
    for (size_t i = 0; lists && i < graph.outputs.size(); ++i)
      if (const auto at = sequences_.find(graph.outputs[i].name); at != sequences_.end())
        (*lists)[i] = at->second;
    for (; defined_.size() > known; defined_.pop_back())
      sequences_.erase(defined_.back()), splits_.erase(defined_.back()), constants_.erase(defined_.back()),
          scalars_.erase(defined_.back());
    graph_ = parent;
  }

 private:
  // A tensor that is split along an axis into parts of `size` elements. Unless it keeps the axis,
  // parts have one element and lose the axis.
  struct EvenSplit {
    std::string tensor;
    int64_t axis = 0, size = 1;
    bool keeps_axis = true;
  };

  void collect_names(const Graph&);
  void define_constant(const std::string& name, const TensorRef&);
  void add(Node);
  bool eliminate(const Node&);
  bool eliminate_split_at(const Node&, const EvenSplit&);
  void define_split(const Node&);
  void define_parts(const Node&, const EvenSplit&);
  void give_elements();
  bool eliminate_concat(const Node&, const Names&);
  void expand_map(const Node&);
  bool take_branch(const Node&);
  void add_branches(Node);
  bool unroll_loop(const Node&);
  Names inline_body(const Graph&, std::map<std::string, std::string> names);
  std::optional<int64_t> scalar(const std::string& name) const;
  // Count work against the limits. False: over the limit.
  bool charge_elements(size_t names) { return (num_elements_ += names) <= kMaxElements; }
  bool charge_bytes(size_t times, size_t bytes) {
    if (bytes && times > kMaxBytes / bytes) return false;
    return (num_bytes_ += times * bytes) <= kMaxBytes;
  }
  void define_sequence(const std::string& name, Names list) {
    sequences_[name] = std::move(list);
    defined_.push_back(name);
  }
  const Names* sequence_operand(const Node& node, size_t i = 0) const {
    const auto it = node.inputs.size() > i ? sequences_.find(node.inputs[i]) : sequences_.end();
    return it == sequences_.end() ? nullptr : &it->second;
  }
  std::string unique_name(const std::string& name) {
    std::string made;
    do made = name.substr(0, kMaxNamePrefix) + "#" + std::to_string(++next_suffix_);
    while (!used_names_.insert(made).second);
    return made;
  }
  // Appends a node that replaces `from`.
  Node& insert_node(const Node& from, const char* op_type, int64_t opset, Names inputs, Names outputs) {
    Node& node = graph_->nodes.emplace_back();
    node.name = from.name, node.op_type = op_type, node.opset = opset;
    node.inputs = std::move(inputs), node.outputs = std::move(outputs);
    return node;
  }

  Graph* graph_;
  std::map<std::string, Names> sequences_;
  std::map<std::string, EvenSplit> splits_;
  std::map<std::string, std::vector<int64_t>> constants_;  // integers and bools of rank 0 or 1
  std::set<std::string> scalars_;                          // constants of rank 0
  std::map<std::string, std::vector<int64_t>> dims_;       // of the model's inputs; -1: open
  std::set<std::string> used_names_;
  Names defined_;  // keys of these maps in the order of definition
  size_t num_elements_ = 0, num_nodes_ = 0, num_bytes_ = 0, next_suffix_ = 0;
};

// Collects the names of the graph and of nested graphs.
void SequenceEliminator::collect_names(const Graph& graph) {
  for (const ValueInfo& v : graph.inputs) used_names_.insert(v.name);
  for (const TensorRef& t : graph.initializers) used_names_.insert(t.name);
  for (const Node& node : graph.nodes) {
    used_names_.insert(node.outputs.begin(), node.outputs.end());
    for (const Body& body : node.bodies) collect_names(body.graph);
  }
}

void SequenceEliminator::define_constant(const std::string& name, const TensorRef& t) {
  std::optional<std::vector<int64_t>> list = integers(t, kMaxElements);
  if (!list) return;
  constants_[name] = *std::move(list);
  defined_.push_back(name);
  if (t.shape.empty()) scalars_.insert(name);
}

std::optional<int64_t> SequenceEliminator::scalar(const std::string& name) const {
  const auto it = constants_.find(name);
  return it == constants_.end() || it->second.size() != 1 ? std::nullopt : std::optional(it->second[0]);
}

void SequenceEliminator::add(Node node) {
  const bool standard = node.domain.empty() && !node.outputs.empty();
  if (standard && node.op_type == "Constant") {
    if (const auto it = node.attributes.find("value"); it != node.attributes.end())
      if (const auto* t = std::get_if<TensorRef>(&it->second)) define_constant(node.outputs[0], *t);
    if (node.attributes.contains("value_int")) {
      constants_[node.outputs[0]] = {attribute(node, "value_int", 0)};
      scalars_.insert(node.outputs[0]), defined_.push_back(node.outputs[0]);
    }
  }
  if (standard && eliminate(node)) return;
  if (standard && node.op_type == "If") return add_branches(std::move(node));
  for (Body& body : node.bodies) run(body.graph);
  graph_->nodes.push_back(std::move(node));
}

// Where the condition is a constant and lists are in the branches: those may differ in length.
bool SequenceEliminator::take_branch(const Node& node) {
  const std::optional<int64_t> condition = node.inputs.size() == 1 ? scalar(node.inputs[0]) : std::nullopt;
  if (!condition || std::ranges::none_of(node.bodies, [](const Body& b) { return has_sequences(b.graph); }))
    return false;
  const auto taken =
      std::ranges::find(node.bodies, *condition ? "then_branch" : "else_branch", &Body::attribute);
  if (taken == node.bodies.end() || taken->graph.outputs.size() != node.outputs.size() ||
      (num_nodes_ += size_of(taken->graph)) > kMaxNodes || !charge_bytes(1, bytes_of(taken->graph)))
    return false;
  const Names made = inline_body(taken->graph, {});
  for (size_t i = 0; i < made.size(); ++i) {
    Node copy;
    copy.op_type = "Identity", copy.opset = 1, copy.inputs = {made[i]}, copy.outputs = {node.outputs[i]};
    add(std::move(copy));
  }
  return true;
}

// A list that all branches give in one length is a result for each of its elements.
void SequenceEliminator::add_branches(Node node) {
  if (take_branch(node)) return;
  std::vector<std::map<size_t, Names>> lists(node.bodies.size());
  for (size_t b = 0; b < node.bodies.size(); ++b) run(node.bodies[b].graph, &lists[b]);
  std::map<size_t, Names> results;
  for (size_t i = 0; i < node.outputs.size() && !lists.empty(); ++i) {
    const auto length = [i](const auto& of) { return of.contains(i) ? of.at(i).size() : kMaxElements; };
    const size_t n = length(lists[0]);
    if (n == 0 || n == kMaxElements || node.outputs[i].empty() ||
        std::ranges::any_of(lists, [&](const auto& of) { return length(of) != n; }) ||
        !charge_elements(n * (lists.size() + 1)))
      continue;
    for (size_t e = 0; e < n; ++e) results[i].push_back(unique_name(node.outputs[i]));
  }
  for (size_t b = 0; b < node.bodies.size() && !results.empty(); ++b) {
    Graph& graph = node.bodies[b].graph;
    std::vector<ValueInfo> outputs;
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      if (!results.contains(i)) outputs.push_back(graph.outputs[i]);
      for (size_t e = 0; results.contains(i) && e < results[i].size(); ++e) {
        Node& copy = graph.nodes.emplace_back();
        copy.op_type = "Identity", copy.opset = 1, copy.inputs = {lists[b][i][e]};
        copy.outputs = {unique_name(graph.outputs[i].name)};
        outputs.push_back({copy.outputs[0], 0, false, {}});
      }
    }
    graph.outputs = std::move(outputs);
  }
  Names outputs;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const auto list = results.find(i);
    if (list == results.end()) {
      outputs.push_back(node.outputs[i]);
      continue;
    }
    outputs.insert(outputs.end(), list->second.begin(), list->second.end());
    define_sequence(node.outputs[i], list->second);
  }
  node.outputs = std::move(outputs);
  graph_->nodes.push_back(std::move(node));
}

// Returns true if the node was replaced. A node that defines a sequence stays for users that cannot
// be replaced. Without users it is dead and does no harm.
bool SequenceEliminator::eliminate(const Node& node) {
  const std::string &op = node.op_type, &out = node.outputs[0];
  auto position = [&](size_t operand, size_t length, int64_t absent) -> std::optional<size_t> {
    std::optional<int64_t> at = absent;
    if (node.inputs.size() > operand && !node.inputs[operand].empty()) at = scalar(node.inputs[operand]);
    if (at && *at < 0) *at += static_cast<int64_t>(length);
    if (!at || *at < 0 || *at > static_cast<int64_t>(length)) return std::nullopt;
    return static_cast<size_t>(*at);
  };
  const Names* from = sequence_operand(node);
  if (op == "SequenceConstruct") {
    if (charge_elements(node.inputs.size())) define_sequence(out, node.inputs);
  } else if (op == "SequenceEmpty") {
    define_sequence(out, {});
  } else if (op == "Identity" && node.inputs.size() == 1 && constants_.contains(node.inputs[0])) {
    constants_[out] = constants_.at(node.inputs[0]), defined_.push_back(out);
    if (scalars_.contains(node.inputs[0])) scalars_.insert(out);
  } else if ((op == "Identity" || op == "OptionalGetElement") && from) {
    if (charge_elements(from->size())) define_sequence(out, *from);
  } else if (op == "SequenceInsert" && from && node.inputs.size() > 1) {
    const std::optional<size_t> at = position(2, from->size(), static_cast<int64_t>(from->size()));
    if (!at || !charge_elements(from->size() + 1)) return false;
    Names longer = *from;
    longer.insert(longer.begin() + static_cast<ptrdiff_t>(*at), node.inputs[1]);
    define_sequence(out, std::move(longer));
  } else if (op == "SequenceErase" && from) {
    const std::optional<size_t> at = position(1, from->size(), -1);
    if (!at || *at >= from->size() || !charge_elements(from->size())) return false;
    Names shorter = *from;
    shorter.erase(shorter.begin() + static_cast<ptrdiff_t>(*at));
    define_sequence(out, std::move(shorter));
  } else if (op == "SequenceAt" && node.inputs.size() == 2 && splits_.contains(node.inputs[0]) &&
             eliminate_split_at(node, splits_.at(node.inputs[0]))) {
    return true;
  } else if (op == "SequenceAt" && from && node.inputs.size() == 2) {
    const std::optional<size_t> at = position(1, from->size(), 0);
    if (!at || *at >= from->size()) return false;
    insert_node(node, "Identity", 1, {(*from)[*at]}, {out});
    return true;
  } else if (op == "SequenceLength" && from) {
    insert_node(node, "Constant", 13, {}, {out}).attributes["value_int"] = static_cast<int64_t>(from->size());
    constants_[out] = {static_cast<int64_t>(from->size())}, scalars_.insert(out), defined_.push_back(out);
    return true;
  } else if (op == "ConcatFromSequence" && from) {
    return eliminate_concat(node, *from);
  } else if (op == "SequenceMap" && from) {
    expand_map(node);
  } else if (op == "Loop") {
    return unroll_loop(node);
  } else if (op == "SplitToSequence" && !node.inputs.empty()) {
    define_split(node);
  }
  return false;
}

// Each output that is a list becomes an output for each of its elements: NAME.0, NAME.1, ...
void SequenceEliminator::give_elements() {
  std::vector<ValueInfo> outputs;
  for (ValueInfo& v : graph_->outputs) {
    const auto list = sequences_.find(v.name);
    Names names;
    for (size_t i = 0; list != sequences_.end() && i < list->second.size(); ++i)
      names.push_back(v.name + "." + std::to_string(i));
    const auto is_used = [&](const std::string& name) { return used_names_.contains(name); };
    if (names.empty() || std::ranges::any_of(names, is_used) || !charge_elements(names.size())) {
      outputs.push_back(std::move(v));
      continue;
    }
    for (size_t i = 0; i < names.size(); ++i) {
      insert_node({}, "Identity", 1, {list->second[i]}, {names[i]});
      outputs.push_back({names[i], 0, false, {}});
    }
    used_names_.insert(names.begin(), names.end());
  }
  graph_->outputs = std::move(outputs);
}

void SequenceEliminator::define_split(const Node& node) {
  const std::string& out = node.outputs[0];
  const int64_t axis = attribute(node, "axis", 0);
  const bool absent = node.inputs.size() < 2 || node.inputs[1].empty();
  if (!absent && !constants_.contains(node.inputs[1])) return;
  if (!absent && !scalars_.contains(node.inputs[1])) {
    const std::vector<int64_t> sizes = constants_.at(node.inputs[1]);
    if (sizes.empty() || !charge_elements(sizes.size())) return;
    Names parts;
    for (size_t i = 0; i < sizes.size(); ++i) parts.push_back(unique_name(out));
    define_sequence(out, parts);
    Node& made = insert_node(node, "Split", 2, {node.inputs[0]}, parts);
    made.attributes["axis"] = axis, made.attributes["split"] = sizes;
    return;
  }
  EvenSplit split{node.inputs[0], axis, absent ? 1 : *scalar(node.inputs[1]),
                  !absent || attribute(node, "keepdims", 1) != 0};
  if (split.size <= 0) return;
  splits_[out] = split, defined_.push_back(out);
  define_parts(node, split);
}

// Where the file says the dimension, the number of parts follows.
void SequenceEliminator::define_parts(const Node& node, const EvenSplit& split) {
  const auto at = dims_.find(split.tensor);
  if (at == dims_.end()) return;
  const auto rank = static_cast<int64_t>(at->second.size());
  const int64_t axis = split.axis < 0 ? split.axis + rank : split.axis, size = split.size;
  if (axis < 0 || axis >= rank) return;
  const int64_t length = at->second[static_cast<size_t>(axis)];
  if (length < 1 || length > static_cast<int64_t>(kMaxElements)) return;
  std::vector<int64_t> sizes(static_cast<size_t>((length + size - 1) / size), size);
  sizes.back() = length - static_cast<int64_t>(sizes.size() - 1) * size;
  if (!charge_elements(2 * sizes.size())) return;
  Names parts, elements;
  for (size_t i = 0; i < sizes.size(); ++i) parts.push_back(unique_name(node.outputs[0]));
  Node& made = insert_node(node, "Split", 2, {node.inputs[0]}, parts);
  made.attributes["axis"] = axis, made.attributes["split"] = sizes;
  for (const std::string& part : parts) {
    elements.push_back(split.keeps_axis ? part : unique_name(node.outputs[0]));
    if (!split.keeps_axis)
      insert_node(node, "Squeeze", 11, {part}, {elements.back()}).attributes["axes"] = std::vector{axis};
  }
  define_sequence(node.outputs[0], std::move(elements));
}

bool SequenceEliminator::eliminate_split_at(const Node& node, const EvenSplit& split) {
  const std::optional<int64_t> at = scalar(node.inputs[1]);
  int64_t begin = 0, end = 0;
  if (!at || *at < 0 || __builtin_mul_overflow(*at, split.size, &begin) ||
      __builtin_add_overflow(begin, split.size, &end))
    return false;
  if (!split.keeps_axis) {
    if (!scalars_.contains(node.inputs[1])) return false;
    insert_node(node, "Gather", 1, {split.tensor, node.inputs[1]}, {node.outputs[0]}).attributes["axis"] =
        split.axis;
    return true;
  }
  // The first element, which must exist, and the others of the part, of which the last part may
  // have fewer.
  const auto index = unique_name(node.outputs[0]);
  insert_node(node, "Constant", 13, {}, {index}).attributes["value_ints"] = std::vector{begin};
  const Names halves = split.size == 1 ? Names{node.outputs[0]}
                                       : Names{unique_name(node.outputs[0]), unique_name(node.outputs[0])};
  insert_node(node, "Gather", 1, {split.tensor, index}, {halves[0]}).attributes["axis"] = split.axis;
  if (split.size == 1) return true;
  Node& others = insert_node(node, "Slice", 1, {split.tensor}, {halves[1]});
  others.attributes["axes"] = std::vector{split.axis};
  others.attributes["starts"] = std::vector{begin + 1};
  others.attributes["ends"] = std::vector{end};
  insert_node(node, "Concat", 11, halves, {node.outputs[0]}).attributes["axis"] = split.axis;
  return true;
}

bool SequenceEliminator::eliminate_concat(const Node& node, const Names& list) {
  const int64_t axis = attribute(node, "axis", 0);
  if (list.empty() || !charge_elements(list.size())) return false;
  Names parts = list;
  if (attribute(node, "new_axis", 0) != 0)
    for (std::string& part : parts) {
      Node& made = insert_node(node, "Unsqueeze", 11, {part}, {unique_name(part)});
      made.attributes["axes"] = std::vector{axis};
      part = made.outputs[0];
    }
  insert_node(node, "Concat", 11, parts, {node.outputs[0]}).attributes["axis"] = axis;
  return true;
}

// Inlines a graph with `names` for its inputs and unique names for its values. Returns its outputs'
// names.
Names SequenceEliminator::inline_body(const Graph& body, std::map<std::string, std::string> names) {
  Graph copy = body;
  for (TensorRef& t : copy.initializers) {
    t.name = names[t.name] = unique_name(t.name);
    define_constant(t.name, t);
    graph_->initializers.push_back(t);
  }
  for (Node& inner : copy.nodes)
    for (std::string& output : inner.outputs)
      if (!output.empty()) {
        const std::string made = unique_name(output);
        names[output] = made, output = made;
      }
  rename(copy, names);
  for (Node& inner : copy.nodes) add(std::move(inner));
  Names made;
  for (const ValueInfo& v : copy.outputs) made.push_back(v.name);
  return made;
}

// Unrolls a loop that carries sequences, if the trip count is constant.
bool SequenceEliminator::unroll_loop(const Node& node) {
  if (node.bodies.size() != 1 || node.inputs.size() < 3) return false;
  const Graph& body = node.bodies[0].graph;
  const size_t carried = node.inputs.size() - 2;
  const std::optional<int64_t> trips = scalar(node.inputs[0]);
  auto is_true = [&](const std::string& name) { return scalar(name) == 1; };
  bool carries_sequences = false;
  for (size_t i = 0; i < carried; ++i) carries_sequences |= sequence_operand(node, 2 + i) != nullptr;
  if (!carries_sequences || !trips || *trips < 0 || !(node.inputs[1].empty() || is_true(node.inputs[1])))
    return false;
  if (body.inputs.size() != 2 + carried || body.outputs.size() != 1 + carried ||
      node.outputs.size() > carried)
    return false;
  const size_t size = size_of(body) + carried + 2;
  if (static_cast<uint64_t>(*trips) > kMaxNodes / size ||
      (num_nodes_ += static_cast<size_t>(*trips) * size) > kMaxNodes)
    return false;
  if (!charge_bytes(static_cast<size_t>(*trips), bytes_of(body))) return false;
  if (node.inputs[1].empty() && reads(body, body.inputs[1].name)) return false;
  Names values(node.inputs.begin() + 2, node.inputs.end());
  for (int64_t step = 0; step < *trips; ++step) {
    const std::string at = unique_name(body.inputs[0].name);
    Node count;
    count.op_type = "Constant", count.opset = 13, count.outputs = {at}, count.attributes["value_int"] = step;
    add(std::move(count));
    std::map<std::string, std::string> names = {{body.inputs[0].name, at},
                                                {body.inputs[1].name, node.inputs[1]}};
    for (size_t i = 0; i < carried; ++i) names[body.inputs[2 + i].name] = values[i];
    Names made = inline_body(body, std::move(names));
    if (!is_true(made[0])) return false;
    values.assign(made.begin() + 1, made.end());
  }
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (sequence_operand(node, 2 + i) &&
        (!sequences_.contains(values[i]) || !charge_elements(sequences_[values[i]].size())))
      return false;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (sequence_operand(node, 2 + i))
      define_sequence(node.outputs[i], Names(sequences_[values[i]]));
    else
      insert_node(node, "Identity", 1, {values[i]}, {node.outputs[i]});
  }
  return true;
}

// Inlines the body of a SequenceMap once for each element.
void SequenceEliminator::expand_map(const Node& node) {
  const Names* first = sequence_operand(node);
  if (node.bodies.size() != 1) return;
  const Graph& body = node.bodies[0].graph;
  num_nodes_ += first->size() * (size_of(body) + node.outputs.size());
  if (num_nodes_ > kMaxNodes || body.inputs.size() != node.inputs.size() ||
      body.outputs.size() < node.outputs.size())
    return;
  for (size_t i = 1; i < node.inputs.size(); ++i)
    if (const Names* more = sequence_operand(node, i);
        more ? more->size() != first->size() : splits_.contains(node.inputs[i]))
      return;
  const size_t steps = first->size();
  if (!charge_bytes(steps, bytes_of(body))) return;
  std::vector<Names> results(node.outputs.size());
  for (size_t step = 0; step < steps; ++step) {
    std::map<std::string, std::string> names;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Names* elements = sequence_operand(node, i);
      names[body.inputs[i].name] = elements ? (*elements)[step] : node.inputs[i];
    }
    const Names made = inline_body(body, std::move(names));
    for (size_t r = 0; r < results.size(); ++r) results[r].push_back(made[r]);
  }
  for (size_t r = 0; r < results.size(); ++r)
    if (!node.outputs[r].empty()) define_sequence(node.outputs[r], results[r]);
}

}  // namespace

std::optional<Graph> without_sequences(const Graph& given) {
  if (!has_sequences(given)) return std::nullopt;
  Graph graph = given;
  SequenceEliminator(graph).run(graph);
  return graph;
}

}  // namespace invar::onnx
