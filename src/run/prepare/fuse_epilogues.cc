// The fusion pass: pointwise nodes right behind a kernel that reports its results run in its
// epilogue, region by region, while the results are still in a cache. Results are the same bits, so
// this is tuning and no plan knows it. Fused nodes need their operands at the same time, so this
// pass plans the buffers anew; it also lets results that are views of an operand alias it.
#include <algorithm>
#include <numeric>

#include "run/prepare/program.h"

namespace invar::run {

// Whether the head's kernel can apply `node` in registers: an addition of a value from before
// `head`, then a relu, each applied to the result before it, which nobody else reads.
bool Program::can_fuse_in_register(size_t head, size_t node, const DefUse& uses) const {
  const PreparedNode &n = nodes_[node], &before = nodes_[node - 1];
  const int result = before.node->out[0];
  const ops::InRegisterEpilogue kind = n.kernel.cpu->in_register;
  const bool first = node == head + 1;
  if (kind == ops::InRegisterEpilogue::none || (!first && kind == ops::InRegisterEpilogue::add)) return false;
  if (!first && (node > head + 2 || before.kernel.cpu->in_register != ops::InRegisterEpilogue::add))
    return false;
  if (uses.last_use[result] != node || plan_->values[result].dtype != DType::f32) return false;
  int results = 0;
  for (const plan::Operand& o : n.node->in) {
    if (o.kind != plan::Operand::value || plan_->values[o.index].shape != plan_->values[result].shape)
      return false;
    if (o.index == result)
      ++results;
    else if (uses.def[o.index] >= head && uses.def[o.index] < node)
      return false;
  }
  return results == 1;
}

// Whether `node` can join the group of `head`, which all nodes between them have joined.
bool Program::can_fuse(size_t head, size_t node, const DefUse& uses) const {
  const PreparedNode &h = nodes_[head], &n = nodes_[node];
  if ((!h.kernel.cpu->epilogue && !h.kernel.cpu->add_relu_epilogue) || h.node->out.size() != 1) return false;
  if (!n.kernel.cpu->region || n.node->out.size() != 1 || n.feeds_state != h.feeds_state ||
      n.contract->find_out_of_bounds)
    return false;
  // All nodes between them have this shape, too, so no result of the group is broadcast within it.
  if (plan_->values[n.node->out[0]].shape != plan_->values[h.node->out[0]].shape) return false;
  if (!h.kernel.cpu->epilogue) return can_fuse_in_register(head, node, uses);
  bool reads_group = false;
  for (const plan::Operand& o : n.node->in)
    reads_group |= o.kind == plan::Operand::value && uses.def[o.index] >= head && uses.def[o.index] < node;
  return reads_group;
}

// Marks nodes whose result can be a view of operand 0, and returns per value the value whose buffer
// it points into, or -1. Only values that a node makes have views: the memory of an input may be
// another in each call. Outputs are no views; each keeps a buffer of its own.
std::vector<int> Program::alias_views() {
  std::vector<int> view_of(plan_->values.size(), -1);
  if (!plan_->symbols.empty() || has_memory_) return view_of;
  std::vector<bool> has_def(view_of.size()), is_output(view_of.size());
  for (const plan::Port& p : plan_->outputs) is_output[p.value] = true;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    PreparedNode& node = nodes_[n];
    for (int v : node.node->out) has_def[v] = true;
    if (!node.contract->alias_offset || node.in.empty() || node.node->in[0].kind != plan::Operand::value)
      continue;
    const int x = node.node->in[0].index, v = node.node->out[0];
    if (!has_def[x] || is_output[v] || !check(node, n, {1, 1, 0})) continue;
    const int64_t offset = node.contract->alias_offset({node.in, node.out, node.attrs});
    if (offset < 0) continue;
    view_of[v] = view_of[x] < 0 ? x : view_of[x];
    values_[v].offset = values_[x].offset + static_cast<uint64_t>(offset);
    node.is_view = true;
  }
  return view_of;
}

