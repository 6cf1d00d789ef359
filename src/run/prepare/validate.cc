// The validation pass, before anything is loaded: every room accepts its nodes, and no operation
// mixes sequences.
#include <algorithm>

#include "base/attribute_types.h"
#include "run/prepare/program.h"

namespace invar::run {

// Dimensions are constants or symbols, so shapes that fit for two sizes of a step fit for all
// sizes.
Status Program::check(int64_t max_sequences) {
  if (max_sequences > 1 && shaped_by_past_)
    return not_covered("the plan's shapes depend on what is remembered: run one sequence at a time");
  for (size_t n = 0; n < nodes_.size(); ++n) {
    for (const StepShape& step : {StepShape{1, 1, 3}, StepShape{1, 2, 4}})
      INVAR_CHECK_OK(check(nodes_[n], n, step));
    if (max_sequences > 1) {
      INVAR_CHECK_OK(check_batch_independence(n));
    }
  }
  return {};
}

Status Program::check(PreparedNode& node, size_t number, const StepShape& step) const {
  bool fits_memory = true;
  for (size_t i = 0; i < node.in.size(); ++i) {
    const plan::Operand& o = node.node->in[i];
    if (o.kind == plan::Operand::value) {
      fits_memory &= shape(o.index, step, node.in[i]) < kTooLarge;
      continue;
    }
    const plan::Weight& w = plan_->weights[o.index];
    node.in[i].dtype = w.dtype;
    node.in[i].rank = static_cast<int>(w.shape.size());
    std::copy(w.shape.begin(), w.shape.end(), node.in[i].dim);
  }
  for (size_t i = 0; i < node.out.size(); ++i)
    fits_memory &= shape(node.node->out[i], step, node.out[i]) < kTooLarge;
  if (!fits_memory) return bad_input("the plan's tensors are too large for any memory");
  const char* required = "attributes of the types that the room names";
  if (has_attribute_types(node.node->attrs)) {
    ops::Call call{node.in, node.out, &node.node->attrs};
    call.capacity = node.node->state >= 0;
    required = node.contract->check(call);
  }
  if (!required) return {};
  return bad_input(name_of_node(number) + ", requires " + required +
                   (has_memory_ ? ": compile the model again"
                                : ": sizes or values of the inputs do not fit it, or the plan does not"));
}

// plan.11: every value that depends on the sequences has them on its leading axis, and every
// operation keeps them independent of each other.
Status Program::check_batch_independence(size_t number) {
  PreparedNode& node = nodes_[number];
  auto refuse = [&](const std::string& why) {
    return not_covered(name_of_node(number) + ", " + why + ": run one sequence at a time");
  };
  uint64_t batched = 0;  // a bit per operand
  for (size_t i = 0; i < node.in.size(); ++i) {
    const plan::Operand& o = node.node->in[i];
    if (o.kind != plan::Operand::value || batch_of(o.index) == Batch::absent) continue;
    if (i >= 64) return refuse("has more operands than can be kept apart");
    batched |= uint64_t{1} << i;
  }
  // A result of no batched operand is the same for all sequences.
  for (int v : node.node->out)
    if (batch_of(v) != (batched ? Batch::leading : Batch::absent))
      return refuse("does not keep sequences on the leading axis");
  if (!batched) return {};
  INVAR_CHECK_OK(check(node, number, {3, 2, 4}));
  const ops::OpContract& contract = *node.contract;
  if (!contract.batch_independent ||
      !contract.batch_independent({node.in, node.out, &node.node->attrs}, batched))
    return refuse("does not keep sequences apart");
  return {};
}

}  // namespace invar::run
