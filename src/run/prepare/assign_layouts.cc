// Layouts between nodes: a value that only rows make and read which take channels last (Kernel::channels_last) has them so, and nobody
// turns it twice. Values have the same elements wherever these lie, so this is tuning and no plan knows it.
#include <algorithm>
#include <variant>

#include "run/prepare/program.h"

namespace invar::run {

void Program::lay_out() {
  const size_t count = nodes_.size(), values = plan_->values.size();
  std::vector<const ops::Kernel*> row(count);
  std::vector<int64_t> pitch(count);   // of its result; 0: that of operand 0
  std::vector<bool> free(values);      // only such rows make and read it
  std::vector<int> beside(count, -1);  // what a head's epilogue adds
  auto operand = [&](size_t n) { return nodes_[n].node->in[0].index; };
  auto result = [&](size_t n) { return nodes_[behind(n) - 1].node->out[0]; };
  auto last = [&](int v) { return v < 0 || pitch_[v] > 0; };
  for (size_t n = 0; n < count; n = behind(n)) {
    const plan::Node& node = *nodes_[n].node;
    if (!nodes_[n].kernel->channels_last || node.in.empty() || node.in[0].kind != plan::Operand::value)
      continue;
    ops::View weights;
    if (node.in.size() > 1 && node.in[1].kind == plan::Operand::weight) {
      const plan::Weight& w = plan_->weights[node.in[1].index];
      weights.dtype = w.dtype, weights.rank = static_cast<int>(w.shape.size());
      std::copy(w.shape.begin(), w.shape.end(), weights.dim);
    }
    try {
      row[n] = nodes_[n].kernel->channels_last(weights, node.attrs, pitch[n]);
    } catch (const std::bad_variant_access&) {  // check() will say so
    }
    if (row[n]) free[result(n)] = plan_->values[result(n)].shape.size() > 2;
  }
  for (const plan::Port& p : plan_->outputs) free[p.value] = false;
  for (size_t n = 0; n < count; n = behind(n))
    for (size_t m = n; m < behind(n); ++m)
      for (size_t i = 0; i < nodes_[m].node->in.size(); ++i) {
        const plan::Operand& o = nodes_[m].node->in[i];
        if (o.kind != plan::Operand::value || (m > n && o.index == nodes_[m - 1].node->out[0])) continue;
        if (m > n) beside[n] = o.index;
        if (!row[n] || (m == n && i > 0)) free[o.index] = false;
      }
  for (size_t n = count; n-- > 0;)
    if (row[n] && !pitch[n] && !free[result(n)]) free[operand(n)] = false;
  for (size_t n = 0; n < count; n = behind(n)) {
    if (!row[n]) continue;
    if (!pitch[n]) pitch[n] = pitch_[operand(n)];
    const bool so =
        free[result(n)] && last(beside[n]) && buffer_[nodes_[n].node->out[0]] == buffer_[result(n)];
    for (size_t m = n; so && m < behind(n); ++m) pitch_[nodes_[m].node->out[0]] = pitch[n];
    if (pitch_[result(n)] || pitch_[operand(n)] || (beside[n] >= 0 && pitch_[beside[n]]))
      nodes_[n].kernel = row[n];
  }
}

size_t Program::channels_last() const {
  size_t count = 0;
  for (int64_t p : pitch_) count += p != 0;
  return count;
}

}  // namespace invar::run
