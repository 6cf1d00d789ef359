// The layout pass: a value that is made and read only by kernels with a channels-last variant
// (CpuKernel::channels_last) stays channels last between them, so nobody transposes it twice. A
// layout does not change elements, so this is tuning and no plan knows it.
#include <algorithm>

#include "base/attribute_types.h"
#include "run/prepare/passes/passes.h"

namespace invar::run {

Status assign_layouts(Executable& e, const Target& target) {
  if (target.device) return {};
  const size_t count = e.nodes.size(), values = e.plan->values.size();
  // Per head of a fused group: its channels-last kernel; the pitch of its result, 0 if that is the
  // pitch of operand 0; and the value that the epilogue adds, or -1.
  std::vector<const ops::CpuKernel*> variant(count);
  std::vector<int64_t> pitch(count);
  std::vector<int> addend(count, -1);
  std::vector<bool> eligible(values);  // only kernels with such a variant make and read it
  auto operand = [&](size_t n) { return e.nodes[n].node->in[0].index; };
  auto joins = [&](size_t n) { return e.nodes[n].kernel.cpu->joins_channels; };
  auto any_operand = [&](size_t n, auto is) {
    return std::ranges::any_of(e.nodes[n].node->in, [&](const plan::Operand& o) {
      return o.kind != plan::Operand::value || is(o.index);
    });
  };
  auto result = [&](size_t n) { return e.nodes[e.group_end(n) - 1].node->out[0]; };
  // Callbacks see results with channels first.
  auto has_callbacks = [&](size_t n) { return e.nodes[n].fused_count > 0 && !e.nodes[n].in_registers; };
  auto is_channels_last = [&](int v) { return v < 0 || e.values[v].pitch > 0; };
  for (size_t n = 0; n < count; n = e.group_end(n)) {
    const plan::Node& node = *e.nodes[n].node;
    if (!e.nodes[n].kernel.cpu->channels_last || node.in.empty() || node.in[0].kind != plan::Operand::value)
      continue;
    ops::View weights;
    if (node.in.size() > 1 && node.in[1].kind == plan::Operand::weight) {
      const plan::Weight& w = e.plan->weights[node.in[1].index];
      weights.dtype = w.dtype, weights.rank = static_cast<int>(w.shape.size());
      std::copy(w.shape.begin(), w.shape.end(), weights.dim);
    }
    if (joins(n)) {
      const plan::Value& whole = e.plan->values[node.out[0]];
      if (any_operand(n, [](int) { return false; }) || whole.shape.size() > ops::kMaxRank) continue;
      weights.rank = static_cast<int>(whole.shape.size());
      for (size_t d = 0; d < whole.shape.size(); ++d)
        weights.dim[d] = whole.shape[d].symbol < 0 ? whole.shape[d].value : 0;
    }
    if (has_attribute_types(node.attrs))  // else check() refuses the node
      variant[n] = e.nodes[n].kernel.cpu->channels_last(weights, node.attrs, pitch[n]);
    if (variant[n]) eligible[result(n)] = e.plan->values[result(n)].shape.size() > 2 && !has_callbacks(n);
  }
  for (const plan::Port& p : e.plan->outputs) eligible[p.value] = false;
  for (size_t n = 0; n < count; n = e.group_end(n))
    for (size_t m = n; m < e.group_end(n); ++m)
      for (size_t i = 0; i < e.nodes[m].node->in.size(); ++i) {
        const plan::Operand& o = e.nodes[m].node->in[i];
        if (o.kind != plan::Operand::value || (m > n && o.index == e.nodes[m - 1].node->out[0])) continue;
        if (m > n && !has_callbacks(n)) addend[n] = o.index;
        if (!variant[n] || (m == n ? i > 0 && !joins(n) : has_callbacks(n))) eligible[o.index] = false;
      }
  // A kernel whose result has the layout of its operand passes ineligibility backwards, and one
  // that joins operands does to all of them.
  for (size_t n = count; n-- > 0;)
    if (variant[n] && joins(n) &&
        (!eligible[result(n)] || any_operand(n, [&](int v) { return !eligible[v]; }))) {
      eligible[result(n)] = false;
      for (const plan::Operand& o : e.nodes[n].node->in) eligible[o.index] = false;
    } else if (variant[n] && !pitch[n] && !eligible[result(n)]) {
      eligible[operand(n)] = false;
    }
  for (size_t n = 0; n < count; n = e.group_end(n)) {
    if (!variant[n]) continue;
    if (!pitch[n]) pitch[n] = e.values[operand(n)].pitch;
    const bool assign = eligible[result(n)] && is_channels_last(addend[n]) &&
                        e.values[e.nodes[n].node->out[0]].buffer == e.values[result(n)].buffer;
    for (size_t m = n; assign && m < e.group_end(n); ++m) e.values[e.nodes[m].node->out[0]].pitch = pitch[n];
    if (e.values[result(n)].pitch || e.values[operand(n)].pitch ||
        (addend[n] >= 0 && e.values[addend[n]].pitch) ||
        (joins(n) && any_operand(n, [&](int v) { return e.values[v].pitch > 0; })))
      e.nodes[n].kernel = variant[n];
  }
  return {};
}

}  // namespace invar::run
