// A plan without what differs between checkpoints of one program: the bytes of its tensors, and
// where they lie. Whoever compiled the program once knows its outline, so a plan that somebody else
// gives can be compared with it (spec/program.md program.7).
#pragma once

#include "base/hash/sha256.h"
#include "base/status.h"
#include "plan/plan.h"

namespace invar::plan {

// The SHA-256 of the text of that. bad_input: a plan that does not say which program it is of.
Result<Digest> outline(const Plan&);

// The tensors of the program, as the plan claims them, must be those that it computes with: an
// error names one that is not. A weight that is no such tensor is a constant, which the outline
// covers.
Status check_tensors(const Plan&);

}  // namespace invar::plan
