// Liveness backwards from the stateful nodes, and from outputs that feed states of other stages.
// The other nodes, above all the projection to the vocabulary, are not needed for rows of a prompt
// whose logits nobody asks for.
#include "run/prepare/passes/passes.h"

namespace invar::run {

Status mark_feeds_state(Executable& e, const Target&) {
  for (auto n = e.nodes.rbegin(); n != e.nodes.rend(); ++n) {
    n->feeds_state = n->node->state >= 0;
    for (int v : n->node->out) n->feeds_state |= e.values[v].feeds_state;
    if (!n->feeds_state) continue;
    for (int v : n->node->out) e.values[v].feeds_state = true;  // it runs, so all its results need memory
    for (const plan::Operand& o : n->node->in)
      if (o.kind == plan::Operand::value) e.values[o.index].feeds_state = true;
  }
  for (const plan::Port& i : e.plan->inputs) e.values[i.value].feeds_state = true;
  return {};
}

}  // namespace invar::run
