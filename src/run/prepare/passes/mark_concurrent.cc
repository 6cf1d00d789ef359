// Marks runs of nodes of one kernel that do not depend on each other, such as the projections of
// the same rows. The pool splits their units as one range, which costs one hand-over to the workers
// and fills them better; on a GPU their kernel takes them as one batch, where it can. No node of a
// run touches a buffer that another one of it writes.
#include "run/prepare/passes/passes.h"

namespace invar::run {
namespace {

// A batch with a prologue, not all of which may run together, keeps its rows in memory.
void drop_prologue(Executable& e, size_t head) {
  for (const size_t n : e.nodes[head].prologue) e.nodes[n].in_prologue = false;
  e.nodes[head].prologue.clear(), e.nodes[head].batch_end = 0;
  e.nodes[head].prologue_join = nullptr;
}

}  // namespace

Status mark_concurrent(Executable& e, const Target& target) {
  // Per buffer: the first node of the run that last wrote or read it.
  std::vector<size_t> written_by(e.buffers, e.nodes.size()), read_by = written_by;
  auto for_each_buffer = [&e](const PreparedNode& n, const auto& write, const auto& read) {
    for (int v : n.node->out) write(static_cast<size_t>(e.values[v].buffer));
    for (const plan::Operand& o : n.node->in) {
      if (o.kind != plan::Operand::value) continue;
      const PreparedValue& v = e.values[o.index];
      read(static_cast<size_t>(v.buffer));
      // In some steps it lies in the buffer of another value.
      const int base = v.view_of < 0 ? v.may_view : e.values[v.view_of].may_view;
      if (base >= 0) read(static_cast<size_t>(e.values[base].buffer));
    }
  };
  size_t first = 0;
  for (size_t n = 0; n < e.nodes.size(); n = e.group_end(n)) {
    PreparedNode& node = e.nodes[n];
    node.concurrent = n > 0 && node.kernel == e.nodes[first].kernel &&
                      node.feeds_state == e.nodes[first].feeds_state && node.node->state < 0 &&
                      node.is_constant == e.nodes[first].is_constant && !node.in_prologue && node.join < 0 &&
                      (!target.device || node.kernel.gpu->enqueue_batch);
    const bool in_batch = n > first && n < e.nodes[first].batch_end;  // of one with a prologue
    if (e.nodes[first].batch_end) node.concurrent &= in_batch;
    for (size_t m = n; m < e.group_end(n); ++m)
      for_each_buffer(
          e.nodes[m], [&](size_t b) { node.concurrent &= written_by[b] != first && read_by[b] != first; },
          [&](size_t b) { node.concurrent &= written_by[b] != first; });
    if (!node.concurrent) {
      if (in_batch) drop_prologue(e, first);
      first = n;
    }
    for (size_t m = n; m < e.group_end(n); ++m)
      for_each_buffer(
          e.nodes[m], [&](size_t b) { written_by[b] = first; }, [&](size_t b) { read_by[b] = first; });
  }
  return {};
}

}  // namespace invar::run
