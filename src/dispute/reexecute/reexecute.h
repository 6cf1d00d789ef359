// Computes one element of one result again, by the reference kernel, from rows of its operands.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "dispute/trace.h"
#include "plan/plan.h"

namespace invar::dispute {

struct Reexecuted {
  std::string element;         // its bytes, little-endian
  uint64_t multiply_adds = 0;  // of the units that were computed
};
// Element `element` of the result of `of`, from its operands and from the weights of the subject.
// Errors: bad_input, operands that are not those of the row, or that the operation does not take;
// failed, a weight that cannot be read or is not the plan's.
Result<Reexecuted> reexecute(const Subject&, const Values& of, int64_t element);

// Multiply-adds of a node for the rows [first, last] (trace.9).
uint64_t multiply_adds(const plan::Plan&, const plan::Node&, int64_t first, int64_t last);

}  // namespace invar::dispute
