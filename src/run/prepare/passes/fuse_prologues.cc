// GPU: nodes that make the rows of products right behind them run in the kernels of those products,
// as one kernel that writes the rows rounded (GpuFusion::producers): a normalization, or an
// activation and the multiplication with it, and behind either of the two a join of ranks. The f32
// rows are never in memory.
#include <algorithm>

#include "kernels/fusion/join_kernels.h"
#include "kernels/fusion/rounding_kernels.h"
#include "run/prepare/passes/passes.h"

namespace invar::run {
namespace {

// Per value: the operands that are it, and one more for an output of the plan.
std::vector<size_t> count_readers(const Executable& e) {
  std::vector<size_t> readers(e.values.size());
  for (const PreparedNode& n : e.nodes)
    for (const plan::Operand& o : n.node->in)
      if (o.kind == plan::Operand::value) ++readers[o.index];
  for (const plan::Port& p : e.plan->outputs) ++readers[p.value];
  return readers;
}
// Whether no operand of the nodes [begin, end) is a result of [from, begin).
bool is_independent(const Executable& e, size_t from, size_t begin, size_t end) {
  for (size_t m = from; m < begin; ++m)
    for (const int v : e.nodes[m].node->out)
      for (size_t n = begin; n < end; ++n) {
        const std::vector<plan::Operand>& in = e.nodes[n].node->in;
        if (std::ranges::find(in, plan::Operand{plan::Operand::value, v}) != in.end()) return false;
      }
  return true;
}

// The end of the batch of products with constant matrices that begins at `head`, whose first
// operand is `rows`, which nobody else reads; `head` if there is none. A matrix with scales behind
// it is one whatever its rank (matmul_nbits.1).
size_t batch_end(const Executable& e, size_t head, int rows, const std::vector<size_t>& readers) {
  const PreparedNode& first = e.nodes[head];
  if (!first.kernel.gpu->enqueue_fused || !first.kernel.gpu->enqueue_batch || first.is_constant) return head;
  const auto joins = [&](const PreparedNode& n) {
    const std::vector<plan::Operand>& in = n.node->in;
    return n.kernel == first.kernel && n.feeds_state == first.feeds_state && n.node->state < 0 &&
           in.size() > 1 && in[0] == plan::Operand{plan::Operand::value, rows} &&
           in[1].kind == plan::Operand::weight &&
           (in.size() > 2 || e.plan->weights[in[1].index].shape.size() == 2);
  };
  size_t end = head, count = 0;
  while (end < e.nodes.size() && joins(e.nodes[end]) && is_independent(e, head, end, e.group_end(end)))
    end = e.group_end(end), ++count;
  return readers[rows] == count ? end : head;
}

// Whether `can_round` of a kernel accepts these nodes, whose values have one shape up to a join and
// one behind it, but for constants such as the weight of a norm.
bool can_round(const Executable& e, bool (*can_round)(std::span<const ops::Call* const>), size_t first,
               size_t end) {
  const StepShape step{2, 3, 1};
  std::vector<NodeShapes> shapes(end - first);
  std::vector<ops::Call> calls;
  std::vector<const ops::Call*> pointers;
  for (size_t n = first; n < end; ++n) {
    const PreparedNode& node = e.nodes[n];
    const std::vector<plan::DimRef>& shape = e.plan->values[node.node->out[0]].shape;
    for (const plan::Operand& o : node.node->in)
      if (node.join < 0 && o.kind == plan::Operand::value && !e.values[o.index].is_constant &&
          e.plan->values[o.index].shape != shape)
        return false;
    NodeShapes& s = shapes[n - first];
    if (!e.shapes(node, step, s) || !e.check(n, step)) return false;
    calls.push_back({s.in, s.out, node.attrs});
  }
  for (const ops::Call& call : calls) pointers.push_back(&call);
  return can_round(pointers);
}

// Whether a kernel of Invar's own makes one result of this node, which stands alone.
bool is_plain(const Executable& e, size_t n) {
  const PreparedNode& node = e.nodes[n];
  return e.group_end(n) == n + 1 && !node.library && node.node->state < 0 && node.node->out.size() == 1 &&
         !node.contract->find_out_of_bounds && !node.is_view && !node.is_constant;
}

// The nodes from `first` on, up to the batch that begins at `head`, become its prologue if a kernel
// can round what they make. Behind a join each may run alone in larger steps, so a kernel that
// rounds without the join is kept.
bool fuse(Executable& e, size_t first, size_t head, size_t end) {
  std::vector<std::string_view> names;
  bool joins = false;
  for (size_t n = first; n < head; ++n) {
    const bool is_join = e.nodes[n].join >= 0, adds = joins && e.nodes[n].kernel.gpu->is_addition;
    names.push_back(is_join ? ops::kJoin : adds ? ops::kAddition : e.nodes[n].kernel.op());
    joins |= is_join;
  }
  PreparedNode& batch = e.nodes[head];
  if (joins) {
    const ops::RoundedJoin* const join = ops::find_rounded_join(names);
    if (!join || !can_round(e, join->can_round, first, head)) return false;
    batch.prologue_join = join;
    if (e.nodes[head - 1].join < 0) batch.prologue_kernel = e.nodes[head - 1].kernel.gpu;
  } else {
    const ops::GpuKernel* const kernel = ops::find_rounding_kernel(names);
    if (!kernel || !can_round(e, kernel->can_round, first, head)) return false;
    batch.prologue_kernel = kernel;
  }
  for (size_t n = first; n < head; ++n) batch.prologue.push_back(n), e.nodes[n].in_prologue = true;
  batch.batch_end = end;
  return true;
}

// Whether the last of these heads of groups reads what the group before makes, a join of ranks with
// the addition that is fused into it.
bool is_behind_join(const Executable& e, std::span<const size_t> heads, size_t free) {
  if (heads.size() < 2 || heads[heads.size() - 2] < free) return false;
  const size_t join = heads[heads.size() - 2], last = heads.back();
  const plan::Operand sum{plan::Operand::value, e.nodes[last - 1].node->out[0]};
  return e.nodes[join].join >= 0 && e.group_end(join) == last && e.nodes[last].node->in[0] == sum &&
         e.nodes[join].feeds_state == e.nodes[last].feeds_state;
}

// How many nodes a chain has at most: an activation, the multiplication with it, a join.
constexpr size_t kLongestChain = 3;

// The first nodes of chains that end at the last of these heads of groups, the longest chain first:
// plain nodes from `free` on, each right ahead of the one that alone reads its result.
std::vector<size_t> chains(const Executable& e, std::span<const size_t> heads, size_t free,
                           const std::vector<size_t>& readers) {
  std::vector<size_t> firsts = {heads.back()};
  for (size_t i = heads.size() - 1; i > 0 && heads[i - 1] >= free && firsts.size() < kLongestChain; --i) {
    const PreparedNode& before = e.nodes[heads[i - 1]];
    if (!is_plain(e, heads[i - 1]) || before.feeds_state != e.nodes[heads[i]].feeds_state) break;
    const int made = before.node->out[0];
    const std::vector<plan::Operand>& in = e.nodes[heads[i]].node->in;
    if (readers[made] != 1 || std::ranges::find(in, plan::Operand{plan::Operand::value, made}) == in.end())
      break;
    firsts.insert(firsts.begin(), heads[i - 1]);
  }
  return firsts;
}

}  // namespace

Status fuse_prologues(Executable& e, const Target& target) {
  if (!target.device) return {};
  const std::vector<size_t> readers = count_readers(e);
  size_t free = 0;  // the first node that is in no batch yet
  std::vector<size_t> heads;
  for (size_t n = 0, head; n < e.nodes.size(); n = head) {
    head = e.group_end(n), heads.push_back(n);
    if (head == e.nodes.size() || !is_plain(e, n)) continue;
    const int rows = e.nodes[n].node->out[0];
    const size_t end = batch_end(e, head, rows, readers);
    if (end == head || e.nodes[n].feeds_state != e.nodes[head].feeds_state) continue;
    std::vector<size_t> firsts = chains(e, heads, free, readers);
    if (is_behind_join(e, heads, free)) firsts.insert(firsts.begin(), heads[heads.size() - 2]);
    for (const size_t first : firsts)
      if (fuse(e, first, head, end)) {
        free = head = end;
        break;
      }
  }
  return {};
}

}  // namespace invar::run
