// spec: spec.md rmsnorm.1 - rmsnorm.5; the sum: spec/reduction.md.
#include "num/reduce/reference.h"
#include "kernels/batch_independence.h"
#include "kernels/check.h"
#include "kernels/reference.h"

namespace invar::ops {

static void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &x = call.in[0], &w = call.in[1], &out = call.out[0];
  int64_t n = w.elements();
  float epsilon = attr_f(call, "epsilon", 1e-5f);
  for (int64_t row = begin; row < end; ++row) {
    float squares = num::reference::row_sum_squares(x.as<const float>() + row * n, n);
    float mean = squares / static_cast<float>(n);
    float scale = inverse_sqrt(mean, epsilon);
    for (int64_t i = 0; i < n; ++i) {
      float scaled = value(x, row * n + i) * scale;
      store_canonical(out, row * n + i, scaled * value(w, i));
    }
  }
}

static const char* check(const Call& c) {
  if (!has_operands(c, 2, 1)) return "two operands and one result";
  const View &x = c.in[0], &w = c.in[1], &out = c.out[0];
  if (!is_f32(x) || !is_weight(w) || !is_f32(out)) return "f32 (the weight may be bf16 or f16)";
  attr_f(c, "epsilon", 1e-5f);
  if (const char* wrong = check_norm_weight(x, w)) return wrong;
  return same_shape(x, out) ? nullptr : "a result shaped like x";
}

extern const OpContract contract_rmsnorm;
extern const CpuKernel row_rmsnorm_reference;
const OpContract contract_rmsnorm = {
    .op = "rmsnorm", .check = check, .batch_independent = batch_independent_rows};
const CpuKernel row_rmsnorm_reference = {.op = "rmsnorm", .isa = "reference", .units = norm_rows, .run = run};

}  // namespace invar::ops
