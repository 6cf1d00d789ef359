// Finds nodes whose result can be a view of operand 0. Only values that a node makes have views:
// the memory of an input may be another in each call. Outputs are no views; each keeps a buffer of
// its own.
#include "run/prepare/passes/passes.h"

namespace invar::run {

Status alias_views(Executable& e, const Target& target) {
  if (target.device || !e.plan->symbols.empty() || e.has_memory) return {};
  const StepShape step{1, 1, 0};
  NodeShapes shapes;
  std::vector<bool> has_def(e.values.size()), is_output(e.values.size());
  for (const plan::Port& p : e.plan->outputs) is_output[p.value] = true;
  for (size_t n = 0; n < e.nodes.size(); ++n) {
    PreparedNode& node = e.nodes[n];
    for (int v : node.node->out) has_def[v] = true;
    if (!node.contract->alias_offset || node.node->in.empty() ||
        node.node->in[0].kind != plan::Operand::value)
      continue;
    const int x = node.node->in[0].index, v = node.node->out[0];
    if (!has_def[x] || is_output[v] || !e.check(n, step)) continue;
    e.shapes(node, step, shapes);
    const int64_t offset = node.contract->alias_offset({shapes.in, shapes.out, node.attrs});
    if (offset < 0) continue;
    e.values[v].view_of = e.values[x].view_of < 0 ? x : e.values[x].view_of;
    e.values[v].offset = e.values[x].offset + static_cast<uint64_t>(offset);
    node.is_view = true;
  }
  return {};
}

}  // namespace invar::run
