#include "plan/memory_report.h"

namespace invar::plan {

Result<std::string> memory_report(const Plan& plan, const std::map<std::string, int64_t>& sizes) {
  INVAR_TRY(const Footprint f, footprint(plan, sizes));
  std::string text = std::to_string(f.weights + f.live) + " bytes: weights " + std::to_string(f.weights) +
                     ", alive together " + std::to_string(f.live) + " (buffers " + std::to_string(f.buffers) +
                     ")";
  std::string at;
  for (const DimExpr& symbol : plan.symbols) {
    const std::string* name = symbol.as_symbol();
    if (!name) continue;
    const auto it = sizes.find(*name);
    at += (at.empty() ? " at " : ", ") + *name + "=" +
          std::to_string(it == sizes.end() ? kTypical : it->second);
  }
  return at.empty() ? text : text + at + "; alive there " + f.formula;
}

}  // namespace invar::plan
