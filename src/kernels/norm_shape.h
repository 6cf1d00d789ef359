// What normalizations with a weight of the last dimensions of x share: a row of x is what the weight covers.
#pragma once
#include "kernels/call.h"

namespace invar::ops {

// Rows of in[0]; in[1] is the weight.
int64_t covered_rows(const Call&, int phase);

// The weight w has the last dimensions of x, and elements.
const char* check_covered(const View& x, const View& w);

}  // namespace invar::ops
