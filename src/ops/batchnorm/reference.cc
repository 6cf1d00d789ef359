// spec: batchnorm.1 - batchnorm.4
#include "kernels/reference.h"
#include "kernels/check.h"
#include "ops/batchnorm/batchnorm.h"

namespace invar::ops {

static void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const batchnorm::Geometry g = batchnorm::geometry(call);
  const int64_t per_unit = call.out[0].elements() ? g.spatial == 1 ? g.channels : g.spatial : 0;
  float epsilon = BatchnormAttributes(call).epsilon;
  for (int64_t i = begin * per_unit; i < end * per_unit; ++i) {
    int64_t c = i / g.spatial % g.channels;
    float scale = inverse_sqrt(value(call.in[4], c), epsilon);
    float centered = value(call.in[0], i) - value(call.in[3], c);
    float scaled = centered * scale;
    float weighted = scaled * value(call.in[1], c);
    store_canonical(call.out[0], i, weighted + value(call.in[2], c));
  }
}

static const char* check(const Call& c) {
  if (!has_operands(c, 5, 1)) return "five operands and one result";
  const View &x = c.in[0], &out = c.out[0];
  if (!is_f32(x) || !is_f32(out)) return "f32 (what is known of channels may be bf16 or f16)";
  if (x.rank < 2) return "x [B, C, ...]";
  for (const View& v : c.in.subspan(1)) {
    if (!is_weight(v)) return "f32, bf16 or f16 for what is known of channels";
    if (v.rank != 1 || v.dim[0] != x.dim[1]) return "weight, bias, mean and variance [C] for x [B, C, ...]";
  }
  return same_shape(x, out) ? nullptr : "a result shaped like x";
}

extern const OpContract contract_batchnorm;
extern const CpuKernel row_batchnorm_reference;
const OpContract contract_batchnorm = {.op = "batchnorm", .check = check};
const CpuKernel row_batchnorm_reference = {
    .op = "batchnorm", .isa = "reference", .units = batchnorm::units, .run = run};

}  // namespace invar::ops
