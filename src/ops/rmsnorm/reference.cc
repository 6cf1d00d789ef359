// spec: rmsnorm.1 - rmsnorm.9; the sums: spec/reduction.md.
#include "num/reduce/reference.h"
#include "kernels/batch_independence.h"
#include "kernels/check.h"
#include "kernels/norm_gradients.h"
#include "kernels/reference.h"
#include "ops/rmsnorm/attributes.h"

namespace invar::ops {
namespace {

// rmsnorm.1 - rmsnorm.3
float row_scale(const View& x, int64_t row, int64_t n, float epsilon) {
  const float squares = num::reference::row_sum_squares(x.as<const float>() + row * n, n);
  const float mean = squares / static_cast<float>(n);
  return inverse_sqrt(mean, epsilon);
}

void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &x = call.in[0], &w = call.in[1], &out = call.out[0];
  int64_t n = w.elements();
  float epsilon = RmsnormAttributes(call).epsilon;
  for (int64_t row = begin; row < end; ++row) {
    float scale = row_scale(x, row, n, epsilon);
    for (int64_t i = 0; i < n; ++i) {
      float scaled = value(x, row * n + i) * scale;
      store_canonical(out, row * n + i, scaled * value(w, i));
    }
  }
}

const char* check(const Call& c) {
  if (!has_operands(c, 2, 1)) return "two operands and one result";
  const View &x = c.in[0], &w = c.in[1], &out = c.out[0];
  if (!is_f32(x) || !is_weight(w) || !is_f32(out)) return "f32 (the weight may be bf16 or f16)";
  if (const char* wrong = check_norm_weight(x, w)) return wrong;
  return same_shape(x, out) ? nullptr : "a result shaped like x";
}

// rmsnorm.6, rmsnorm.7
void run_backward(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &grad = call.in[0], &x = call.in[1], &w = call.in[2], &out = call.out[0];
  const int64_t n = w.elements();
  const float epsilon = RmsnormBackwardAttributes(call).epsilon;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t at = row * n;
    const float scale = row_scale(x, row, n, epsilon);
    auto weighted = [&](int64_t i) { return value(grad, at + i) * value(w, i); };
    auto scaled = [&](int64_t i) { return value(x, at + i) * scale; };
    const float slope = num::reference::row_dot_of(n, weighted, scaled) / static_cast<float>(n);
    for (int64_t i = 0; i < n; ++i)
      store_canonical(out, at + i, std::fma(-scaled(i), slope, weighted(i)) * scale);
  }
}

// rmsnorm.8: phase 0 computes the statistics of rows, phase 1 sums columns.
void run_weight(const Call& call, int phase, int64_t begin, int64_t end, void*) {
  const View &grad = call.in[0], &x = call.in[1];
  const auto [rows, n, segments, blocks] = norm_weight_rows(call);
  const float epsilon = RmsnormBackwardWeightAttributes(call).epsilon;
  float* scale = static_cast<float*>(call.shared);
  for (int64_t row = begin; phase == 0 && row < end; ++row) {
    scale[row] = row_scale(x, row, n, epsilon);
  }
  for (int64_t column = begin; phase == 1 && column < end; ++column)
    store_canonical(call.out[0], column, num::reference::row_sum_of(rows, [&](int64_t row) {
                      const float h = num::canonicalize(value(x, row * n + column) * scale[row]);
                      return num::canonicalize(value(grad, row * n + column) * h);
                    }));
}
int64_t weight_units(const Call& call, int phase) {
  return phase == 0 ? norm_weight_rows(call).rows : call.out[0].elements();
}

}  // namespace

extern const OpContract contract_rmsnorm;
extern const CpuKernel row_rmsnorm_reference;
const OpContract contract_rmsnorm = {
    .op = "rmsnorm", .check = check, .batch_independent = batch_independent_rows};
const CpuKernel row_rmsnorm_reference = {.op = "rmsnorm", .isa = "reference", .units = norm_rows, .run = run};

extern const OpContract contract_rmsnorm_backward, contract_rmsnorm_backward_weight;
extern const CpuKernel row_rmsnorm_backward_reference, row_rmsnorm_backward_weight_reference;
const OpContract contract_rmsnorm_backward = {.op = "rmsnorm_backward",
                                              .check = check_norm_backward,
                                              .batch_independent = norm_backward_batch_independent};
const CpuKernel row_rmsnorm_backward_reference = {
    .op = "rmsnorm_backward", .isa = "reference", .units = norm_backward_rows, .run = run_backward};
const OpContract contract_rmsnorm_backward_weight = {.op = "rmsnorm_backward_weight",
                                                     .check = [](const Call& c) {
                                                       const RmsnormBackwardWeightAttributes a(c);
                                                       return check_norm_backward_weight(c, a.axis);
                                                     }};
const CpuKernel row_rmsnorm_backward_weight_reference = {.op = "rmsnorm_backward_weight",
                                                         .isa = "reference",
                                                         .phases = 2,
                                                         .units = weight_units,
                                                         .run = run_weight,
                                                         .shared_bytes = norm_weight_shared};

}  // namespace invar::ops
