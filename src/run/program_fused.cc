// Fusion: pointwise nodes right behind a node that tells of its results run in its epilogue, part by part, while a cache still has
// them. What comes of a node is the same, so this is tuning and no plan knows it; but nodes that run together need their operands
// together, so buffers are assigned anew.
#include <algorithm>

#include "run/program.h"

namespace invar::run {

// Whether `node` follows `head`, as those between them do. maker: the node that makes each value.
bool Program::follows(size_t head, size_t node, const std::vector<size_t>& maker) const {
  const Node &h = nodes_[head], &n = nodes_[node];
  if (!h.kernel->epilogue || h.node->out.size() != 1) return false;
  if (!n.kernel->region || n.node->out.size() != 1 || n.core != h.core || n.reference->stray) return false;
  // All between them have that shape, too, so none of them broadcasts another.
  if (plan_->values[n.node->out[0]].shape != plan_->values[h.node->out[0]].shape) return false;
  bool reads = false;
  for (const plan::Operand& o : n.node->in)
    reads |= o.kind == plan::Operand::value && maker[o.index] >= head && maker[o.index] < node;
  return reads;
}

int Program::fuse() {
  const size_t count = nodes_.size();
  std::vector<size_t> maker(plan_->values.size(), count), last(plan_->values.size(), 0);
  for (size_t n = 0; n < count; ++n) {
    for (int v : nodes_[n].node->out) maker[v] = n;
    for (const plan::Operand& o : nodes_[n].node->in)
      if (o.kind == plan::Operand::value) last[o.index] = n;
  }
  for (const plan::Port& p : plan_->outputs) last[p.value] = count;
  std::vector<int> step(count), host(plan_->values.size(), -1);
  int steps = 0;
  for (size_t head = 0; head < count; head = behind(head), ++steps) {
    step[head] = steps;
    for (size_t n = head + 1; n < count && follows(head, n, maker); ++n) {
      ++nodes_[head].followers;
      step[n] = steps;
      // In the place of an operand that nothing else will read.
      const int out = nodes_[n].node->out[0];
      for (const plan::Operand& o : nodes_[n].node->in)
        if (o.kind == plan::Operand::value && maker[o.index] >= head && maker[o.index] < n &&
            last[o.index] == n &&
            size_of(plan_->values[o.index].dtype) == size_of(plan_->values[out].dtype)) {
          host[o.index] = out;
          break;
        }
    }
  }
  if (steps == static_cast<int>(count)) return plan_->slots;
  plan::Slots slots = plan::slots_of(*plan_, step, host);
  buffer_ = std::move(slots.of);
  return slots.count;
}

size_t Program::fused() const {
  size_t count = 0;
  for (const Node& n : nodes_) count += n.followers;
  return count;
}

void Program::follow(const void* head, const ops::Region& region) {
  const Node* const node = static_cast<const Node*>(head);
  for (size_t i = 1; i <= node->followers; ++i) node[i].kernel->region(node[i].call, region);
}

}  // namespace invar::run
