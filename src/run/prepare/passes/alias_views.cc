// Finds nodes whose result can be a view of operand 0. Only values that a node makes have views:
// the memory of an input may be another in each call. Outputs are no views; each keeps a buffer of
// its own. A reshape is a view in every step. A slice of rows is one in steps of a single row: it
// has a buffer for the others, and the executor decides (Executor::bind_views).
#include <algorithm>
#include <array>

#include "run/prepare/passes/passes.h"

namespace invar::run {
namespace {

// No two have a size in common, so what is a view of the same bytes in all of them depends on none.
constexpr std::array kSteps = {StepShape{1, 1, 0, 1}, StepShape{2, 3, 4, 5}, StepShape{7, 8, 9, 10}};

// The byte offset of a node's result in operand 0 in such a step; negative: it is no view.
int64_t offset_in(const Executable& e, size_t n, const StepShape& step) {
  const PreparedNode& node = e.nodes[n];
  NodeShapes shapes;
  if (!e.shapes(node, step, shapes) || !e.check(n, step)) return -1;
  return node.contract->alias_offset({shapes.in, shapes.out, node.attrs});
}

}  // namespace

Status alias_views(Executable& e, const Target& target) {
  const bool has_symbols = !e.plan->symbols.empty();
  const auto fits = [&](int64_t offset) { return !target.device || offset % Allocation::kAlign == 0; };
  std::vector<bool> has_def(e.values.size()), is_output(e.values.size());
  for (const plan::Port& p : e.plan->outputs) is_output[p.value] = true;
  for (size_t n = 0; n < e.nodes.size(); ++n) {
    PreparedNode& node = e.nodes[n];
    for (int v : node.node->out) has_def[v] = true;
    if (!node.contract->alias_offset || node.join >= 0 || node.node->out.size() != 1 ||
        node.node->in.empty() || node.node->in[0].kind != plan::Operand::value)
      continue;
    const int x = node.node->in[0].index, v = node.node->out[0];
    if (!has_def[x] || is_output[v]) continue;
    const int64_t offset = offset_in(e, n, kSteps[0]);
    if (offset < 0 || !fits(offset)) continue;
    const bool always = !has_symbols || std::ranges::all_of(kSteps, [&](const StepShape& step) {
      return offset_in(e, n, step) == offset;
    });
    const int base = e.values[x].view_of < 0 ? x : e.values[x].view_of;
    if (always) {
      e.values[v].view_of = base;
      e.values[v].offset = e.values[x].offset + static_cast<uint64_t>(offset);
      node.is_view = true;
    } else if (e.values[base].may_view < 0 && e.has_memory) {
      e.values[v].may_view = base;
    }
  }
  return {};
}

}  // namespace invar::run
