// Layouts between nodes: a value that only rows make and read which take channels last (Kernel::channels_last) has them so, and nobody
// turns it twice. Values have the same elements wherever these lie, so this is tuning and no plan knows it.
#include <variant>

#include "run/program.h"

namespace invar::run {

void Program::lay_out() {
  const size_t count = nodes_.size(), values = plan_->values.size();
  std::vector<const ops::Kernel*> row(count);
  std::vector<int64_t> pitch(count);
  std::vector<bool> free(values, false);  // only such rows make and read it
  std::vector<int> beside(count, -1);     // what a head's epilogue adds
  auto rank_of = [&](int v) { return plan_->values[v].shape.size(); };
  for (size_t n = 0; n < count; n = behind(n)) {
    const plan::Node& node = *nodes_[n].node;
    if (!nodes_[n].kernel->channels_last || node.in.size() < 2 || node.in[1].kind != plan::Operand::weight ||
        node.in[0].kind != plan::Operand::value)
      continue;
    const plan::Weight& w = plan_->weights[node.in[1].index];
    ops::View view{.dtype = w.dtype, .rank = static_cast<int>(w.shape.size())};
    std::copy(w.shape.begin(), w.shape.end(), view.dim);
    if (rank_of(node.out[0]) != w.shape.size() || rank_of(node.in[0].index) != w.shape.size()) continue;
    try {
      row[n] = nodes_[n].kernel->channels_last(view, node.attrs, pitch[n]);
    } catch (const std::bad_variant_access&) {  // check() will say so
    }
    for (size_t m = n; row[n] && m < behind(n); ++m) free[nodes_[m].node->out[0]] = true;
  }
  for (size_t n = 0; n < count; n = behind(n))
    for (size_t m = n; m < behind(n); ++m)
      for (size_t i = 0; i < nodes_[m].node->in.size(); ++i) {
        const plan::Operand& o = nodes_[m].node->in[i];
        if (o.kind != plan::Operand::value) continue;
        const bool own = m > n && o.index == nodes_[m - 1].node->out[0];
        if (m > n && !own) beside[n] = o.index;
        if (!row[n] || (m == n && i > 0)) free[o.index] = false;
      }
  for (const plan::Port& p : plan_->outputs) free[p.value] = false;
  for (size_t n = 0; n < count; n = behind(n)) {
    if (!row[n]) continue;
    const int first = nodes_[n].node->out[0], last = nodes_[behind(n) - 1].node->out[0];
    const bool lies = free[last] && buffer_[first] == buffer_[last] && (beside[n] < 0 || pitch_[beside[n]]);
    for (size_t m = n; lies && m < behind(n); ++m) pitch_[nodes_[m].node->out[0]] = pitch[n];
    if (lies || pitch_[nodes_[n].node->in[0].index] || (beside[n] >= 0 && pitch_[beside[n]]))
      nodes_[n].kernel = row[n];
  }
}

size_t Program::channels_last() const {
  size_t count = 0;
  for (int64_t p : pitch_) count += p != 0;
  return count;
}

}  // namespace invar::run
