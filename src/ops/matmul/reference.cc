// spec: spec.md matmul.1 - matmul.4; the sum: spec/contraction.md
#include "num/contract/reference.h"
#include "ops/reference.h"

namespace invar::ops {

static void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &a = call.in[0], &b = call.in[1], &out = call.out[0];
  bool trans = attr_i(call, "trans_b", 0) != 0;
  int64_t k = last_dim(a), n = last_dim(out);
  for (int64_t row = begin; row < end; ++row)
    for (int64_t j = 0; j < n; ++j) {
      auto left = [&](int64_t i) { return value(a, row * k + i); };
      auto right = [&](int64_t i) { return value(b, trans ? j * k + i : i * n + j); };
      put(out, row * n + j, num::reference::contract(k, left, right));
    }
}

extern const Kernel row_matmul_reference;
const Kernel row_matmul_reference = {.op = "matmul", .isa = "reference", .units = row_units, .run = run};

}  // namespace invar::ops
