// Taking fused linear layers apart, see unfuse.h.
#include "plan/analysis/unfuse.h"

#include <string>

#include "plan/analysis/split_rules.h"

namespace invar::plan {
namespace {

class Unfusing {
 public:
  explicit Unfusing(const Plan& p) : p_(p), readers_(p.values.size()), kept_(p.values.size()) {
    for (size_t n = 0; n < p.nodes.size(); ++n)
      for (const Operand& o : p.nodes[n].in)
        if (o.kind == Operand::value) readers_[o.index].push_back(static_cast<int>(n));
    for (const Port& o : p.outputs) kept_[o.value] = true;
    made_.plan = p, made_.plan.nodes.clear();
    for (size_t v = 0; v < p.values.size(); ++v) made_.value_of.push_back(static_cast<int>(v));
  }

  Unfused run() && {
    // Per node that slices a fused layer: the layer; and the layers themselves, with their biases.
    std::vector<int> layer_of(p_.nodes.size(), -1), bias_of(p_.nodes.size(), -1);
    std::vector<bool> gone(p_.nodes.size());
    for (size_t n = 0; n < p_.nodes.size(); ++n) {
      const int bias = bias_behind(static_cast<int>(n));
      const int last = bias >= 0 ? bias : static_cast<int>(n);
      if (!is_layer(p_.nodes[n]) || !only_sliced(p_.nodes[last].out[0])) continue;
      for (int reader : readers_[p_.nodes[last].out[0]]) layer_of[reader] = static_cast<int>(n);
      gone[n] = gone[last] = true, bias_of[n] = bias;
    }
    for (size_t n = 0; n < p_.nodes.size(); ++n) {
      if (gone[n]) continue;
      if (const int layer = layer_of[n]; layer >= 0)
        add(p_.nodes[layer], bias_of[layer] < 0 ? nullptr : &p_.nodes[bias_of[layer]], n);
      else
        put(p_.nodes[n], n);
    }
    return std::move(made_);
  }

 private:
  bool is_layer(const Node& n) const {
    return split_rule(n.op) == "columns" && n.attrs.i("trans_b", 0) == 1 && n.attrs.i("trans_a", 0) == 0 &&
           n.in.size() == 2 && n.in[0].kind == Operand::value && n.in[1].kind == Operand::weight &&
           p_.weights[n.in[1].index].shape.size() == 2 && !kept_[n.out[0]];
  }
  // The only reader of a node's result, if it adds a weight for each column; -1: it is none.
  int bias_behind(int n) const {
    if (p_.nodes[n].out.size() != 1 || readers_[p_.nodes[n].out[0]].size() != 1) return -1;
    const int v = p_.nodes[n].out[0], reader = readers_[v][0];
    const Node& b = p_.nodes[reader];
    if (split_rule(b.op) != "elements" || b.in.size() != 2 || kept_[b.out[0]]) return -1;
    for (const Operand& o : b.in)
      if (o.kind == Operand::weight && p_.weights[o.index].shape.size() == 1 &&
          p_.values[v].shape.back() == DimRef{p_.weights[o.index].shape[0], -1})
        return reader;
    return -1;
  }
  bool only_sliced(int v) const {
    if (readers_[v].empty()) return false;
    for (int reader : readers_[v]) {
      const Node& n = p_.nodes[reader];
      const std::vector<DimRef>&from = p_.values[v].shape, &to = p_.values[n.out[0]].shape;
      if (split_rule(n.op) != "part" || n.in.size() != 1 || from.size() != to.size()) return false;
      for (size_t d = 0; d + 1 < from.size(); ++d)
        if (!(from[d] == to[d])) return false;
      const std::vector<int64_t> starts = list(n, "starts", 0), steps = list(n, "steps", 1);
      for (size_t d = 0; d < from.size(); ++d)
        if (steps[d] != 1 || (d + 1 < from.size() ? starts[d] != 0 : starts[d] < 0)) return false;
    }
    return true;
  }
  std::vector<int64_t> list(const Node& n, const char* name, int64_t otherwise) const {
    const auto at = n.attrs.find(name);
    if (at != n.attrs.end()) return std::get<std::vector<int64_t>>(at->second);
    return std::vector<int64_t>(p_.values[n.out[0]].shape.size(), otherwise);
  }

  void put(Node n, size_t of) {
    made_.plan.nodes.push_back(std::move(n)), made_.node_of.push_back(static_cast<int>(of));
  }
  int columns_of(int w, int64_t begin, int64_t count) {
    Weight made = p_.weights[w];
    const uint64_t column = made.length / static_cast<uint64_t>(made.shape[0]);
    made.name += "[" + std::to_string(begin) + ":" + std::to_string(begin + count) + "]";
    made.offset += column * static_cast<uint64_t>(begin), made.length = column * static_cast<uint64_t>(count);
    made.shape[0] = count, made.sha256 = {};
    made_.plan.weights.push_back(std::move(made));
    return static_cast<int>(made_.plan.weights.size()) - 1;
  }
  // The layer, and its bias, for the columns that node `slice` takes.
  void add(Node layer, const Node* bias, size_t slice) {
    const int out = p_.nodes[slice].out[0];
    const int64_t begin = list(p_.nodes[slice], "starts", 0).back(),
                  count = p_.values[out].shape.back().value;
    layer.in[1].index = columns_of(layer.in[1].index, begin, count);
    layer.out[0] = out;
    if (!bias) return put(std::move(layer), slice);
    Node sum = *bias;
    made_.plan.values.push_back(p_.values[out]), made_.value_of.push_back(out);
    layer.out[0] = static_cast<int>(made_.plan.values.size()) - 1;
    for (Operand& o : sum.in)
      o.index = o.kind == Operand::value ? layer.out[0] : columns_of(o.index, begin, count);
    sum.out[0] = out;
    put(std::move(layer), slice), put(std::move(sum), slice);
  }

  const Plan& p_;
  std::vector<std::vector<int>> readers_;  // per value: nodes
  std::vector<bool> kept_;                 // per value: the plan returns it
  Unfused made_;
};

}  // namespace

Unfused unfuse(const Plan& p) {
  return Unfusing(p).run();
}

}  // namespace invar::plan
