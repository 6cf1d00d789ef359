// A program is cut where sizes become known (plan.15): what comes before such a place is one program, what comes behind it another.
#include <algorithm>
#include <set>

#include "base/polynomial.h"
#include "plan/plan.h"
#include "plan/text.h"

namespace invar::plan {
namespace {

// Nodes that run one after the other: those of the program, or of a body.
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

// What is read from a plan once for all blocks.
class Facts {
 public:
  Facts(const Plan& p, std::vector<Parts>& all)
      : value(p.values.size(), -1), maker(p.values.size(), -1), p_(p), owner_(p.symbols.size(), kNone) {
    std::map<std::string, int> index;
    for (size_t s = 0; s < p.symbols.size(); ++s)
      if (is_name(p.symbols[s])) index[p.symbols[s]] = static_cast<int>(s);
    for (size_t s = 0; s < p.symbols.size(); ++s) {
      std::vector<int>& names = names_.emplace_back();
      if (is_name(p.symbols[s])) {
        names = {static_cast<int>(s)};
      } else if (const auto sum = Polynomial::parse(p.symbols[s])) {
        sum->all_names([&](const std::string& name) {
          if (const auto at = index.find(name); at != index.end()) names.push_back(at->second);
          return true;
        });
      }
    }
    for (const Binding& b : p.bindings) bound_at_[b.value].push_back(b.symbol);
    walk(-1, all);
    for (size_t b = 0; b < all.size(); ++b)
      for (int owner : owner_) all[b].own.push_back(owner + 1 == static_cast<int>(b));
  }
  // Symbols, names, that a symbol is or is computed from; those in the shape of a value; and those that are its elements.
  const std::vector<int>& names_of(int symbol) const { return names_[symbol]; }
  std::vector<int> symbols_of(int v) const {
    std::vector<int> symbols;
    for (const Dim& d : p_.values[v].shape)
      if (d.symbol >= 0) symbols.push_back(d.symbol);
    return symbols;
  }
  const std::vector<int>& bound_at(int v) const {
    static const std::vector<int> none;
    const auto at = bound_at_.find(v);
    return at == bound_at_.end() ? none : at->second;
  }

  // Filled block by block: the part of its block from which on a value is there, inputs: -1; and whose nodes make it, -1: none's.
  std::vector<int> value, maker;

 private:
  static constexpr int kNone = -2;
  void walk(int body, std::vector<Parts>& all) {
    const Block block = block_of(p_, body);
    for (int v : block.inputs) own(v, body);
    for (const Node& n : block.nodes) {
      for (int b : n.bodies) walk(b, all);
      all[body + 1].numbers.push_back(next_++);
      for (int v : n.out) own(v, body);
    }
  }
  void own(int v, int body) {
    std::vector<int> symbols = bound_at(v);
    for (int symbol : symbols_of(v))
      symbols.insert(symbols.end(), names_of(symbol).begin(), names_of(symbol).end());
    for (int name : symbols)
      if (owner_[name] == kNone) owner_[name] = body;
  }

  const Plan& p_;
  std::vector<std::vector<int>> names_;
  std::map<int, std::vector<int>> bound_at_;
  std::vector<int> owner_;
  int next_ = 0;
};

// When what a block needs is there.
class Stages {
 public:
  Stages(const Plan& p, Facts& facts, const std::vector<bool>& own, const Block& block)
      : p_(p), facts_(facts), own_(own), symbol_(p.symbols.size(), -1) {
    for (int v : block.inputs) {
      for (int symbol : facts_.symbols_of(v)) stage_of(symbol);
      bind(v);
    }
    for (size_t i = 0; i < block.nodes.size(); ++i) {
      const Node& n = block.nodes[i];
      const int stage = n.bodies.empty() ? compute(n) : flow(n);
      count_ = std::max(count_, stage + 1);
      for (int v : n.out) bind(v);
      calls_.resize(static_cast<size_t>(count_));
      if (!n.bodies.empty()) calls_[static_cast<size_t>(stage)].push_back(static_cast<int>(i));
    }
    calls_.resize(static_cast<size_t>(count_));
  }
  int count() const { return count_; }
  const std::vector<int>& calls(int stage) const { return calls_[static_cast<size_t>(stage)]; }
  std::vector<int> symbols() && { return std::move(symbol_); }

