// What edits read of nodes, and walks over a graph and the graphs in it.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "onnx/tensor.h"

namespace invar::onnx {

inline int64_t attribute(const Node& node, const char* name, int64_t fallback) {
  const auto it = node.attributes.find(name);
  const auto* value = it == node.attributes.end() ? nullptr : std::get_if<int64_t>(&it->second);
  return value ? *value : fallback;
}

// Of rank 0 or 1: integers or bools.
inline std::optional<std::vector<int64_t>> integers(const TensorRef& t, size_t most_bytes) {
  const size_t width = t.data_type == kInt64 ? 8 : t.data_type == kInt32 ? 4 : t.data_type == kBool ? 1 : 0;
  if (!width || !t.file.empty() || t.shape.size() > 1 || t.inline_data.size() > most_bytes)
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

inline void rename(std::vector<std::string>& names, const std::map<std::string, std::string>& to) {
  for (std::string& name : names)
    if (const auto it = to.find(name); it != to.end()) name = it->second;
}
inline void rename(Graph& graph, const std::map<std::string, std::string>& to) {
  for (ValueInfo& v : graph.outputs)
    if (const auto it = to.find(v.name); it != to.end()) v.name = it->second;
  for (Node& node : graph.nodes) {
    rename(node.inputs, to);
    for (Body& body : node.bodies) rename(body.graph, to);
  }
}

inline size_t size_of(const Graph& graph) {
  size_t size = graph.initializers.size() + graph.nodes.size();
  for (const Node& node : graph.nodes)
    for (const Body& body : node.bodies) size += size_of(body.graph);
  return size;
}

// Bytes of constants, which a copy of the graph duplicates.
inline size_t bytes_of(const Graph& graph) {
  size_t bytes = 0;
  for (const TensorRef& t : graph.initializers) bytes += t.inline_data.size();
  for (const Node& node : graph.nodes) {
    for (const auto& [name, value] : node.attributes)
      if (const auto* t = std::get_if<TensorRef>(&value)) bytes += t->inline_data.size();
    for (const Body& body : node.bodies) bytes += bytes_of(body.graph);
  }
  return bytes;
}

inline bool reads(const Graph& graph, const std::string& name) {
  for (const ValueInfo& v : graph.outputs)
    if (v.name == name) return true;
  for (const Node& node : graph.nodes) {
    if (std::count(node.inputs.begin(), node.inputs.end(), name)) return true;
    for (const Body& body : node.bodies)
      if (reads(body.graph, name)) return true;
  }
  return false;
}

inline bool has_sequences(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return node.op_type.find("Sequence") != std::string::npos ||
           std::any_of(node.bodies.begin(), node.bodies.end(),
                       [](const Body& body) { return has_sequences(body.graph); });
  });
}

}  // namespace invar::onnx
