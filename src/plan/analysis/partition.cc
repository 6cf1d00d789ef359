// A program is cut where sizes become known (plan.15): what comes before such a place is one program, what comes behind it another.
#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "shape/dim_expr.h"
#include "plan/plan.h"
#include "plan/keywords.h"

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
      : value(p.values.size(), -1),
        maker(p.values.size(), -1),
        symbol(p.symbols.size(), -1),
        typical(typical_sizes(p)),
        p_(p),
        owner_(p.symbols.size(), kNone) {
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
    for (size_t b = 0; b < p.bindings.size(); ++b)
      bound_at_[p.bindings[b].value].push_back(static_cast<int>(b));
    walk(-1, all);
    for (size_t s = 0; s < owner_.size(); ++s)
      if (owner_[s] != kNone) all[static_cast<size_t>(owner_[s] + 1)].own.push_back(static_cast<int>(s));
  }
  // Symbols, names, that a symbol is or is computed from; those in the shape of a value; and bindings to its elements.
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

  bool owns(int body, int symbol) const { return owner_[symbol] == body; }

  // Filled block by block: the part of its block from which on a value is there, inputs: -1; and whose nodes make it, -1: none's.
  std::vector<int> value, maker;
  // Of the block that is cut: the part from which on a symbol is known; -1: it does not occur.
  std::vector<int> symbol;
  const std::vector<double> typical;  // sizes of all symbols

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
    std::vector<int> symbols;
    for (int b : bound_at(v)) symbols.push_back(p_.bindings[b].symbol);
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
  Stages(const Plan& p, Facts& facts, int body, const Block& block) : p_(p), facts_(facts), body_(body) {
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
  // Lets each part know what becomes known with it. The next block begins anew.
  void tell(std::vector<Part>& parts) && {
    std::sort(symbols_.begin(), symbols_.end());
    for (int symbol : symbols_)
      parts[static_cast<size_t>(std::exchange(facts_.symbol[symbol], -1))].known.push_back(symbol);
    for (const auto& [stage, binding] : bindings_)
      parts[static_cast<size_t>(stage)].bindings.push_back(binding);
  }

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
        for (int name : facts_.names_of(symbol)) stage = std::max(stage, facts_.symbol[name]);
    for (int v : n.out) {
      facts_.value[v] = stage;
      for (int symbol : facts_.symbols_of(v))
        if (facts_.owns(body_, symbol) && facts_.symbol[symbol] < 0) know(symbol, stage);
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
          for (int name : facts_.names_of(symbol)) stage = std::max(stage, facts_.symbol[name]);
    };
    shapes(p_.bodies[body].inputs);
    for (const Node& n : p_.bodies[body].nodes) {
      shapes(n.out);
      for (int b : n.bodies) stage = std::max(stage, needs(b));
    }
    return stage;
  }
  void bind(int v) {
    for (int b : facts_.bound_at(v)) {
      const int stage = facts_.value[v] + 1;
      know(p_.bindings[b].symbol, stage), bindings_.emplace_back(stage, b);
      count_ = std::max(count_, stage + 1);
    }
  }
  int stage_of(int symbol) {
    if (facts_.symbol[symbol] >= 0) return facts_.symbol[symbol];
    int stage = 0;
    for (int name : facts_.names_of(symbol)) {
      if (facts_.symbol[name] < 0) know(name, 0);
      stage = std::max(stage, facts_.symbol[name]);
    }
    if (facts_.symbol[symbol] < 0) know(symbol, stage);
    return stage;
  }
  void know(int symbol, int stage) {
    if (facts_.symbol[symbol] < 0) symbols_.push_back(symbol);
    facts_.symbol[symbol] = stage;
  }

  const Plan& p_;
  Facts& facts_;
  int body_;
  std::vector<int> symbols_;                   // that occur
  std::vector<std::pair<int, int>> bindings_;  // of parts
  std::vector<std::vector<int>> calls_;        // for each part, nodes of control flow that run before it
  int count_ = 1;
};

// One part as a plan of its own.
class Cut {
 public:
  Cut(const Plan& whole, const Facts& facts, int stage) : p_(whole), facts_(facts), stage_(stage) {
    part_.plan.numerics = p_.numerics;
    part_.plan.operation_set = p_.operation_set;
    part_.plan.choices = p_.choices;
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
    take_symbols();
    std::vector<double> typical;
    for (int symbol : part_.symbols) typical.push_back(facts_.typical[symbol]);
    assign_slots(part_.plan, typical);
    return std::move(part_);
  }

 private:
  int value(int v) {
    const auto [known, is_new] = values_.emplace(v, static_cast<int>(part_.plan.values.size()));
    if (is_new) {
      part_.plan.values.push_back(p_.values[v]), part_.plan.values.back().slot = -1;
      part_.values.push_back(v);
    }
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

  void take_symbols() {
    std::vector<int>& symbols = part_.symbols;
    for (int v : part_.values)
      for (int symbol : facts_.symbols_of(v)) {
        symbols.push_back(symbol);
        symbols.insert(symbols.end(), facts_.names_of(symbol).begin(), facts_.names_of(symbol).end());
      }
    std::sort(symbols.begin(), symbols.end());
    symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
    for (int symbol : symbols) part_.plan.symbols.push_back(p_.symbols[symbol]);
    for (Value& v : part_.plan.values)
      for (Dim& d : v.shape)
        if (d.symbol >= 0)
          d.symbol =
              static_cast<int>(std::lower_bound(symbols.begin(), symbols.end(), d.symbol) - symbols.begin());
  }

  const Plan& p_;
  const Facts& facts_;
  int stage_;
  Part part_;
  std::set<int> kept_;
  std::map<int, int> values_, weights_;  // of the whole plan to those of the part
};

}  // namespace

static void cut(const Plan& p, Facts& facts, int body, Parts& made) {
  const Block block = block_of(p, body);
  Stages stages(p, facts, body, block);
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
  std::move(stages).tell(made.parts);
}

// Of a program that is not cut. Inputs that it gives back are not its own.
static Part whole(const Plan& p, const std::vector<int>& numbers) {
  const Block block = block_of(p, -1);
  Part part{p, {}, {}, block.inputs, block.outputs, numbers, {}, {}, {}};
  part.values.resize(p.values.size()), part.symbols.resize(p.symbols.size());
  std::iota(part.values.begin(), part.values.end(), 0);
  std::iota(part.symbols.begin(), part.symbols.end(), 0);
  part.known = part.symbols;
  std::vector<bool> given(p.values.size());
  for (int v : part.inputs) given[v] = true;
  std::erase_if(part.outputs, [&](int v) { return given[v]; });
  std::erase_if(part.plan.outputs, [&](const Port& o) { return given[o.value]; });
  return part;
}

std::vector<Parts> parts_of(const Plan& p) {
  std::vector<Parts> all(1 + p.bodies.size());
  Facts facts(p, all);
  if (p.bindings.empty() && p.bodies.empty()) {
    all[0].parts.push_back(whole(p, all[0].numbers));
    return all;
  }
  for (size_t b = 0; b < all.size(); ++b) cut(p, facts, static_cast<int>(b) - 1, all[b]);
  return all;
}

}  // namespace invar::plan
