// Parts of a plan as plans of their own, see segment_builder.h.
#include "plan/analysis/segment_builder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "shape/dim_expr.h"

namespace invar::plan {

SymbolUses::SymbolUses(const Plan& p) : typical(typical_sizes(p)), whole_(p) {
  std::map<std::string, int> index;
  for (size_t s = 0; s < p.symbols.size(); ++s)
    if (const std::string* name = p.symbols[s].as_symbol()) index[*name] = static_cast<int>(s);
  for (const DimExpr& symbol : p.symbols) {
    std::vector<int>& names = names_.emplace_back();
    symbol.all_symbols([&](const std::string& name) {
      if (const auto at = index.find(name); at != index.end()) names.push_back(at->second);
      return true;
    });
  }
}

std::vector<int> SymbolUses::symbols_of(int v) const {
  std::vector<int> symbols;
  for (const DimRef& d : whole_.values[v].shape)
    if (d.symbol >= 0) symbols.push_back(d.symbol);
  return symbols;
}

SegmentBuilder::SegmentBuilder(const Plan& whole, const SymbolUses& uses, std::span<const int> made_at,
                               int part)
    : p_(whole), uses_(uses), made_at_(made_at), part_(part) {
  segment_.plan.numerics = p_.numerics;
  segment_.plan.operation_set = p_.operation_set;
  segment_.plan.choices = p_.choices;
}

void SegmentBuilder::add(const Node& n, int number) {
  Node& made = segment_.plan.nodes.emplace_back(n);
  segment_.node_numbers.push_back(number);
  for (Operand& o : made.in) o.index = o.kind == Operand::value ? input(o.index) : weight(o.index);
  for (int& v : made.out) v = value(v);
  if (made.state >= 0) made.state = state(made.state);
}

void SegmentBuilder::keep(int v) {
  if (!kept_.insert(v).second) return;
  segment_.outputs.push_back(v);
  segment_.plan.outputs.push_back({"v" + std::to_string(v), value(v)});
}

Segment SegmentBuilder::finish() && {
  renumber_symbols();
  std::vector<double> typical;
  for (int symbol : segment_.symbols) typical.push_back(uses_.typical[symbol]);
  assign_slots(segment_.plan, typical);
  return std::move(segment_);
}

int SegmentBuilder::value(int v) {
  const auto [known, is_new] = values_.emplace(v, static_cast<int>(segment_.plan.values.size()));
  if (is_new) {
    segment_.plan.values.push_back(p_.values[v]), segment_.plan.values.back().slot = -1;
    segment_.values.push_back(v);
  }
  return known->second;
}

int SegmentBuilder::input(int v) {
  if (made_at_[v] != part_ && !values_.contains(v)) {
    segment_.inputs.push_back(v);
    segment_.plan.inputs.push_back({"v" + std::to_string(v), value(v)});
  }
  return value(v);
}

int SegmentBuilder::weight(int w) {
  const auto [known, is_new] = weights_.emplace(w, static_cast<int>(segment_.plan.weights.size()));
  if (is_new) segment_.plan.weights.push_back(p_.weights[w]);
  return known->second;
}

int SegmentBuilder::state(int s) {
  const auto [known, is_new] = states_.emplace(s, static_cast<int>(segment_.plan.states.size()));
  if (is_new) segment_.plan.states.push_back(p_.states[s]);
  return known->second;
}

// Keeps the symbols that occur and the names they are computed from.
void SegmentBuilder::renumber_symbols() {
  std::vector<int>& symbols = segment_.symbols;
  for (int v : segment_.values)
    for (int symbol : uses_.symbols_of(v)) {
      symbols.push_back(symbol);
      symbols.insert(symbols.end(), uses_.names_of(symbol).begin(), uses_.names_of(symbol).end());
    }
  std::sort(symbols.begin(), symbols.end());
  symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
  for (int symbol : symbols) segment_.plan.symbols.push_back(p_.symbols[symbol]);
  for (Value& v : segment_.plan.values)
    for (DimRef& d : v.shape)
      if (d.symbol >= 0)
        d.symbol =
            static_cast<int>(std::lower_bound(symbols.begin(), symbols.end(), d.symbol) - symbols.begin());
}

}  // namespace invar::plan
