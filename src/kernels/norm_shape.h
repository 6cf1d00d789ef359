// Shapes of layer and RMS normalization: the weight covers the trailing dimensions of x, and one
// normalized row of x is as large as the weight.
#pragma once
#include "kernels/call.h"

namespace invar::ops {

// Number of rows of in[0]; in[1] is the weight.
int64_t norm_rows(const Call&, int phase);

// Checks that the weight has the trailing dimensions of x and is not empty.
const char* check_norm_weight(const View& x, const View& w);

}  // namespace invar::ops
