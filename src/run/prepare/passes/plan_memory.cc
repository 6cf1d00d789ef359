// Gives every value a buffer: the plan's slot, or one planned anew for a GPU and where nodes are
// fused or results alias. Fused nodes need their operands at the same time, as do the nodes of a
// batch with its prologue, or of a chain and those between them, and a view keeps the value that it
// points into alive.
#include <algorithm>
#include <numeric>

#include "plan/memory_plan.h"
#include "run/prepare/passes/passes.h"

namespace invar::run {
namespace {

uint64_t bytes_of(const Executable& e, const plan::SlotAssignment& slots) {
  std::vector<uint64_t> size(static_cast<size_t>(slots.count));
  ops::View view;
  for (size_t v = 0; v < slots.slot_of.size(); ++v)
    if (slots.slot_of[v] >= 0) {
      uint64_t& most = size[static_cast<size_t>(slots.slot_of[v])];
      most = std::max(most,
                      std::min(e.shape(static_cast<int>(v), {1, 1, 0}, view), Executable::kTooLarge >> 20));
    }
  return std::accumulate(size.begin(), size.end(), uint64_t{0});
}

// GPU: the end of the nodes from `first` on that one batch of their kernel can compute, because
// none reads what another makes, such as the positions of queries and keys. They are few, so their
// operands may stay until all have run.
size_t batch_end(const Executable& e, size_t first) {
  constexpr size_t kMost = 4;
  const PreparedNode& head = e.nodes[first];
  const auto is_alone = [](const PreparedNode& n) {
    return n.node->state < 0 && n.fused_count == 0 && !n.in_prologue && n.prologue.empty();
  };
  size_t end = first + 1;
  if (!head.kernel.gpu || !head.kernel.gpu->enqueue_batch || !is_alone(head)) return e.group_end(first);
  const auto reads_run = [&](const PreparedNode& n) {
    for (size_t m = first; m < end; ++m)
      for (const int v : e.nodes[m].node->out)
        if (std::ranges::find(n.node->in, plan::Operand{plan::Operand::value, v}) != n.node->in.end())
          return true;
    return false;
  };
  while (end < e.nodes.size() && end < first + kMost && e.nodes[end].kernel == head.kernel &&
         e.nodes[end].feeds_state == head.feeds_state && is_alone(e.nodes[end]) && !reads_run(e.nodes[end]))
    ++end;
  return end;
}

// The slots for fused groups, batches and views. A small view may keep a large buffer alive: where
// views cost much memory there are none. What a decoder computes is small beside its weights.
plan::SlotAssignment plan_slots(Executable& e, bool has_views) {
  std::vector<int> group(e.nodes.size()), shares_slot_with, view_of, keeps;
  int groups = 0;
  const auto fill = [&group](size_t begin, size_t end, int with) {
    std::fill(group.begin() + static_cast<int64_t>(begin), group.begin() + static_cast<int64_t>(end), with);
  };
  for (size_t head = 0, end; head < e.nodes.size(); head = end, ++groups)
    fill(head, end = batch_end(e, head), groups);
  for (const PreparedNode& n : e.nodes)
    if (!n.prologue.empty()) fill(n.prologue[0], n.batch_end, group[n.prologue[0]]);
  for (size_t n = 0; n < e.nodes.size(); ++n)
    if (const std::vector<size_t>& chain = e.nodes[n].chain; !chain.empty())
      fill(chain[0], n + 1, group[chain[0]]);
  for (const PreparedValue& v : e.values)
    shares_slot_with.push_back(v.shares_slot_with), view_of.push_back(v.view_of), keeps.push_back(v.may_view);
  plan::SlotAssignment slots = plan::plan_memory(
      *e.plan, {.group = group, .shares_slot_with = shares_slot_with, .view_of = view_of, .keeps = keeps});
  if (!has_views) return slots;
  plan::SlotAssignment without_views = plan::plan_memory(*e.plan, group, shares_slot_with);
  const uint64_t least = bytes_of(e, without_views);
  if (bytes_of(e, slots) <= least + least / (e.has_memory ? 2 : 8)) return slots;
  for (PreparedNode& n : e.nodes) n.is_view = false;
  for (PreparedValue& v : e.values) v.view_of = v.may_view = -1, v.offset = 0;
  return without_views;
}

}  // namespace

Status plan_memory(Executable& e, const Target& target) {
  int count = e.plan->slots;
  for (size_t v = 0; v < e.values.size(); ++v) e.values[v].buffer = e.plan->values[v].slot;
  const bool has_views =
      std::ranges::any_of(e.values, [](const PreparedValue& v) { return v.view_of >= 0 || v.may_view >= 0; });
  if (has_views || e.fused() || target.device) {
    const plan::SlotAssignment slots = plan_slots(e, has_views);
    for (size_t v = 0; v < e.values.size(); ++v) e.values[v].buffer = slots.slot_of[v];
    count = slots.count;
  }
  for (PreparedValue& v : e.values)
    if (v.buffer < 0 || (v.is_constant && v.view_of < 0)) v.buffer = count++;
  for (PreparedValue& v : e.values)
    if (v.is_constant && v.view_of >= 0) v.buffer = e.values[v.view_of].buffer;
  e.buffers = static_cast<size_t>(count);
  return {};
}

}  // namespace invar::run
