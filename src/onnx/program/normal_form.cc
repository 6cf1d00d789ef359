// Numbers the values of a graph by a walk from its outputs and prints them, see normal_form.h.
#include "onnx/normal_form.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <unordered_map>

#include "onnx/program/node_text.h"
#include "onnx/tensor.h"

namespace invar::onnx {
namespace {

// An operand of a node: a value by name, or a constant.
struct Read {
  std::string value;
  const TensorRef* constant = nullptr;
};

// The index of a graph, made before the walk.
struct GraphIndex {
  std::unordered_map<std::string, size_t> producers;            // value -> its node
  std::unordered_map<std::string, const TensorRef*> constants;  // initializers and nodes `Constant`
};

// One graph while its lines are written.
struct Scope {
  const Graph& graph;
  const GraphIndex& index;
  const Scope* outer;
  std::string primes;                                    // one apostrophe for each graph around it
  std::unordered_map<std::string, std::string> values;   // name -> text
  std::unordered_map<std::string, std::string> entries;  // text of a node or constant -> its number
  size_t next = 0;
  std::string lines;
};

class Normalizer {
 public:
  Normalizer(const TensorDigestOf& digest_of, const AppliedChoices& choices)
      : digest_of_(digest_of), choices_(choices) {}
  std::optional<NormalForm> run(const Graph&);

 private:
  void prepare(const Graph&);
  std::vector<Read> captures(const Graph&) const;
  Read read(const Node&, size_t i) const;
  template <class VisitRead, class VisitNode>
  void walk(const Graph&, VisitRead&&, VisitNode&&) const;
  void number_constant(const TensorRef&);
  std::string constant_text(const TensorRef&) const;
  void write_graph(Scope&);
  void write_node(Scope&, const Node&);
  std::string body_text(const Scope&, const Body&);
  std::string text_of(const Scope&, const Read&) const;

  const TensorDigestOf& digest_of_;
  const AppliedChoices& choices_;
  std::unordered_map<const Graph*, GraphIndex> graphs_;
  std::unordered_map<const Node*, std::vector<Read>> captures_;  // of nodes with bodies
  std::unordered_map<const Node*, NodeNumber> numbers_;
  std::deque<TensorRef> owned_;                                  // values of nodes `Constant`
  std::unordered_map<const TensorRef*, std::string> constants_;  // text of those that have a number
  Scope* outermost_ = nullptr;
  NormalForm result_;
  bool complete_ = true;
};

std::vector<const Body*> sorted_bodies(const Node& node) {
  std::vector<const Body*> bodies;
  for (const Body& b : node.bodies) bodies.push_back(&b);
  std::sort(bodies.begin(), bodies.end(),
            [](const Body* a, const Body* b) { return a->attribute < b->attribute; });
  return bodies;
}

void Normalizer::prepare(const Graph& graph) {
  GraphIndex& index = graphs_[&graph];
  for (const TensorRef& t : graph.initializers) index.constants.emplace(t.name, &t);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    numbers_.emplace(&node, numbers_.size());
    if (std::optional<TensorRef> t = constant_of(node))
      index.constants.emplace(node.outputs[0], &owned_.emplace_back(*std::move(t)));
    else
      for (const std::string& out : node.outputs) index.producers.emplace(out, i);
    for (const Body& body : node.bodies) prepare(body.graph);
    for (const Body* body : sorted_bodies(node))
      for (Read& r : captures(body->graph)) captures_[&node].push_back(std::move(r));
  }
}

Read Normalizer::read(const Node& node, size_t i) const {
  return i < node.inputs.size() ? Read{node.inputs[i]} : captures_.at(&node)[i - node.inputs.size()];
}

// Depth first from the outputs: what a node reads, in order, before the node. visit_read gets what
// no node of the graph makes, visit_node each node once.
template <class VisitRead, class VisitNode>
void Normalizer::walk(const Graph& graph, VisitRead&& visit_read, VisitNode&& visit_node) const {
  const GraphIndex& index = graphs_.at(&graph);
  std::vector<bool> done(graph.nodes.size());
  struct Frame {
    size_t node, next, reads;
  };
  std::vector<Frame> stack;
  const auto open = [&](const Read& r) {
    if (!r.constant && r.value.empty()) return;  // an absent operand
    const auto constant = index.constants.find(r.value);
    if (r.constant || constant != index.constants.end())
      return visit_read(r.constant ? r : Read{{}, constant->second});
    const auto at = index.producers.find(r.value);
    if (at == index.producers.end()) return visit_read(r);
    if (done[at->second]) return;
    const Node& node = graph.nodes[at->second];
    const auto more = captures_.find(&node);
    stack.push_back(
        {at->second, 0, node.inputs.size() + (more == captures_.end() ? 0 : more->second.size())});
  };
  for (const ValueInfo& output : graph.outputs) {
    open({output.name});
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next < top.reads) {
        open(read(graph.nodes[top.node], top.next++));
        continue;
      }
      done[top.node] = true;
      visit_node(graph.nodes[top.node]);
      stack.pop_back();
    }
  }
}

