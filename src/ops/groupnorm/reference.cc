// spec: groupnorm.1 - groupnorm.5; mean and variance: spec/reduction.md reduction.9.
#include "num/reduce/reference.h"
#include "kernels/check.h"
#include "kernels/reference.h"
#include "ops/groupnorm/groupnorm.h"

namespace invar::ops {

static void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &x = call.in[0], &out = call.out[0];
  const groupnorm::Geometry g = groupnorm::geometry(call);
  const int64_t n = g.channels * g.spatial;
  float epsilon = GroupnormAttributes(call).epsilon;
  for (int64_t row = begin; row < end; ++row) {
    auto [mean, variance] = num::reference::row_moments(x.as<const float>() + row * n, n);
    float scale = inverse_sqrt(variance, epsilon);
    for (int64_t i = 0; i < n; ++i) {
      int64_t channel = row % g.groups * g.channels + i / g.spatial;
      float centered = value(x, row * n + i) - mean;
      float scaled = centered * scale;
      float weighted = scaled * value(call.in[1], channel);
      store_canonical(out, row * n + i, weighted + value(call.in[2], channel));
    }
  }
}

static const char* check(const Call& c) {
  if (!has_operands(c, 3, 1)) return "three operands and one result";
  const View &x = c.in[0], &w = c.in[1], &b = c.in[2], &out = c.out[0];
  if (!is_f32(x) || !is_weight(w) || !is_weight(b) || !is_f32(out))
    return "f32 (weight and bias may be bf16 or f16)";
  int64_t groups = GroupnormAttributes(c).groups;
  if (x.rank < 2 || w.rank != 1 || b.rank != 1 || w.dim[0] != x.dim[1] || b.dim[0] != x.dim[1])
    return "x [B, C, ...], a weight [C] and a bias [C]";
  if (groups < 1 || x.dim[1] < 1 || x.dim[1] % groups) return "channels that divide into the groups";
  for (int i = 2; i < x.rank; ++i)
    if (x.dim[i] < 1) return "channels with elements";
  return same_shape(x, out) ? nullptr : "a result shaped like x";
}

extern const OpContract contract_groupnorm;
extern const CpuKernel row_groupnorm_reference;
const OpContract contract_groupnorm = {.op = "groupnorm", .check = check};
const CpuKernel row_groupnorm_reference = {
    .op = "groupnorm", .isa = "reference", .units = groupnorm::units, .run = run};

}  // namespace invar::ops
