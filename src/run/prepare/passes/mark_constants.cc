// Marks nodes that depend on weights alone, such as a norm's weight plus one or the exponential of
// a decay. The compiler leaves them, since a plan stores no result of arithmetic that a checkpoint
// does not have; an executor computes them once for its weights (Executor::attach).
#include <algorithm>

#include "run/prepare/passes/passes.h"

namespace invar::run {
namespace {

// Larger ones, such as widened matrices, would keep memory that other values can share.
constexpr uint64_t kMostBytes = uint64_t{1} << 20;

bool is_small(const Executable& e, int v) {
  const auto is_open = [](const plan::DimRef& d) { return d.symbol >= 0; };
  ops::View view;
  return std::ranges::none_of(e.plan->values[v].shape, is_open) && e.shape(v, {1, 1, 0}, view) <= kMostBytes;
}

}  // namespace

Status mark_constants(Executable& e, const Target&) {
  std::vector<bool> is_output(e.values.size());
  for (const plan::Port& p : e.plan->outputs) is_output[p.value] = true;
  for (PreparedNode& n : e.nodes) {
    const auto is_constant = [&](const plan::Operand& o) {
      return o.kind == plan::Operand::weight ||
             (o.kind == plan::Operand::value && e.values[o.index].is_constant);
    };
    const auto may_stay = [&](int v) { return !is_output[v] && is_small(e, v); };
    n.is_constant = !n.node->in.empty() && n.node->state < 0 && n.join < 0 && !n.library &&
                    n.node->bodies.empty() && !n.contract->stateful && !n.contract->find_out_of_bounds &&
                    std::ranges::all_of(n.node->in, is_constant) &&
                    std::ranges::all_of(n.node->out, may_stay);
    for (const int v : n.node->out) e.values[v].is_constant = n.is_constant;
  }
  return {};
}

}  // namespace invar::run
