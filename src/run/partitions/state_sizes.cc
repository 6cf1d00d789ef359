// What states take of memory.
#include "run/partitions/local_stage.h"
#include "run/prepare/fixed_states.h"
#include "run/weights_needed.h"

namespace invar::run {

Status measure_states(std::span<plan::Stage> stages) {
  constexpr int64_t kMany = 4096;  // positions: whole blocks of keys, and bytes of 32 bits in a page
  constexpr StepShape kStep{1, 1, 0};
  for (plan::Stage& stage : stages) {
    INVAR_TRY(const auto e, prepare_stage(stage, {}));
    for (size_t i = 0; i < e->nodes.size(); ++i) {
      const PreparedNode& n = e->nodes[i];
      NodeShapes s;
      if (n.node->state < 0 || state_owner(*e, i) != i) continue;
      INVAR_CHECK_OK(e->check(i, kStep));
      if (!e->shapes(n, kStep, s)) return bad_input("the plan's tensors are too large for any memory");
      const ops::Call call{s.in, s.out, &n.node->attrs};
      const size_t many = n.kernel.state_bytes(call, kMany);
      if (has_fixed_state(n.kernel, call))
        stage.cost.fixed_state += many;
      else
        stage.cost.state += (n.kernel.state_bytes(call, 2 * kMany) - many) / kMany;
    }
  }
  return {};
}

}  // namespace invar::run
