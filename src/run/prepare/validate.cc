// Validation before anything is loaded: every room accepts its nodes, and no operation mixes
// sequences.
#include "base/attribute_types.h"
#include "run/prepare/prepare.h"

namespace invar::run {

// "; operands [2, 3], [3], result [2, 3]": what did not fit, in numbers.
static std::string shapes_text(const NodeShapes& shapes) {
  const auto text_of = [](const auto& views) {
    std::string all;
    for (const ops::View& v : views) {
      std::string one;
      for (int d = 0; d < v.rank; ++d) one += (d ? ", " : "") + std::to_string(v.dim[d]);
      all += (all.empty() ? " [" : ", [") + one + "]";
    }
    return all;
  };
  return "; operands" + text_of(shapes.in) + ", result" + text_of(shapes.out);
}

Status Executable::check(size_t number, const StepShape& step) const {
  const PreparedNode& node = nodes[number];
  NodeShapes call_shapes;
  if (!shapes(node, step, call_shapes))
    return bad_input(name_of_node(number) + ": its tensors are too large for any memory");
  const char* required = "attributes of the types that the room names";
  if (has_attribute_types(node.node->attrs)) {
    ops::Call call{call_shapes.in, call_shapes.out, &node.node->attrs};
    call.capacity = node.node->state >= 0;
    required = node.contract->check(call);
  }
  if (!required) return {};
  return bad_input(name_of_node(number) + ", requires " + required +
                   (has_memory ? ": compile the model again"
                               : ": sizes or values of the inputs do not fit it, or the plan does not" +
                                     shapes_text(call_shapes)));
}

// plan.11: every value that depends on the sequences has them on its leading axis, and every
// operation keeps them independent of each other.
static Status check_batch_independence(const Executable& e, size_t number) {
  using Batch = Executable::Batch;
  const PreparedNode& node = e.nodes[number];
  auto refuse = [&](const std::string& why) {
    return not_covered(e.name_of_node(number) + ", " + why + ": run one sequence at a time");
  };
  uint64_t batched = 0;  // a bit per operand
  for (size_t i = 0; i < node.node->in.size(); ++i) {
    const plan::Operand& o = node.node->in[i];
    if (o.kind != plan::Operand::value || e.batch_of(o.index) == Batch::absent) continue;
    if (i >= 64) return refuse("has more operands than can be kept apart");
    batched |= uint64_t{1} << i;
  }
  // A result of no batched operand is the same for all sequences.
  for (int v : node.node->out)
    if (e.batch_of(v) != (batched ? Batch::leading : Batch::absent))
      return refuse("does not keep sequences on the leading axis");
  if (!batched) return {};
  const StepShape step{3, 2, 4};
  INVAR_CHECK_OK(e.check(number, step));
  NodeShapes shapes;
  e.shapes(node, step, shapes);
  const ops::OpContract& contract = *node.contract;
  if (!contract.batch_independent ||
      !contract.batch_independent({shapes.in, shapes.out, &node.node->attrs}, batched))
    return refuse("does not keep sequences apart");
  return {};
}

// Dimensions are constants or symbols, so shapes that fit for two sizes of a step fit for all
// sizes.
Status validate(const Executable& e, int64_t max_sequences) {
  if (max_sequences > 1 && e.shaped_by_past)
    return not_covered("the plan's shapes depend on what is remembered: run one sequence at a time");
  for (size_t n = 0; n < e.nodes.size(); ++n) {
    for (const StepShape& step : {StepShape{1, 1, 3}, StepShape{1, 2, 4}}) INVAR_CHECK_OK(e.check(n, step));
    if (max_sequences > 1) {
      INVAR_CHECK_OK(check_batch_independence(e, n));
    }
  }
  return {};
}

}  // namespace invar::run
