// Kahn's algorithm over nodes, with nested graphs as part of their nodes.
#include "onnx/read/toposort.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <unordered_map>

#include "onnx/error_text.h"

namespace invar::onnx {
namespace {

constexpr size_t kNotANode = SIZE_MAX;
using Producers = std::unordered_map<std::string, size_t>;
// The reads of each node: its inputs and the values that its nested graphs capture.
using Reads = std::vector<std::vector<std::string>>;

// The values of a graph and of the graphs around it.
struct SortScope {
  const SortScope* outer;
  Producers producers;
  size_t around = kNotANode;  // the node whose graphs are read
  bool sees(const std::string& name) const {
    for (const SortScope* s = this; s; s = s->outer)
      if (s->producers.contains(name)) return true;
    return false;
  }
  // The results of the nodes around a graph exist only after it.
  bool defines_before(const std::string& name) const {
    for (const SortScope* s = this; s; s = s->outer)
      if (const auto it = s->producers.find(name);
          it != s->producers.end() && (it->second == kNotANode || it->second != s->around))
        return true;
    return false;
  }
};

Status define_all(const Graph& graph, const std::string& where, SortScope& scope) {
  Producers& producers = scope.producers;
  auto define = [&](const std::string& name, size_t node, const std::string& by) -> Status {
    if (name.empty()) return bad_input(where + ": " + by + " has no name");
    if ((scope.outer && scope.outer->defines_before(name)) || !producers.emplace(name, node).second)
      return bad_input(where + ": " + by + " defines " + quote(name) + ", which is already defined");
    return {};
  };
  for (const auto& t : graph.initializers) INVAR_CHECK_OK(define(t.name, kNotANode, "an initialiser"));
  for (const auto& v : graph.inputs) INVAR_CHECK_OK(define(v.name, kNotANode, "a graph input"));
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const auto& name : graph.nodes[i].outputs)
      if (!name.empty()) {
        INVAR_CHECK_OK(define(name, i, node_label(graph.nodes[i], i)));
      }
  return {};
}

// Finds a cycle among the unsorted nodes: follows unmet inputs until a node repeats.
std::string find_cycle(const Graph& graph, const Producers& producers, const Reads& reads,
                       const std::vector<size_t>& waiting_for) {
  std::vector<size_t> path;
  std::unordered_map<size_t, size_t> position;  // node -> index in path
  size_t node = static_cast<size_t>(
      std::find_if(waiting_for.begin(), waiting_for.end(), [](size_t n) { return n > 0; }) -
      waiting_for.begin());
  while (position.emplace(node, path.size()).second) {
    path.push_back(node);
    for (const auto& name : reads[node]) {
      auto it = name.empty() ? producers.end() : producers.find(name);
      if (it == producers.end() || it->second == kNotANode || waiting_for[it->second] == 0) continue;
      node = it->second;
      break;
    }
  }
  path.erase(path.begin(), path.begin() + static_cast<ptrdiff_t>(position[node]));
  std::reverse(path.begin(), path.end());  // data flow order, starting at the node that is first in the file
  std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());
  std::string text;
  const size_t shown = std::min<size_t>(path.size(), 8);
  for (size_t i = 0; i < shown; ++i) text += node_label(graph.nodes[path[i]], path[i]) + " -> ";
  if (shown < path.size()) text += "(" + std::to_string(path.size() - shown) + " more) -> ";
  return text + node_label(graph.nodes[path[0]], path[0]);
}

// Returns the values that the graph captures from the graphs around it.
Result<std::set<std::string>> check_and_sort(Graph& graph, const std::string& where, const SortScope* outer);

// The values that each node reads. Checks and sorts nested graphs on the way.
Result<Reads> reads_of(Graph& graph, const std::string& where, SortScope& scope) {
  Reads reads(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    reads[i] = node.inputs;
    scope.around = i;
    for (Body& body : node.bodies) {
      const std::string inside = where + ": " + node_label(node, i) + ": graph " + quote(body.attribute);
      INVAR_TRY(const std::set<std::string> captured, check_and_sort(body.graph, inside, &scope));
      reads[i].insert(reads[i].end(), captured.begin(), captured.end());
    }
  }
  return reads;
}

Result<std::set<std::string>> check_and_sort(Graph& graph, const std::string& where, const SortScope* outer) {
  SortScope scope{outer, {}};
  INVAR_CHECK_OK(define_all(graph, where, scope));
  INVAR_TRY(const Reads reads, reads_of(graph, where, scope));
  const Producers& producers = scope.producers;
  std::set<std::string> captured;
  const size_t n = graph.nodes.size();
  std::vector<size_t> waiting_for(n, 0);  // inputs whose node has not been placed
  std::vector<std::vector<size_t>> users(n);
  for (size_t i = 0; i < n; ++i) {
    for (const auto& name : reads[i]) {
      if (name.empty()) continue;
      auto it = producers.find(name);
      if (it == producers.end()) {
        if (!outer || !outer->sees(name))
          return bad_input(where + ": " + node_label(graph.nodes[i], i) + " reads " + quote(name) +
                           ", which nothing defines");
        captured.insert(name);
        continue;
      }
      if (it->second == kNotANode) continue;
      users[it->second].push_back(i);
      ++waiting_for[i];
    }
  }
  for (const auto& v : graph.outputs) {
    if (producers.contains(v.name)) continue;
    if (!outer || !outer->sees(v.name))
      return bad_input(where + ": graph output " + quote(v.name) + " is defined by nothing");
    captured.insert(v.name);
  }

  // The smallest ready index first keeps a sorted file as it is.
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < n; ++i)
    if (waiting_for[i] == 0) ready.push(i);
  std::vector<Node> sorted;
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    order.push_back(i);
    for (size_t user : users[i])
      if (--waiting_for[user] == 0) ready.push(user);
  }
  if (order.size() != n)
    return bad_input(where + ": the graph has a cycle: " + find_cycle(graph, producers, reads, waiting_for));
  sorted.reserve(n);
  for (size_t i : order) sorted.push_back(std::move(graph.nodes[i]));
  graph.nodes = std::move(sorted);
  return captured;
}

}  // namespace

std::string node_label(const Node& node, size_t index) {
  return "node " + (node.name.empty() ? "#" + std::to_string(index) : quote(node.name)) + " (" +
         (node.domain.empty() ? "" : quote(node.domain) + " ") + quote(node.op_type) + ")";
}

Status check_and_sort(Graph& graph, const std::string& where) {
  INVAR_TRY(const std::set<std::string> captured, check_and_sort(graph, where, nullptr));
  (void)captured;  // the main graph has no graph around it
  return {};
}

}  // namespace invar::onnx
