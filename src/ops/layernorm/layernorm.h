// What the rows of layernorm share: a row is what the weight covers, the last dimensions of x.
#pragma once
#include "ops/call.h"

namespace invar::ops::layernorm {

int64_t units(const Call&, int phase);  // rows

}  // namespace invar::ops::layernorm
