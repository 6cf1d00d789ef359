// The fusion pass: pointwise nodes right behind a kernel that reports its results run in its
// epilogue, region by region, while the results are still in a cache; the first of them on rows
// that never reach memory, if the kernel does that. Results are the same bits, so this is tuning
// and no plan knows it. On a GPU it is an addition right behind a product, whose kernel adds before
// it stores.
#include <algorithm>

#include "run/prepare/passes/passes.h"

namespace invar::run {
namespace {

// Per value: the node that defines it, and the last that uses it or a view of it.
struct DefUse {
  std::vector<size_t> def, last_use;
};

DefUse def_use_of(const Executable& e) {
  const size_t count = e.nodes.size(), values = e.values.size();
  DefUse uses{std::vector<size_t>(values, count), std::vector<size_t>(values, 0)};
  for (size_t n = 0; n < count; ++n) {
    for (int v : e.nodes[n].node->out) uses.def[v] = n;
    for (const plan::Operand& o : e.nodes[n].node->in)
      if (o.kind == plan::Operand::value) {
        uses.last_use[o.index] = n;
        if (const int base = e.values[o.index].view_of; base >= 0) uses.last_use[base] = n;
      }
  }
  for (const plan::Port& p : e.plan->outputs) uses.last_use[p.value] = count;
  return uses;
}

// Whether the head's kernel can apply `node` in registers: an addition of a value from before
// `head`, then a relu, each applied to the result before it, which nobody else reads.
bool can_fuse_in_register(const Executable& e, size_t head, size_t node, const DefUse& uses) {
  const PreparedNode &n = e.nodes[node], &before = e.nodes[node - 1];
  const int result = before.node->out[0];
  const ops::InRegisterEpilogue kind = n.kernel.cpu->in_register;
  const bool first = node == head + 1;
  if (kind == ops::InRegisterEpilogue::none || (!first && kind == ops::InRegisterEpilogue::add)) return false;
  if (!first && (node > head + 2 || before.kernel.cpu->in_register != ops::InRegisterEpilogue::add))
    return false;
  if (uses.last_use[result] != node || e.plan->values[result].dtype != DType::f32) return false;
  int results = 0;
  for (const plan::Operand& o : n.node->in) {
    if (o.kind != plan::Operand::value || e.plan->values[o.index].shape != e.plan->values[result].shape)
      return false;
    if (o.index == result)
      ++results;
    else if (uses.def[o.index] >= head && uses.def[o.index] < node)
      return false;
  }
  return results == 1;
}

// Whether a GPU's kernel of `head` can add what `node`, right behind it, adds to its result: a
// value of the same shape from before it. Nobody else reads the result. A join of ranks can, too.
bool can_fuse_addition(const Executable& e, size_t head, const DefUse& uses) {
  const size_t node = head + 1;
  if (node == e.nodes.size()) return false;
  const PreparedNode &h = e.nodes[head], &n = e.nodes[node];
  if ((!h.kernel.gpu->enqueue_fused && h.join < 0) || !n.kernel.gpu->is_addition || h.is_constant ||
      n.is_constant || n.feeds_state != h.feeds_state || h.node->out.size() != 1 || n.node->in.size() != 2)
    return false;
  const int result = h.node->out[0], sum = n.node->out[0];
  const auto alike = [&](int v) {
    return e.plan->values[v].dtype == DType::f32 && e.plan->values[v].shape == e.plan->values[result].shape;
  };
  if (uses.last_use[result] != node || !alike(result) || !alike(sum)) return false;
  int results = 0;
  for (const plan::Operand& o : n.node->in) {
    if (o.kind != plan::Operand::value || !alike(o.index)) return false;
    results += o.index == result;
  }
  return results == 1;
}

// How `node` can join the group of `head`, which all nodes between them have joined. A kernel that
// can do both, such as a convolution, takes an addition and a relu in registers and anything else
// by callbacks, but never some of a group each way.
enum class Joins { no, in_registers, by_callbacks };
Joins can_fuse(const Executable& e, size_t head, size_t node, const DefUse& uses) {
  const PreparedNode &h = e.nodes[head], &n = e.nodes[node];
  const ops::CpuKernel& kernel = *h.kernel.cpu;
  if ((!kernel.epilogue && !kernel.add_relu_epilogue) || h.node->out.size() != 1) return Joins::no;
  if (!n.kernel.cpu->region || n.node->out.size() != 1 || n.feeds_state != h.feeds_state ||
      n.contract->find_out_of_bounds || h.is_constant || n.is_constant)
    return Joins::no;
  for (const PreparedNode* one : {&h, &n})
    if (e.values[one->node->out[0]].may_view >= 0) return Joins::no;
  // All nodes between them have this shape, too, so no result of the group is broadcast within it.
  if (e.plan->values[n.node->out[0]].shape != e.plan->values[h.node->out[0]].shape) return Joins::no;
  const bool begins = h.fused_count == 0;
  if (kernel.add_relu_epilogue && (begins || h.in_registers) && can_fuse_in_register(e, head, node, uses))
    return Joins::in_registers;
  if (!kernel.epilogue || (!begins && h.in_registers)) return Joins::no;
  for (const plan::Operand& o : n.node->in)
    if (o.kind == plan::Operand::value && uses.def[o.index] >= head && uses.def[o.index] < node)
      return Joins::by_callbacks;
  return Joins::no;
}

// Whether the kernel of `head` may run `node` on rows, as it does all nodes between them: nobody
// else reads the result before it, which is a row of one operand.
bool can_run_on_rows(const Executable& e, size_t head, size_t node, const DefUse& uses) {
  const PreparedNode &h = e.nodes[head], &n = e.nodes[node];
  if (!h.kernel.cpu->row_steps || !n.kernel.cpu->append_row_step || head + 1 + h.on_rows != node ||
      h.on_rows == ops::kMostRowSteps)
    return false;
  const int result = e.nodes[node - 1].node->out[0];
  const auto is_result = [&](const plan::Operand& o) {
    return o.kind == plan::Operand::value && o.index == result;
  };
  const auto made_between = [&](const plan::Operand& o) {
    return o.kind == plan::Operand::value && uses.def[o.index] >= head && uses.def[o.index] < node;
  };
  return uses.last_use[result] == node && std::ranges::count_if(n.node->in, is_result) == 1 &&
         std::ranges::count_if(n.node->in, made_between) == 1 &&
         size_of(e.plan->values[result].dtype) <= sizeof(float);
}

// The result of `node` takes the memory of an operand that the group of `head` made and that
// nothing else will read.
void share_slot(Executable& e, size_t head, size_t node, const DefUse& uses) {
  const int out = e.nodes[node].node->out[0];
  for (const plan::Operand& o : e.nodes[node].node->in)
    if (o.kind == plan::Operand::value && uses.def[o.index] >= head && uses.def[o.index] < node &&
        uses.last_use[o.index] == node &&
        size_of(e.plan->values[o.index].dtype) == size_of(e.plan->values[out].dtype)) {
      e.values[o.index].shares_slot_with = out;
      return;
    }
}

}  // namespace

Status fuse_epilogues(Executable& e, const Target& target) {
  const DefUse uses = def_use_of(e);
  for (size_t head = 0; target.device && head < e.nodes.size(); head = e.group_end(head))
    if (can_fuse_addition(e, head, uses)) {
      e.nodes[head].fused_count = 1;
      share_slot(e, head, head + 1, uses);
    }
  if (target.device) return {};
  for (size_t head = 0; head < e.nodes.size(); head = e.group_end(head))
    for (size_t n = head + 1; n < e.nodes.size(); ++n) {
      const Joins how = can_fuse(e, head, n, uses);
      if (how == Joins::no) break;
      e.nodes[head].in_registers = how == Joins::in_registers;
      if (how == Joins::by_callbacks && can_run_on_rows(e, head, n, uses)) ++e.nodes[head].on_rows;
      ++e.nodes[head].fused_count;
      share_slot(e, head, n, uses);
    }
  return {};
}

}  // namespace invar::run
