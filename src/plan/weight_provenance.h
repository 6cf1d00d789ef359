// Whether a plan computes with the tensors of its program (spec/plan.md plan.21).
#pragma once

#include <string>

#include "base/status.h"
#include "plan/plan.h"

namespace invar::plan {

// What a plan computes with must be what its program reads (plan.21): a plan that somebody gives is
// refused where its weights cannot be shown to be the tensors that it names, so that nobody writes
// or verifies a receipt of tensors that were not computed with. `path`: of the plan, whose folder
// has the weights; parts of tensors are compared there, other bytes are not read.
// `computed`: a plan of the same program, compiled here from tensors that are compared with the
// given plan's; a constant of it is what the tensors give. Null: there is none.
// failed: a weight that is another tensor. not_covered: a constant that stands in the place of one.
Status check_weight_provenance(const Plan&, const std::string& path, const Plan* computed = nullptr);

}  // namespace invar::plan
