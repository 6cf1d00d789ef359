// The layout pass: a value that is made and read only by kernels with a channels-last variant
// (CpuKernel::channels_last) stays channels last between them, so nobody transposes it twice. A
// layout does not change elements, so this is tuning and no plan knows it.
#include <algorithm>

#include "base/attribute_types.h"
#include "run/prepare/program.h"

namespace invar::run {

void Program::assign_layouts() {
  const size_t count = nodes_.size(), values = plan_->values.size();
  // Per head of a fused group: its channels-last kernel; the pitch of its result, 0 if that is the
  // pitch of operand 0; and the value that the epilogue adds, or -1.
  std::vector<const ops::CpuKernel*> variant(count);
  std::vector<int64_t> pitch(count);
  std::vector<int> addend(count, -1);
  std::vector<bool> eligible(values);  // only kernels with such a variant make and read it
  auto operand = [&](size_t n) { return nodes_[n].node->in[0].index; };
  auto result = [&](size_t n) { return nodes_[group_end(n) - 1].node->out[0]; };
  auto is_channels_last = [&](int v) { return v < 0 || values_[v].pitch > 0; };
  for (size_t n = 0; n < count; n = group_end(n)) {
    const plan::Node& node = *nodes_[n].node;
    if (!nodes_[n].kernel.cpu->channels_last || node.in.empty() || node.in[0].kind != plan::Operand::value)
      continue;
    ops::View weights;
    if (node.in.size() > 1 && node.in[1].kind == plan::Operand::weight) {
      const plan::Weight& w = plan_->weights[node.in[1].index];
      weights.dtype = w.dtype, weights.rank = static_cast<int>(w.shape.size());
      std::copy(w.shape.begin(), w.shape.end(), weights.dim);
    }
    if (has_attribute_types(node.attrs))  // else check() refuses the node
      variant[n] = nodes_[n].kernel.cpu->channels_last(weights, node.attrs, pitch[n]);
    if (variant[n]) eligible[result(n)] = plan_->values[result(n)].shape.size() > 2;
  }
  for (const plan::Port& p : plan_->outputs) eligible[p.value] = false;
  for (size_t n = 0; n < count; n = group_end(n))
    for (size_t m = n; m < group_end(n); ++m)
      for (size_t i = 0; i < nodes_[m].node->in.size(); ++i) {
        const plan::Operand& o = nodes_[m].node->in[i];
        if (o.kind != plan::Operand::value || (m > n && o.index == nodes_[m - 1].node->out[0])) continue;
        if (m > n) addend[n] = o.index;
        if (!variant[n] || (m == n && i > 0)) eligible[o.index] = false;
      }
  // A kernel whose result has the layout of its operand passes ineligibility backwards.
  for (size_t n = count; n-- > 0;)
    if (variant[n] && !pitch[n] && !eligible[result(n)]) eligible[operand(n)] = false;
  for (size_t n = 0; n < count; n = group_end(n)) {
    if (!variant[n]) continue;
    if (!pitch[n]) pitch[n] = values_[operand(n)].pitch;
    const bool assign = eligible[result(n)] && is_channels_last(addend[n]) &&
                        values_[nodes_[n].node->out[0]].buffer == values_[result(n)].buffer;
    for (size_t m = n; assign && m < group_end(n); ++m) values_[nodes_[m].node->out[0]].pitch = pitch[n];
    if (values_[result(n)].pitch || values_[operand(n)].pitch || (addend[n] >= 0 && values_[addend[n]].pitch))
      nodes_[n].kernel = variant[n];
  }
}

size_t Program::channels_last() const {
  return static_cast<size_t>(
      std::count_if(values_.begin(), values_.end(), [](const PreparedValue& v) { return v.pitch != 0; }));
}

}  // namespace invar::run
