// Partitioning of a plan into segments: a block of nodes is split where data-dependent sizes become
// known (plan.15) and at control flow (plan.16). All sizes of a segment are known when it starts.
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "plan/analysis/segment_builder.h"

namespace invar::plan {
namespace {

// A sequence of nodes: the program, or a body of control flow (`body` >= 0).
struct Block {
  const std::vector<Node>& nodes;
  std::vector<int> inputs, outputs;
};

Block block_of(const Plan& p, int body) {
  if (body >= 0) return {p.bodies[body].nodes, p.bodies[body].inputs, p.bodies[body].outputs};
  Block all{p.nodes, {}, {}};
  for (const Port& i : p.inputs) all.inputs.push_back(i.value);
  for (const Port& o : p.outputs) all.outputs.push_back(o.value);
  return all;
}

// The stage of its block from which on a value or a symbol is available. A stage becomes a segment.
// The plan is indexed once, the stages are filled in block by block.
class Availability : public SymbolUses {
 public:
  Availability(const Plan& p, std::vector<BlockPartition>& all)
      : SymbolUses(p),
        value_at(p.values.size(), -1),
        made_at(p.values.size(), -1),
        symbol_at(p.symbols.size(), -1),
        p_(p),
        owner_(p.symbols.size(), kNone) {
    for (size_t b = 0; b < p.bindings.size(); ++b)
      bound_at_[p.bindings[b].value].push_back(static_cast<int>(b));
    walk(-1, all);
    for (size_t s = 0; s < owner_.size(); ++s)
      if (owner_[s] != kNone)
        all[static_cast<size_t>(owner_[s] + 1)].own_symbols.push_back(static_cast<int>(s));
  }
  // The bindings to elements of a value.
  const std::vector<int>& bound_at(int v) const {
    static const std::vector<int> none;
    const auto at = bound_at_.find(v);
    return at == bound_at_.end() ? none : at->second;
  }

  bool owns(int body, int symbol) const { return owner_[symbol] == body; }

  // Per value: the stage from which on it is available (-1: a block's input), and the stage whose
  // nodes compute it (-1: none).
  std::vector<int> value_at, made_at;
  // Per symbol: the stage of the current block from which on it is known; -1: it does not occur.
  std::vector<int> symbol_at;

 private:
  static constexpr int kNone = -2;
  void walk(int body, std::vector<BlockPartition>& all) {
    const Block block = block_of(p_, body);
    for (int v : block.inputs) own(v, body);
    for (const Node& n : block.nodes) {
      for (int b : n.bodies) walk(b, all);
      all[body + 1].node_numbers.push_back(next_++);
      for (int v : n.out) own(v, body);
    }
  }
  void own(int v, int body) {
    std::vector<int> symbols;
    for (int b : bound_at(v)) symbols.push_back(p_.bindings[b].symbol);
    for (int symbol : symbols_of(v))
      symbols.insert(symbols.end(), names_of(symbol).begin(), names_of(symbol).end());
    for (int name : symbols)
      if (owner_[name] == kNone) owner_[name] = body;
  }

  const Plan& p_;
  std::map<int, std::vector<int>> bound_at_;
  std::vector<int> owner_;
  int next_ = 0;
};

// Assigns each node of a block to the earliest stage in which its operands and sizes are available.
class StageAssignment {
 public:
  StageAssignment(const Plan& p, Availability& available, int body, const Block& block)
      : p_(p), available_(available), body_(body) {
    for (int v : block.inputs) {
      for (int symbol : available_.symbols_of(v)) stage_of(symbol);
      bind(v);
    }
    for (size_t i = 0; i < block.nodes.size(); ++i) {
      const Node& n = block.nodes[i];
      const int stage = n.bodies.empty() ? stage_of_compute(n) : stage_of_control_flow(n);
      count_ = std::max(count_, stage + 1);
      for (int v : n.out) bind(v);
      control_flow_nodes_.resize(static_cast<size_t>(count_));
      if (!n.bodies.empty()) control_flow_nodes_[static_cast<size_t>(stage)].push_back(static_cast<int>(i));
    }
    control_flow_nodes_.resize(static_cast<size_t>(count_));
  }
  int count() const { return count_; }
  const std::vector<int>& control_flow_nodes(int stage) const {
    return control_flow_nodes_[static_cast<size_t>(stage)];
  }
  // Writes into each segment the symbols and bindings that become known with it, and clears the
  // stages of symbols for the next block.
  void write_known_symbols(std::vector<Segment>& segments) && {
    std::sort(symbols_.begin(), symbols_.end());
    for (int symbol : symbols_)
      segments[static_cast<size_t>(std::exchange(available_.symbol_at[symbol], -1))].known_symbols.push_back(
          symbol);
    for (const auto& [stage, binding] : bindings_)
      segments[static_cast<size_t>(stage)].bindings.push_back(binding);
  }