 private:
  int compute(const Node& n) {
    int stage = 0;
    for (const Operand& o : n.in)
      if (o.kind == Operand::value) stage = std::max(stage, facts_.value[o.index]);
    for (int v : n.out)
      for (int symbol : facts_.symbols_of(v)) stage = std::max(stage, stage_of(symbol));
    for (int v : n.out) facts_.value[v] = facts_.maker[v] = stage;
    return stage;
  }
  // Before the first part that has all it needs. Symbols of its results that are new are known from then on.
  int flow(const Node& n) {
    int stage = 0;
    for (const Operand& o : n.in)
      stage = std::max(stage, facts_.value[o.index] + (facts_.maker[o.index] >= 0));
    for (int b : n.bodies) stage = std::max(stage, needs(b));
    for (int v : n.out)
      for (int symbol : facts_.symbols_of(v))
        for (int name : facts_.names_of(symbol)) stage = std::max(stage, symbol_[name]);
    for (int v : n.out) {
      facts_.value[v] = stage;
      for (int symbol : facts_.symbols_of(v))
        if (own_[symbol] && symbol_[symbol] < 0) symbol_[symbol] = stage;
    }
    for (int v : n.out)
      for (int symbol : facts_.symbols_of(v)) stage_of(symbol);
    return stage;
  }
  // From when on this block knows the symbols that a body has of it.
  int needs(int body) const {
    int stage = 0;
    const auto shapes = [&](const std::vector<int>& values) {
      for (int v : values)
        for (int symbol : facts_.symbols_of(v))
          for (int name : facts_.names_of(symbol)) stage = std::max(stage, symbol_[name]);
    };
    shapes(p_.bodies[body].inputs);
    for (const Node& n : p_.bodies[body].nodes) {
      shapes(n.out);
      for (int b : n.bodies) stage = std::max(stage, needs(b));
    }
    return stage;
  }
  void bind(int v) {
    for (int symbol : facts_.bound_at(v)) {
      symbol_[symbol] = facts_.value[v] + 1;
      count_ = std::max(count_, facts_.value[v] + 2);
    }
  }
  int stage_of(int symbol) {
    if (symbol_[symbol] >= 0) return symbol_[symbol];
    int stage = 0;
    for (int name : facts_.names_of(symbol))
      stage = std::max(stage, symbol_[name] = std::max(symbol_[name], 0));
    return symbol_[symbol] = stage;
  }

  const Plan& p_;
  Facts& facts_;
  const std::vector<bool>& own_;
  std::vector<int> symbol_;              // the part from which on; -1: it does not occur
  std::vector<std::vector<int>> calls_;  // for each part, nodes of control flow that run before it
  int count_ = 1;
};

// One part as a plan of its own.
class Cut {
 public:
  Cut(const Plan& whole, const Facts& facts, int stage) : p_(whole), facts_(facts), stage_(stage) {
    part_.plan.numerics = p_.numerics;
    part_.plan.operation_set = p_.operation_set;
    part_.plan.choices = p_.choices;
    part_.plan.symbols = p_.symbols;
  }
  void add(const Node& n, int number) {
    Node& made = part_.plan.nodes.emplace_back(n);
    part_.numbers.push_back(number);
    for (Operand& o : made.in) o.index = o.kind == Operand::value ? input(o.index) : weight(o.index);
    for (int& v : made.out) v = value(v);
  }
  // Read behind this part, by it or by the caller.
  void keep(int v) {
    if (!kept_.insert(v).second) return;
    part_.outputs.push_back(v);
    part_.plan.outputs.push_back({"v" + std::to_string(v), value(v)});
  }
  Part done() && {
    assign_slots(part_.plan);
    return std::move(part_);
  }

 private:
  int value(int v) {
    const auto [known, is_new] = values_.emplace(v, static_cast<int>(part_.plan.values.size()));
    if (is_new) part_.plan.values.push_back(p_.values[v]), part_.plan.values.back().slot = -1;
    return known->second;
  }
  int input(int v) {
    if (facts_.maker[v] != stage_ && !values_.contains(v)) {
      part_.inputs.push_back(v);
      part_.plan.inputs.push_back({"v" + std::to_string(v), value(v)});
    }
    return value(v);
  }
  int weight(int w) {
    const auto [known, is_new] = weights_.emplace(w, static_cast<int>(part_.plan.weights.size()));
    if (is_new) part_.plan.weights.push_back(p_.weights[w]);
    return known->second;
  }

  const Plan& p_;
  const Facts& facts_;
  int stage_;
  Part part_;
  std::set<int> kept_;
  std::map<int, int> values_, weights_;  // of the whole plan to those of the part
};

}  // namespace

static void cut(const Plan& p, Facts& facts, const Block& block, Parts& made) {
  Stages stages(p, facts, made.own, block);
  std::vector<Cut> cuts;
  for (int stage = 0; stage < stages.count(); ++stage) cuts.emplace_back(p, facts, stage);
  const auto keep = [&](int v) {
    if (facts.maker[v] >= 0) cuts[facts.maker[v]].keep(v);
  };
  for (size_t n = 0; n < block.nodes.size(); ++n) {
    const Node& node = block.nodes[n];
    const int stage = node.bodies.empty() ? facts.maker[node.out[0]] : -1;
    if (stage >= 0) cuts[stage].add(node, made.numbers[n]);
  }
  for (const Node& node : block.nodes)
    for (const Operand& o : node.in)
      if (o.kind == Operand::value &&
          (!node.bodies.empty() || facts.maker[o.index] != facts.maker[node.out[0]]))
        keep(o.index);
  for (const Node& node : block.nodes)
    for (int v : node.out)
      if (!facts.bound_at(v).empty()) keep(v);
  for (int v : block.outputs) keep(v);
  for (int stage = 0; stage < stages.count(); ++stage) {
    made.parts.push_back(std::move(cuts[stage]).done());
    made.parts.back().calls = stages.calls(stage);
  }
  made.known = std::move(stages).symbols();
}

std::vector<Parts> parts_of(const Plan& p) {
  std::vector<Parts> all(1 + p.bodies.size());
  Facts facts(p, all);
  for (size_t b = 0; b < all.size(); ++b) {
    const Block block = block_of(p, static_cast<int>(b) - 1);
    if (p.bindings.empty() && p.bodies.empty()) {
      all[b].parts = {{p, block.inputs, block.outputs, all[b].numbers, {}}};
      all[b].known.assign(p.symbols.size(), 0);
    } else {
      cut(p, facts, block, all[b]);
    }
  }
  return all;
}

}  // namespace invar::plan
