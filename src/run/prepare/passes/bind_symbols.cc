// Names the sizes that the plan's symbols take from a step, and refuses what no step can hold.
#include "run/prepare/passes/passes.h"

namespace invar::run {

Status bind_symbols(Executable& e, const Target&) {
  using Symbol = Executable::Symbol;
  for (const DimExpr& symbol : e.plan->symbols) {
    const std::string s = symbol.text();
    if (s == "batch") {
      e.symbols.push_back(Symbol::batch);
    } else if (s == "seq") {
      e.symbols.push_back(Symbol::seq);
    } else if (s == "past") {
      e.symbols.push_back(Symbol::past);
    } else if (s == "source") {
      e.symbols.push_back(Symbol::source);
    } else if (!symbol.as_symbol() &&
               symbol.all_symbols([](auto& name) { return name == "seq" || name == "past"; })) {
      e.symbols.push_back(Symbol::derived);  // such as min(seq,1) of a slice
    } else {
      return not_covered("the plan's symbol '" + s +
                         "' cannot be bound; a session binds batch, seq, past and source");
    }
  }
  for (const plan::Value& v : e.plan->values)
    if (v.shape.size() > ops::kMaxRank)
      return not_covered("the plan has a tensor of rank " + std::to_string(v.shape.size()));
  for (const plan::Weight& w : e.plan->weights)
    if (w.shape.size() > ops::kMaxRank) return not_covered("weight " + w.name + " has too many dimensions");
  for (const plan::Value& v : e.plan->values)
    for (const plan::DimRef& d : v.shape)
      e.shaped_by_past |= d.symbol >= 0 &&
                          (e.symbols[d.symbol] == Symbol::past ||
                           !e.plan->symbols[d.symbol].all_symbols([](auto& name) { return name != "past"; }));
  return {};
}

}  // namespace invar::run
