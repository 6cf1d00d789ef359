// What is asked of a plan before anything is loaded: that its rooms take what the nodes ask for, and that nothing mixes sequences.
#include <algorithm>
#include <variant>

#include "run/prepare/program.h"

namespace invar::run {

// Dimensions are constants or symbols, so shapes that fit for two sizes of a step fit for all.
Status Program::check(int64_t slots) {
  if (slots > 1 && shaped_by_past_)
    return not_covered("the plan's shapes depend on what is remembered: run one sequence at a time");
  for (size_t n = 0; n < nodes_.size(); ++n) {
    for (const Extent& e : {Extent{1, 1, 3}, Extent{1, 2, 4}})
      INVAR_CHECK_OK(check(*nodes_[n].reference, nodes_[n], n, e));
    if (slots > 1) {
      INVAR_CHECK_OK(check_alone(n));
    }
  }
  return {};
}

Status Program::check(const ops::Kernel& reference, Node& node, size_t number, const Extent& extent) const {
  bool small = true;
  for (size_t i = 0; i < node.in.size(); ++i) {
    const plan::Operand& o = node.node->in[i];
    if (o.kind == plan::Operand::value) {
      small &= shape(o.index, extent, node.in[i]) < kTooLarge;
      continue;
    }
    const plan::Weight& w = plan_->weights[o.index];
    node.in[i].dtype = w.dtype;
    node.in[i].rank = static_cast<int>(w.shape.size());
    std::copy(w.shape.begin(), w.shape.end(), node.in[i].dim);
  }
  for (size_t i = 0; i < node.out.size(); ++i)
    small &= shape(node.node->out[i], extent, node.out[i]) < kTooLarge;
  if (!small) return bad_input("the plan's tensors are too large for any memory");
  const char* required;
  try {
    ops::Call call{node.in, node.out, &node.node->attrs};
    call.capacity = node.node->state >= 0;
    required = reference.check(call);
  } catch (const std::bad_variant_access&) {
    required = "attributes of the types that the room names";
  }
  if (!required) return {};
  return bad_input(name_of_node(number) + ", requires " + required +
                   (has_memory_ ? ": compile the model again"
                                : ": sizes or values of the inputs do not fit it, or the plan does not"));
}

// plan.11: nothing mixes sequences. What depends on them has them on its leading axis, and every operation keeps them apart.
Status Program::check_alone(size_t number) {
  Node& node = nodes_[number];
  auto refuse = [&](const std::string& why) {
    return not_covered(name_of_node(number) + ", " + why + ": run one sequence at a time");
  };
  uint64_t carries = 0;
  for (size_t i = 0; i < node.in.size(); ++i) {
    const plan::Operand& o = node.node->in[i];
    if (o.kind != plan::Operand::value || batch_of(o.index) == Batch::absent) continue;
    if (i >= 64) return refuse("has more operands than can be kept apart");
    carries |= uint64_t{1} << i;
  }
  // What depends on no sequence is the same for all of them.
  for (int v : node.node->out)
    if (batch_of(v) != (carries ? Batch::leading : Batch::absent))
      return refuse("does not keep sequences on the leading axis");
  if (!carries) return {};
  INVAR_CHECK_OK(check(*node.reference, node, number, {3, 2, 4}));
  if (!node.reference->alone || !node.reference->alone({node.in, node.out, &node.node->attrs}, carries))
    return refuse("does not keep sequences apart");
  return {};
}

Program::Batch Program::batch_of(int v) const {
  const std::vector<plan::Dim>& shape = plan_->values[v].shape;
  auto is_batch = [&](const plan::Dim& d) { return d.symbol >= 0 && symbols_[d.symbol] == Symbol::batch; };
  const auto count = std::count_if(shape.begin(), shape.end(), is_batch);
  return count == 0 ? Batch::absent : count == 1 && is_batch(shape[0]) ? Batch::leading : Batch::elsewhere;
}

}  // namespace invar::run
