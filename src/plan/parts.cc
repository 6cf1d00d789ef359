// A program is cut where sizes become known (plan.15): what comes before such a place is one program, what comes behind it another.
#include <algorithm>
#include <numeric>
#include <set>

#include "base/polynomial.h"
#include "plan/plan.h"
#include "plan/text.h"

namespace invar::plan {
namespace {

// The part from which on each symbol and value is known, inputs from -1 on.
struct Stages {
  std::vector<int> symbol, value;
};

Stages stages_of(const Plan& p) {
  Stages s{std::vector<int>(p.symbols.size(), 0), std::vector<int>(p.values.size(), -1)};
  std::map<std::string, int> bound;  // names that are, to the part from which on
  const auto bind = [&](int v) {
    for (const Binding& b : p.bindings)
      if (b.value == v) bound[p.symbols[b.symbol]] = s.symbol[b.symbol] = s.value[v] + 1;
  };
  for (const Port& i : p.inputs) bind(i.value);
  std::vector<bool> settled(p.symbols.size());
  const auto of_symbol = [&](int symbol) {
    if (settled[symbol] || is_name(p.symbols[symbol])) return s.symbol[symbol];
    settled[symbol] = true;  // what it is computed from stands before it
    if (const auto sum = Polynomial::parse(p.symbols[symbol]); sum && !bound.empty())
      sum->all_names([&](const std::string& name) {
        if (const auto at = bound.find(name); at != bound.end())
          s.symbol[symbol] = std::max(s.symbol[symbol], at->second);
        return true;
      });
    return s.symbol[symbol];
  };
  for (const Node& n : p.nodes) {
    int stage = 0;
    for (const Operand& o : n.in)
      if (o.kind == Operand::value) stage = std::max(stage, s.value[o.index]);
    for (int v : n.out)
      for (const Dim& d : p.values[v].shape)
        if (d.symbol >= 0) stage = std::max(stage, of_symbol(d.symbol));
    for (int v : n.out) s.value[v] = stage;
    for (int v : n.out) bind(v);
  }
  return s;
}

// One part as a plan of its own.
class Cut {
 public:
  Cut(const Plan& whole, const Stages& stages, int stage) : p_(whole), stages_(stages), stage_(stage) {
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
    if (stages_.value[v] != stage_ && !values_.contains(v)) {
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
  const Stages& stages_;
  int stage_;
  Part part_;
  std::set<int> kept_;
  std::map<int, int> values_, weights_;  // of the whole plan to those of the part
};

}  // namespace

Parts parts_of(const Plan& p) {
  if (p.bindings.empty()) {
    Part all{p, {}, {}, std::vector<int>(p.nodes.size())};
    for (const Port& i : p.inputs) all.inputs.push_back(i.value);
    for (const Port& o : p.outputs) all.outputs.push_back(o.value);
    std::iota(all.numbers.begin(), all.numbers.end(), 0);
    return {{std::move(all)}, std::vector<int>(p.symbols.size(), 0)};
  }
  const Stages stages = stages_of(p);
  Parts parts{{}, stages.symbol};
  const int last = p.nodes.empty() ? 0 : *std::max_element(stages.value.begin(), stages.value.end());
  std::vector<Cut> cuts;
  for (int stage = 0; stage <= last; ++stage) cuts.emplace_back(p, stages, stage);
  for (size_t n = 0; n < p.nodes.size(); ++n)
    cuts[stages.value[p.nodes[n].out[0]]].add(p.nodes[n], static_cast<int>(n));
  const auto keep = [&](int v) {
    if (stages.value[v] >= 0) cuts[stages.value[v]].keep(v);
  };
  for (const Node& n : p.nodes)
    for (const Operand& o : n.in)
      if (o.kind == Operand::value && stages.value[o.index] != stages.value[n.out[0]]) keep(o.index);
  for (const Binding& b : p.bindings) keep(b.value);
  for (const Port& o : p.outputs) keep(o.value);
  for (Cut& cut : cuts) parts.parts.push_back(std::move(cut).done());
  return parts;
}

}  // namespace invar::plan
