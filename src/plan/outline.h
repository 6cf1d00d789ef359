// A plan without what differs between checkpoints of one program: the bytes of its tensors, and
// where they lie. Whoever compiled the program once knows its outline, so a plan that somebody else
// gives can be compared with it (spec/program.md program.7).
#pragma once

#include <string>

#include "base/hash/sha256.h"
#include "base/status.h"
#include "plan/plan.h"

namespace invar::plan {

// The SHA-256 of the text of that. bad_input: a plan that does not say which program it is of.
Result<Digest> outline(const Plan&);

}  // namespace invar::plan
