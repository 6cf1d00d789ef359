// Fusion: pointwise nodes right behind a node that tells of its results run in its epilogue, part by part, while a cache still has
// them. What comes of a node is the same, so this is tuning and no plan knows it; but nodes that run together need their operands
// together, so buffers are assigned anew.
#include <algorithm>
#include <numeric>

#include "run/prepare/program.h"

namespace invar::run {

// Whether a node's row can do `node` in registers: a sum with what was there before `head`, then a relu, each of the result before
// it, which nobody else reads.
bool Program::follows_lightly(size_t head, size_t node, const Reads& reads) const {
  const Node &n = nodes_[node], &before = nodes_[node - 1];
  const int result = before.node->out[0];
  const ops::Light light = n.kernel->light;
  const bool first = node == head + 1;
  if (light == ops::Light::none || (!first && light == ops::Light::add)) return false;
  if (!first && (node > head + 2 || before.kernel->light != ops::Light::add)) return false;
  if (reads.last[result] != node || plan_->values[result].dtype != DType::f32) return false;
  int results = 0;
  for (const plan::Operand& o : n.node->in) {
    if (o.kind != plan::Operand::value || plan_->values[o.index].shape != plan_->values[result].shape)
      return false;
    if (o.index == result)
      ++results;
    else if (reads.maker[o.index] >= head && reads.maker[o.index] < node)
      return false;
  }
  return results == 1;
}

// Whether `node` follows `head`, as those between them do.
bool Program::follows(size_t head, size_t node, const Reads& reads) const {
  const Node &h = nodes_[head], &n = nodes_[node];
  if ((!h.kernel->epilogue && !h.kernel->light_epilogue) || h.node->out.size() != 1) return false;
  if (!n.kernel->region || n.node->out.size() != 1 || n.core != h.core || n.reference->stray) return false;
  // All between them have that shape, too, so none of them broadcasts another.
  if (plan_->values[n.node->out[0]].shape != plan_->values[h.node->out[0]].shape) return false;
  if (!h.kernel->epilogue) return follows_lightly(head, node, reads);
  bool follows = false;
  for (const plan::Operand& o : n.node->in)
    follows |= o.kind == plan::Operand::value && reads.maker[o.index] >= head && reads.maker[o.index] < node;
  return follows;
}

// Of what a node makes, and not of what is fed, which may lie elsewhere in each call. What is asked for has a buffer of its own.
std::vector<int> Program::place_parts() {
  std::vector<int> within(plan_->values.size(), -1);
  if (!plan_->symbols.empty() || has_memory_) return within;
  std::vector<bool> made(within.size()), asked(within.size());
  for (const plan::Port& p : plan_->outputs) asked[p.value] = true;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    Node& node = nodes_[n];
    for (int v : node.node->out) made[v] = true;
    if (!node.kernel->lies || node.in.empty() || node.node->in[0].kind != plan::Operand::value) continue;
    const int x = node.node->in[0].index, v = node.node->out[0];
    if (!made[x] || asked[v] || !check(*node.reference, node, n, {1, 1, 0})) continue;
    const int64_t at = node.kernel->lies({node.in, node.out, node.attrs});
    if (at < 0) continue;
    within[v] = within[x] < 0 ? x : within[x];
    shift_[v] = shift_[x] + static_cast<uint64_t>(at), node.lies = true;
  }
  return within;
}

uint64_t Program::bytes_in(const plan::Slots& slots) const {
  std::vector<uint64_t> size(static_cast<size_t>(slots.count));
  ops::View view;
  for (size_t v = 0; v < slots.of.size(); ++v)
    if (slots.of[v] >= 0) {
      uint64_t& most = size[static_cast<size_t>(slots.of[v])];
      most = std::max(most, std::min(shape(static_cast<int>(v), {1, 1, 0}, view), kTooLarge >> 20));
    }
  return std::accumulate(size.begin(), size.end(), uint64_t{0});
}

int Program::fuse() {
  const size_t count = nodes_.size();
  const std::vector<int> within = place_parts();
  Reads reads{std::vector<size_t>(plan_->values.size(), count), std::vector<size_t>(plan_->values.size(), 0)};
  auto& [maker, last] = reads;
  for (size_t n = 0; n < count; ++n) {
    for (int v : nodes_[n].node->out) maker[v] = n;
    for (const plan::Operand& o : nodes_[n].node->in)
      if (o.kind == plan::Operand::value) {
        last[o.index] = n;
        if (within[o.index] >= 0) last[within[o.index]] = n;
      }
  }
  for (const plan::Port& p : plan_->outputs) last[p.value] = count;
  std::vector<int> step(count), host(plan_->values.size(), -1);
  int steps = 0;
  for (size_t head = 0; head < count; head = behind(head), ++steps) {
    step[head] = steps;
    for (size_t n = head + 1; n < count && follows(head, n, reads); ++n) {
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
  const bool parts = std::any_of(within.begin(), within.end(), [](int v) { return v >= 0; });
  if (steps == static_cast<int>(count) && !parts) return plan_->slots;
  plan::Slots slots = plan::slots_of(*plan_, step, host, within);
  if (parts) {  // a small part may keep a large whole
    plan::Slots apart = plan::slots_of(*plan_, step, host);
    if (const uint64_t least = bytes_in(apart); bytes_in(slots) > least + least / 8) {
      slots = std::move(apart);
      for (Node& n : nodes_) n.lies = false;
      std::fill(shift_.begin(), shift_.end(), 0);
    }
  }
  buffer_ = std::move(slots.of);
  return slots.count;
}

// What a node's row is told of those that follow it.
ops::Epilogue Program::epilogue_of(const Node& head) {
  ops::Epilogue e{follow, &head, !head.kernel->epilogue};
  for (size_t i = 1; e.light && i <= head.followers; ++i) {
    const Node& n = (&head)[i];
    e.relu |= n.kernel->light == ops::Light::relu;
    for (size_t k = 0; n.kernel->light == ops::Light::add && k < n.in.size(); ++k)
      if (n.node->in[k].index != (&head)[i - 1].node->out[0]) e.other = &n.in[k];
  }
  return e;
}

size_t Program::fused() const {
  size_t count = 0;
  for (const Node& n : nodes_) count += n.followers;
  return count;
}

size_t Program::parts() const {
  return static_cast<size_t>(
      std::count_if(nodes_.begin(), nodes_.end(), [](const Node& n) { return n.lies; }));
}

void Program::follow(const void* head, const ops::Region& region) {
  const Node* const node = static_cast<const Node*>(head);
  for (size_t i = 1; i <= node->followers; ++i) node[i].kernel->region(node[i].call, region);
}

}  // namespace invar::run
