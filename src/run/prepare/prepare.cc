// The list of passes, see prepare.h.
#include "run/prepare/prepare.h"

#include "run/prepare/kernel_selection.h"
#include "run/prepare/passes/passes.h"

namespace invar::run {

std::span<const Pass> passes() {
  static constexpr Pass kPasses[] = {
      {"bind-symbols", bind_symbols},
      {"select-kernels", select_kernels},
      {"mark-feeds-state", mark_feeds_state},
      {"mark-constants", mark_constants, true},
      {"alias-views", alias_views, true},
      {"fuse-epilogues", fuse_epilogues, true},
      {"fuse-prologues", fuse_prologues, true},
      {"fuse-chains", fuse_chains, true},
      {"plan-memory", plan_memory},
      {"assign-layouts", assign_layouts, true},
      {"mark-concurrent", mark_concurrent, true},
  };
  return kPasses;
}

Result<std::shared_ptr<const Executable>> prepare(const plan::Plan& plan, const Target& target,
                                                  const Numbering& numbering, const PassObserver& observer) {
  if (!target.device) {
    INVAR_CHECK_OK(check_isa(target.isa));
  } else if (!target.isa.empty()) {
    return bad_input("an instruction set cannot be forced on a GPU; leave --isa out, or --device");
  }
  auto executable = std::make_shared<Executable>();
  executable->plan = &plan;
  executable->node_numbers.assign(numbering.nodes.begin(), numbering.nodes.end());
  executable->value_numbers.assign(numbering.values.begin(), numbering.values.end());
  executable->values.resize(plan.values.size());
  for (int v : numbering.feeding_outputs) executable->values[v].feeds_state = true;
  executable->joins.assign(numbering.joins.begin(), numbering.joins.end());
  for (const Pass& pass : passes()) {
    if (target.observed && pass.merges) continue;
    INVAR_CHECK_OK(pass.run(*executable, target));
    if (observer) observer(pass, *executable);
  }
  return std::shared_ptr<const Executable>(std::move(executable));
}

}  // namespace invar::run
