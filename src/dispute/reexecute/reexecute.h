// Computes one element of one result again, by the reference kernel, from rows of its operands.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/hash/digest_cache.h"
#include "base/status.h"
#include "plan/plan.h"

namespace invar::dispute {

struct Reexecuted {
  std::string element;         // its bytes, little-endian
  uint64_t multiply_adds = 0;  // of the units that were computed
};
// Where the judge's own weights are, and which of them it has hashed already (may be null).
struct OwnWeights {
  std::string folder;
  const DigestCache* hashed = nullptr;
};

// Element `element` of row `row` of `value`. known: the bytes of the operands by value, inputs of
// the plan included, little-endian: of an operation with memory the rows from 0 to `row`, of every
// other `row` alone. Code failed: a weight that the node reads is not that of the plan.
Result<Reexecuted> reexecute(const plan::Plan&, const OwnWeights&, int value, int64_t row, int64_t element,
                             const std::map<int, std::string>& known);

// Multiply-adds of a node for the rows [first, last] (trace.9).
uint64_t multiply_adds(const plan::Plan&, const plan::Node&, int64_t first, int64_t last);

}  // namespace invar::dispute