// The values that live nodes of a body read from around it, constants of the body included: these
// have their place in the outermost graph.
std::vector<Read> Normalizer::captures(const Graph& graph) const {
  std::vector<Read> found;
  std::set<std::string> inputs;
  for (const ValueInfo& input : graph.inputs) inputs.insert(input.name);
  walk(
      graph,
      [&](const Read& r) {
        if (r.constant || !inputs.contains(r.value)) found.push_back(r);
      },
      [](const Node&) {});
  return found;
}

std::string Normalizer::constant_text(const TensorRef& t) const {
  return type_text(t.data_type) + " " + shape_text(t.shape) + " sha256 " + to_hex(digest_of_(t));
}

void Normalizer::number_constant(const TensorRef& t) {
  if (constants_.contains(&t)) return;
  Scope& s = *outermost_;
  const std::string text = constant_text(t);
  const auto [entry, is_new] = s.entries.emplace("constant " + text, "v" + std::to_string(s.next));
  constants_.emplace(&t, entry->second);
  if (!is_new) return;
  ++s.next;
  s.lines += "constant " + entry->second + " " + text + "\n";
  result_.constants.push_back({entry->second, t.data_type, t.shape, digest_of_(t)});
}

std::string Normalizer::text_of(const Scope& scope, const Read& r) const {
  if (r.constant) return constants_.at(r.constant);
  if (r.value.empty()) return "-";
  for (const Scope* s = &scope; s; s = s->outer) {
    if (const auto at = s->values.find(r.value); at != s->values.end()) return at->second;
    if (const auto at = s->index.constants.find(r.value); at != s->index.constants.end())
      return constants_.at(at->second);
  }
  return "-";  // onnx::read gives no unknown names
}

std::string Normalizer::body_text(const Scope& outer, const Body& body) {
  Scope s{body.graph, graphs_.at(&body.graph), &outer, outer.primes + "'", {}, {}, 0, {}};
  for (const ValueInfo& input : body.graph.inputs)
    s.values.emplace(input.name, "v" + std::to_string(s.next++) + s.primes);
  write_graph(s);
  std::string given;
  for (const ValueInfo& output : body.graph.outputs)
    given += (given.empty() ? "" : ", ") + text_of(s, {output.name});
  return "graph " + quoted(body.attribute) + " " + std::to_string(body.graph.inputs.size()) + "\n" + s.lines +
         "give (" + given + ")\n";
}

void Normalizer::write_node(Scope& s, const Node& node) {
  complete_ &= node.other_attributes.empty();
  if (node.op_type == "Identity" && node.domain.empty() && node.inputs.size() == 1 && !node.outputs.empty() &&
      !node.inputs[0].empty()) {
    s.values[node.outputs[0]] = text_of(s, {node.inputs[0]});
    return;
  }
  std::vector<std::string> operands;
  for (const std::string& in : node.inputs) operands.push_back(text_of(s, {in}));
  while (!operands.empty() && operands.back() == "-") operands.pop_back();
  const auto opset = outermost_->graph.opsets.find(node.domain);
  const int64_t version = node.opset                                ? node.opset
                          : opset == outermost_->graph.opsets.end() ? 0
                                                                    : opset->second;
  std::string text = quoted(node.op_type) + " " + quoted(node.domain) + " " + std::to_string(version) + " " +
                     std::to_string(node.outputs.size()) + " (" + joined(operands) + ") {" +
                     attributes_text(node, [this](const TensorRef& t) { return constant_text(t); }) + "}";
  if (const auto at = choices_.find(numbers_.at(&node)); at != choices_.end())
    for (const std::string& choice : at->second) text += " choice " + choice;
  text += "\n";
  for (const Body* body : sorted_bodies(node)) text += body_text(s, *body);
  const auto [entry, is_new] = s.entries.emplace(text, "v" + std::to_string(s.next) + s.primes);
  if (is_new) {
    ++s.next;
    s.lines += "node " + entry->second + " " + text;
  }
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (!node.outputs[i].empty())
      s.values[node.outputs[i]] = entry->second + (i == 0 ? "" : "." + std::to_string(i));
}

void Normalizer::write_graph(Scope& s) {
  walk(
      s.graph,
      [&](const Read& r) {
        if (r.constant) number_constant(*r.constant);
      },
      [&](const Node& node) { write_node(s, node); });
}

std::optional<NormalForm> Normalizer::run(const Graph& graph) {
  prepare(graph);
  Scope s{graph, graphs_.at(&graph), nullptr, "", {}, {}, 0, {}};
  outermost_ = &s;
  std::map<std::string, std::string> dims;  // names -> texts
  for (const ValueInfo& input : graph.inputs) {
    const std::string number = "v" + std::to_string(s.next++);
    s.values.emplace(input.name, number);
    s.lines += "input " + number + " " + input_text(input, dims) + "\n";
  }
  write_graph(s);
  for (const ValueInfo& output : graph.outputs)
    s.lines += "output " + text_of(s, {output.name}) + " " + quoted(output.name) + "\n";
  result_.text = std::move(s.lines);
  if (!complete_) return std::nullopt;
  return std::move(result_);
}

}  // namespace

std::optional<NormalForm> normal_form(const Graph& graph, const TensorDigestOf& digest_of,
                                      const AppliedChoices& choices) {
  return Normalizer(digest_of, choices).run(graph);
}

}  // namespace invar::onnx
