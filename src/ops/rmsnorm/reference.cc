// spec: spec.md rmsnorm.1 - rmsnorm.5; the sum: spec/reduction.md
#include <cmath>

#include "num/reduce/reference.h"
#include "ops/reference.h"

namespace invar::ops {

static void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &x = call.in[0], &w = call.in[1], &out = call.out[0];
  int64_t n = last_dim(x);
  float epsilon = attr_f(call, "epsilon", 1e-5f);
  for (int64_t row = begin; row < end; ++row) {
    float squares = num::reference::row_sum_squares(x.as<const float>() + row * n, n);
    float mean = squares / static_cast<float>(n);
    float shifted = mean + epsilon;
    float root = std::sqrt(shifted);
    float scale = 1.0f / root;
    for (int64_t i = 0; i < n; ++i) {
      float scaled = value(x, row * n + i) * scale;
      put(out, row * n + i, scaled * value(w, i));
    }
  }
}

extern const Kernel row_rmsnorm_reference;
const Kernel row_rmsnorm_reference = {.op = "rmsnorm", .isa = "reference", .units = row_units, .run = run};

}  // namespace invar::ops
