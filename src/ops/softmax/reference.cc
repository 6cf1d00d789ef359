// spec: spec.md softmax.1 - softmax.5; the sum: spec/reduction.md
#include "num/reference.h"
#include "num/reduce/reference.h"
#include "ops/check.h"
#include "ops/reference.h"

namespace invar::ops {

static void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &in = call.in[0], &out = call.out[0];
  int64_t n = last_dim(in);
  for (int64_t row = begin; row < end; ++row) {
    const float* x = in.as<const float>() + row * n;
    float most = x[0];
    for (int64_t i = 1; i < n; ++i) most = maximum(most, x[i]);                               // softmax.1
    for (int64_t i = 0; i < n; ++i) put(out, row * n + i, num::reference::exp(x[i] - most));  // softmax.2
    float sum = num::reference::row_sum(out.as<const float>() + row * n, n);                  // softmax.3
    for (int64_t i = 0; i < n; ++i) put(out, row * n + i, value(out, row * n + i) / sum);     // softmax.4
  }
}

extern const Kernel row_softmax_reference;
const Kernel row_softmax_reference = {
    .op = "softmax", .isa = "reference", .check = check_rows, .units = row_units, .run = run};

}  // namespace invar::ops
