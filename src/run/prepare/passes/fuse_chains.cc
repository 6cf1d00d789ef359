// GPU: elementwise operations that are near one another run as one kernel, at the place of the last
// (kernels/fusion/chain_kernels.h). Each would take longer to start than to run in a decode step.
#include <algorithm>

#include "kernels/fusion/chain_kernels.h"
#include "run/prepare/passes/passes.h"

namespace invar::run {
namespace {

constexpr size_t kSpan = 32;  // nodes from the first of a chain to its last, at most

bool is_alone(const PreparedNode& n) {
  return !n.in_prologue && n.prologue.empty() && n.fused_count == 0 && n.join < 0;
}

class Chain {
 public:
  Chain(const Executable& e, size_t first)
      : e_(e), first_(e.nodes[first]), kernel_(ops::find_chain_kernel(first_.kernel.op())) {
    if (kernel_ && !take(first)) kernel_ = nullptr;
  }
  const ops::ChainKernel* kernel() const { return kernel_; }
  const std::vector<size_t>& nodes() const { return nodes_; }
  // Whether nodes behind this one may be taken, too.
  bool goes_on(size_t n) {
    if (!is_alone(e_.nodes[n])) return false;
    return take(n) || !reads_a_result(n);
  }

 private:
  const Executable& e_;
  const PreparedNode& first_;
  const ops::ChainKernel* kernel_;
  std::vector<size_t> nodes_;
  std::vector<NodeShapes> shapes_;

  bool take(size_t n) {
    const PreparedNode& node = e_.nodes[n];
    if (nodes_.size() == ops::kLongestChain || node.is_view || node.is_constant || node.library ||
        !is_alone(node) || node.node->state >= 0 || node.node->out.size() != 1 ||
        node.contract->find_out_of_bounds || node.feeds_state != first_.feeds_state ||
        !kernel_->knows(node.kernel.op()))
      return false;
    const StepShape step{2, 3, 1};
    NodeShapes shapes;
    if (!e_.shapes(node, step, shapes) || !e_.check(n, step)) return false;
    nodes_.push_back(n), shapes_.push_back(std::move(shapes));
    std::vector<ops::Call> calls;
    std::vector<ops::ChainLink> links;
    calls.reserve(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const PreparedNode& one = e_.nodes[nodes_[i]];
      calls.push_back({shapes_[i].in, shapes_[i].out, one.attrs});
      links.push_back({one.kernel.op(), &calls.back()});
    }
    if (kernel_->fits(links)) return true;
    nodes_.pop_back(), shapes_.pop_back();
    return false;
  }
  bool reads_a_result(size_t n) const {
    return std::ranges::any_of(e_.nodes[n].node->in, [&](const plan::Operand& o) {
      return o.kind == plan::Operand::value &&
             std::ranges::any_of(nodes_, [&](size_t m) { return e_.nodes[m].node->out[0] == o.index; });
    });
  }
};

}  // namespace

Status fuse_chains(Executable& e, const Target& target) {
  if (!target.device) return {};
  for (size_t n = 0, next; n < e.nodes.size(); n = next) {
    next = e.group_end(n);
    Chain chain(e, n);
    if (!chain.kernel()) continue;
    const size_t end = std::min(e.nodes.size(), n + kSpan);
    for (size_t m = n + 1; m < end && chain.goes_on(m);) ++m;
    if (chain.nodes().size() == 1) continue;
    PreparedNode& last = e.nodes[chain.nodes().back()];
    last.chain = chain.nodes(), last.chain_kernel = chain.kernel();
    last.chain.pop_back();
    for (const size_t m : last.chain) e.nodes[m].in_chain = true;
    next = chain.nodes().back() + 1;
  }
  return {};
}

}  // namespace invar::run
