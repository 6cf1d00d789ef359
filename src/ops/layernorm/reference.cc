// spec: layernorm.1 - layernorm.9; the sums: spec/reduction.md.
#include "num/reduce/reference.h"
#include "kernels/batch_independence.h"
#include "kernels/check.h"
#include "kernels/norm_gradients.h"
#include "kernels/reference.h"
#include "ops/layernorm/attributes.h"

namespace invar::ops {
namespace {

void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &x = call.in[0], &w = call.in[1], &out = call.out[0];
  int64_t n = w.elements();
  float epsilon = LayernormAttributes(call).epsilon;
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

const char* check(const Call& c) {
  if (!has_operands(c, 2, 1) && !has_operands(c, 3, 1)) return "two or three operands and one result";
  const View &x = c.in[0], &w = c.in[1], &out = c.out[0];
  if (!is_f32(x) || !is_weight(w) || !is_f32(out)) return "f32 (weight and bias may be bf16 or f16)";
  if (const char* wrong = check_norm_weight(x, w)) return wrong;
  if (c.in.size() == 3 && (!is_weight(c.in[2]) || !same_shape(w, c.in[2])))
    return "a bias shaped like the weight";
  return same_shape(x, out) ? nullptr : "a result shaped like x";
}

// layernorm.6, layernorm.7
void run_backward(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &grad = call.in[0], &x = call.in[1], &w = call.in[2], &out = call.out[0];
  const int64_t n = w.elements();
  const float epsilon = LayernormBackwardAttributes(call).epsilon, count = static_cast<float>(n);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t at = row * n;
    const auto [mean, variance] = num::reference::row_moments(x.as<const float>() + at, n);
    const float scale = inverse_sqrt(variance, epsilon);
    auto weighted = [&](int64_t i) { return value(grad, at + i) * value(w, i); };
    auto scaled = [&, mean = mean](int64_t i) {
      const float centered = value(x, at + i) - mean;
      return centered * scale;
    };
    const float average = num::reference::row_sum_of(n, weighted) / count;
    const float slope = num::reference::row_dot_of(n, weighted, scaled) / count;
    for (int64_t i = 0; i < n; ++i) {
      const float centered = weighted(i) - average;
      store_canonical(out, at + i, std::fma(-scaled(i), slope, centered) * scale);
    }
  }
}

// layernorm.8: phase 0 computes the statistics of rows, phase 1 sums columns.
void run_weight(const Call& call, int phase, int64_t begin, int64_t end, void*) {
  const View &grad = call.in[0], &x = call.in[1];
  const auto [rows, n, segments, blocks] = norm_weight_rows(call);
  const float epsilon = LayernormBackwardWeightAttributes(call).epsilon;
  float *scale = static_cast<float*>(call.shared), *means = scale + rows;
  for (int64_t row = begin; phase == 0 && row < end; ++row) {
    const auto moments = num::reference::row_moments(x.as<const float>() + row * n, n);
    means[row] = moments.mean;
    scale[row] = inverse_sqrt(moments.variance, epsilon);
  }
  for (int64_t column = begin; phase == 1 && column < end; ++column)
    store_canonical(call.out[0], column, num::reference::row_sum_of(rows, [&](int64_t row) {
                      const float centered = value(x, row * n + column) - means[row];
                      const float h = num::canonicalize(centered * scale[row]);
                      return num::canonicalize(value(grad, row * n + column) * h);
                    }));
}
int64_t weight_units(const Call& call, int phase) {
  return phase == 0 ? norm_weight_rows(call).rows : call.out[0].elements();
}

}  // namespace

extern const OpContract contract_layernorm;
extern const CpuKernel row_layernorm_reference;
const OpContract contract_layernorm = {
    .op = "layernorm", .check = check, .batch_independent = batch_independent_rows};
const CpuKernel row_layernorm_reference = {
    .op = "layernorm", .isa = "reference", .units = norm_rows, .run = run};

extern const OpContract contract_layernorm_backward, contract_layernorm_backward_weight;
extern const CpuKernel row_layernorm_backward_reference, row_layernorm_backward_weight_reference;
const OpContract contract_layernorm_backward = {.op = "layernorm_backward",
                                                .check = check_norm_backward,
                                                .batch_independent = norm_backward_batch_independent};
const CpuKernel row_layernorm_backward_reference = {
    .op = "layernorm_backward", .isa = "reference", .units = norm_backward_rows, .run = run_backward};
const OpContract contract_layernorm_backward_weight = {.op = "layernorm_backward_weight",
                                                       .check = [](const Call& c) {
                                                         const LayernormBackwardWeightAttributes a(c);
                                                         return check_norm_backward_weight(c, a.axis);
                                                       }};
const CpuKernel row_layernorm_backward_weight_reference = {.op = "layernorm_backward_weight",
                                                           .isa = "reference",
                                                           .phases = 2,
                                                           .units = weight_units,
                                                           .run = run_weight,
                                                           .shared_bytes = norm_weight_shared};

}  // namespace invar::ops