uint64_t Program::buffer_bytes(const plan::SlotAssignment& slots) const {
  std::vector<uint64_t> size(static_cast<size_t>(slots.count));
  ops::View view;
  for (size_t v = 0; v < slots.slot_of.size(); ++v)
    if (slots.slot_of[v] >= 0) {
      uint64_t& most = size[static_cast<size_t>(slots.slot_of[v])];
      most = std::max(most, std::min(shape(static_cast<int>(v), {1, 1, 0}, view), kTooLarge >> 20));
    }
  return std::accumulate(size.begin(), size.end(), uint64_t{0});
}

int Program::fuse_epilogues() {
  const size_t count = nodes_.size(), values = plan_->values.size();
  const std::vector<int> view_of = alias_views();
  DefUse uses{std::vector<size_t>(values, count), std::vector<size_t>(values, 0)};
  for (size_t n = 0; n < count; ++n) {
    for (int v : nodes_[n].node->out) uses.def[v] = n;
    for (const plan::Operand& o : nodes_[n].node->in)
      if (o.kind == plan::Operand::value) {
        uses.last_use[o.index] = n;
        if (view_of[o.index] >= 0) uses.last_use[view_of[o.index]] = n;
      }
  }
  for (const plan::Port& p : plan_->outputs) uses.last_use[p.value] = count;
  std::vector<int> group(count), shares_slot_with(values, -1);
  int groups = 0;
  for (size_t head = 0; head < count; head = group_end(head), ++groups) {
    group[head] = groups;
    for (size_t n = head + 1; n < count && can_fuse(head, n, uses); ++n) {
      ++nodes_[head].fused_count;
      group[n] = groups;
      // The result takes the memory of an operand that the group made and that nothing else will
      // read.
      const int out = nodes_[n].node->out[0];
      for (const plan::Operand& o : nodes_[n].node->in)
        if (o.kind == plan::Operand::value && uses.def[o.index] >= head && uses.def[o.index] < n &&
            uses.last_use[o.index] == n &&
            size_of(plan_->values[o.index].dtype) == size_of(plan_->values[out].dtype)) {
          shares_slot_with[o.index] = out;
          break;
        }
    }
  }
  const bool has_views = std::any_of(view_of.begin(), view_of.end(), [](int v) { return v >= 0; });
  if (groups == static_cast<int>(count) && !has_views) return plan_->slots;
  plan::SlotAssignment slots = plan::plan_memory(*plan_, group, shares_slot_with, view_of);
  if (has_views) {  // a small view may keep a large buffer alive
    plan::SlotAssignment without_views = plan::plan_memory(*plan_, group, shares_slot_with);
    if (const uint64_t least = buffer_bytes(without_views); buffer_bytes(slots) > least + least / 8) {
      slots = std::move(without_views);
      for (PreparedNode& n : nodes_) n.is_view = false;
      for (PreparedValue& v : values_) v.offset = 0;
    }
  }
  for (size_t v = 0; v < values; ++v) values_[v].buffer = slots.slot_of[v];
  return slots.count;
}

// The epilogue that the head's kernel gets for the nodes fused into it.
ops::Epilogue Program::make_epilogue(const PreparedNode& head) {
  ops::Epilogue e{run_fused, &head, !head.kernel.cpu->epilogue};
  for (size_t i = 1; e.add_relu && i <= head.fused_count; ++i) {
    const PreparedNode& n = (&head)[i];
    e.relu |= n.kernel.cpu->in_register == ops::InRegisterEpilogue::relu;
    for (size_t k = 0; n.kernel.cpu->in_register == ops::InRegisterEpilogue::add && k < n.in.size(); ++k)
      if (n.node->in[k].index != (&head)[i - 1].node->out[0]) e.other = &n.in[k];
  }
  return e;
}

void Program::run_fused(const void* head, const ops::Region& region) {
  const PreparedNode* const node = static_cast<const PreparedNode*>(head);
  for (size_t i = 1; i <= node->fused_count; ++i) node[i].kernel.cpu->region(node[i].call, region);
}

size_t Program::fused() const {
  size_t count = 0;
  for (const PreparedNode& n : nodes_) count += n.fused_count;
  return count;
}

size_t Program::views() const {
  return static_cast<size_t>(
      std::count_if(nodes_.begin(), nodes_.end(), [](const PreparedNode& n) { return n.is_view; }));
}

}  // namespace invar::run