 private:
  int stage_of_compute(const Node& n) {
    int stage = 0;
    for (const Operand& o : n.in)
      if (o.kind == Operand::value) stage = std::max(stage, available_.value_at[o.index]);
    for (int v : n.out)
      for (int symbol : available_.symbols_of(v)) stage = std::max(stage, stage_of(symbol));
    for (int v : n.out) available_.value_at[v] = available_.made_at[v] = stage;
    return stage;
  }
  // Control flow runs before the nodes of its stage: the first one at which its operands are made
  // and the sizes its bodies use are known. New symbols of its results are known from then on.
  int stage_of_control_flow(const Node& n) {
    int stage = 0;
    for (const Operand& o : n.in)
      stage = std::max(stage, available_.value_at[o.index] + (available_.made_at[o.index] >= 0));
    for (int b : n.bodies) stage = std::max(stage, stage_needed_by(b));
    for (int v : n.out)
      for (int symbol : available_.symbols_of(v))
        for (int name : available_.names_of(symbol)) stage = std::max(stage, available_.symbol_at[name]);
    for (int v : n.out) {
      available_.value_at[v] = stage;
      for (int symbol : available_.symbols_of(v))
        if (available_.owns(body_, symbol) && available_.symbol_at[symbol] < 0) know(symbol, stage);
    }
    for (int v : n.out)
      for (int symbol : available_.symbols_of(v)) stage_of(symbol);
    return stage;
  }
  // The stage at which this block knows all symbols of its own that a body uses.
  int stage_needed_by(int body) const {
    int stage = 0;
    const auto shapes = [&](const std::vector<int>& values) {
      for (int v : values)
        for (int symbol : available_.symbols_of(v))
          for (int name : available_.names_of(symbol)) stage = std::max(stage, available_.symbol_at[name]);
    };
    shapes(p_.bodies[body].inputs);
    for (const Node& n : p_.bodies[body].nodes) {
      shapes(n.out);
      for (int b : n.bodies) stage = std::max(stage, stage_needed_by(b));
    }
    return stage;
  }
  void bind(int v) {
    for (int b : available_.bound_at(v)) {
      const int stage = available_.value_at[v] + 1;
      know(p_.bindings[b].symbol, stage), bindings_.emplace_back(stage, b);
      count_ = std::max(count_, stage + 1);
    }
  }
  int stage_of(int symbol) {
    if (available_.symbol_at[symbol] >= 0) return available_.symbol_at[symbol];
    int stage = 0;
    for (int name : available_.names_of(symbol)) {
      if (available_.symbol_at[name] < 0) know(name, 0);
      stage = std::max(stage, available_.symbol_at[name]);
    }
    if (available_.symbol_at[symbol] < 0) know(symbol, stage);
    return stage;
  }
  void know(int symbol, int stage) {
    if (available_.symbol_at[symbol] < 0) symbols_.push_back(symbol);
    available_.symbol_at[symbol] = stage;
  }

  const Plan& p_;
  Availability& available_;
  int body_;
  std::vector<int> symbols_;                          // that occur in the block
  std::vector<std::pair<int, int>> bindings_;         // (stage, binding)
  std::vector<std::vector<int>> control_flow_nodes_;  // per stage: nodes that run before it
  int count_ = 1;
};

}  // namespace

static void partition_block(const Plan& p, Availability& available, int body, BlockPartition& made) {
  const Block block = block_of(p, body);
  StageAssignment stages(p, available, body, block);
  std::vector<SegmentBuilder> builders;
  for (int stage = 0; stage < stages.count(); ++stage)
    builders.emplace_back(p, available, available.made_at, stage);
  const auto keep = [&](int v) {
    if (available.made_at[v] >= 0) builders[available.made_at[v]].keep(v);
  };
  for (size_t n = 0; n < block.nodes.size(); ++n) {
    const Node& node = block.nodes[n];
    const int stage = node.bodies.empty() ? available.made_at[node.out[0]] : -1;
    if (stage >= 0) builders[stage].add(node, made.node_numbers[n]);
  }
  for (const Node& node : block.nodes)
    for (const Operand& o : node.in)
      if (o.kind == Operand::value &&
          (!node.bodies.empty() || available.made_at[o.index] != available.made_at[node.out[0]]))
        keep(o.index);
  for (const Node& node : block.nodes)
    for (int v : node.out)
      if (!available.bound_at(v).empty()) keep(v);
  for (int v : block.outputs) keep(v);
  for (int stage = 0; stage < stages.count(); ++stage) {
    made.segments.push_back(std::move(builders[stage]).finish());
    made.segments.back().control_flow_nodes = stages.control_flow_nodes(stage);
  }
  std::move(stages).write_known_symbols(made.segments);
}

// The only segment of a plan without bindings and control flow. Inputs that the plan returns are
// no outputs of the segment, since no node computes them.
static Segment whole_plan_segment(const Plan& p, const std::vector<int>& numbers) {
  const Block block = block_of(p, -1);
  Segment segment{p, {}, {}, block.inputs, block.outputs, numbers, {}, {}, {}};
  segment.values.resize(p.values.size()), segment.symbols.resize(p.symbols.size());
  std::iota(segment.values.begin(), segment.values.end(), 0);
  std::iota(segment.symbols.begin(), segment.symbols.end(), 0);
  segment.known_symbols = segment.symbols;
  std::vector<bool> given(p.values.size());
  for (int v : segment.inputs) given[v] = true;
  std::erase_if(segment.outputs, [&](int v) { return given[v]; });
  std::erase_if(segment.plan.outputs, [&](const Port& o) { return given[o.value]; });
  return segment;
}

std::vector<BlockPartition> partition(const Plan& p) {
  std::vector<BlockPartition> all(1 + p.bodies.size());
  Availability available(p, all);
  if (p.bindings.empty() && p.bodies.empty()) {
    all[0].segments.push_back(whole_plan_segment(p, all[0].node_numbers));
    return all;
  }
  for (size_t b = 0; b < all.size(); ++b) partition_block(p, available, static_cast<int>(b) - 1, all[b]);
  return all;
}

}  // namespace invar::plan
