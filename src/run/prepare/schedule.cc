// Which nodes run at once, and by how many workers.
#include "run/prepare/program.h"
#include "run/execute/worker_count.h"

namespace invar::run {

// Runs of nodes of one kernel that do not depend on one another, such as projections of the same rows: shared out together
// they cost one hand-over, and their units fill the workers better. None touches a buffer that another writes.
void Program::mark_joins() {
  std::vector<size_t> written(offset_.size(), nodes_.size()),
      read = written;  // per buffer: the run that last did so
  auto touches = [this](const Node& n, const auto& writes, const auto& reads) {
    for (int v : n.node->out) writes(static_cast<size_t>(buffer_[v]));
    for (const plan::Operand& o : n.node->in)
      if (o.kind == plan::Operand::value) reads(static_cast<size_t>(buffer_[o.index]));
  };
  size_t first = 0;
  for (size_t n = 0; n < nodes_.size(); n = behind(n)) {
    Node& node = nodes_[n];
    node.joins = n > 0 && node.kernel == nodes_[first].kernel && node.core == nodes_[first].core &&
                 node.node->state < 0;
    for (size_t m = n; m < behind(n); ++m)
      touches(
          nodes_[m], [&](size_t b) { node.joins &= written[b] != first && read[b] != first; },
          [&](size_t b) { node.joins &= written[b] != first; });
    if (!node.joins) first = n;
    for (size_t m = n; m < behind(n); ++m)
      touches(
          nodes_[m], [&](size_t b) { written[b] = first; }, [&](size_t b) { read[b] = first; });
  }
}

// On the host each of them would need memory of its own between its phases; a GPU's kernel knows what it shares.
size_t Program::joined_end(size_t first) const {
  size_t end = behind(first);
  while (
      end < nodes_.size() && nodes_[end].joins &&
      (device_ ? nodes_[first].kernel->enqueue_all != nullptr : !nodes_[first].shared && !nodes_[end].shared))
    end = behind(end);
  return end;
}

void Program::mark_turns() {
  turns_.clear();
  for (size_t n = 0, end; n < nodes_.size(); n = end) {
    end = joined_end(n);
    if (nodes_[n].lies && end == n + 1) continue;
    int64_t work = 0;
    bool strays = false;
    for (size_t m = n; m < end; ++m) work += nodes_[m].work, strays |= nodes_[m].reference->stray != nullptr;
    turns_.push_back({n, end, workers_for(work, workers_), strays});
  }
}

}  // namespace invar::run
