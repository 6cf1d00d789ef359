// spec: spec.md layernorm.1 - layernorm.5; mean and variance: spec/reduction.md reduction.9.
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
    auto [mean, variance] = num::reference::row_moments(x.as<const float>() + row * n, n);
    float scale = inverse_sqrt(variance, epsilon);
    for (int64_t i = 0; i < n; ++i) {
      float centered = value(x, row * n + i) - mean;
      float scaled = centered * scale;
      float weighted = scaled * value(w, i);
      store_canonical(out, row * n + i, call.in.size() == 3 ? weighted + value(call.in[2], i) : weighted);
    }
  }
}

static const char* check(const Call& c) {
  if (!has_operands(c, 2, 1) && !has_operands(c, 3, 1)) return "two or three operands and one result";
  const View &x = c.in[0], &w = c.in[1], &out = c.out[0];
  if (!is_f32(x) || !is_weight(w) || !is_f32(out)) return "f32 (weight and bias may be bf16 or f16)";
  attr_f(c, "epsilon", 1e-5f);
  if (const char* wrong = check_norm_weight(x, w)) return wrong;
  if (c.in.size() == 3 && (!is_weight(c.in[2]) || !same_shape(w, c.in[2])))
    return "a bias shaped like the weight";
  return same_shape(x, out) ? nullptr : "a result shaped like x";
}

extern const OpContract contract_layernorm;
extern const CpuKernel row_layernorm_reference;
const OpContract contract_layernorm = {
    .op = "layernorm", .check = check, .batch_independent = batch_independent_rows};
const CpuKernel row_layernorm_reference = {
    .op = "layernorm", .isa = "reference", .units = norm_rows, .run = run};

}  // namespace invar::ops
