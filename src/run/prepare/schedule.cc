// The scheduling pass: which neighbouring nodes run concurrently, and with how many workers.
#include "run/execute/worker_count.h"
#include "run/prepare/program.h"

namespace invar::run {

// Marks runs of nodes of one kernel that do not depend on each other, such as the projections of
// the same rows. The pool splits their units as one range, which costs one hand-over to the workers
// and fills them better. No node of a run touches a buffer that another one of it writes.
void Program::mark_concurrent() {
  // Per buffer: the first node of the run that last wrote or read it.
  std::vector<size_t> written_by(buffer_offset_.size(), nodes_.size()), read_by = written_by;
  auto for_each_buffer = [this](const PreparedNode& n, const auto& write, const auto& read) {
    for (int v : n.node->out) write(static_cast<size_t>(values_[v].buffer));
    for (const plan::Operand& o : n.node->in)
      if (o.kind == plan::Operand::value) read(static_cast<size_t>(values_[o.index].buffer));
  };
  size_t first = 0;
  for (size_t n = 0; n < nodes_.size(); n = group_end(n)) {
    PreparedNode& node = nodes_[n];
    node.concurrent = n > 0 && node.kernel == nodes_[first].kernel &&
                      node.feeds_state == nodes_[first].feeds_state && node.node->state < 0;
    for (size_t m = n; m < group_end(n); ++m)
      for_each_buffer(
          nodes_[m], [&](size_t b) { node.concurrent &= written_by[b] != first && read_by[b] != first; },
          [&](size_t b) { node.concurrent &= written_by[b] != first; });
    if (!node.concurrent) first = n;
    for (size_t m = n; m < group_end(n); ++m)
      for_each_buffer(
          nodes_[m], [&](size_t b) { written_by[b] = first; }, [&](size_t b) { read_by[b] = first; });
  }
}

// The end of the concurrent run that begins at `first`. On the host, nodes with memory between
// phases run alone, since each would need memory of its own; a GPU's kernel knows how its calls
// share it.
size_t Program::concurrent_end(size_t first) const {
  size_t end = group_end(first);
  const bool batches = device_ && nodes_[first].kernel.gpu->enqueue_batch;
  while (end < nodes_.size() && nodes_[end].concurrent &&
         (device_ ? batches : !nodes_[first].shared_bytes && !nodes_[end].shared_bytes))
    end = group_end(end);
  return end;
}

void Program::schedule_waves() {
  waves_.clear();
  for (size_t n = 0, end; n < nodes_.size(); n = end) {
    end = concurrent_end(n);
    if (nodes_[n].is_view && end == n + 1) continue;
    int64_t bytes = 0;
    bool has_indices = false;
    for (size_t m = n; m < end; ++m) {
      bytes += nodes_[m].bytes_touched;
      has_indices |= nodes_[m].contract->find_out_of_bounds != nullptr;
    }
    waves_.push_back({n, end, workers_for(bytes, workers_), has_indices});
  }
}

}  // namespace invar::run
