// spec: spec.md argmax.1 - argmax.4
#include "ops/reference.h"
#include "ops/check.h"

namespace invar::ops {

static int64_t units(const Call& call, int) {
  return row_count(call.in[0]);
}

static void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  int64_t n = last_dim(call.in[0]);
  for (int64_t r = begin; r < end; ++r) {
    const float* x = call.in[0].as<const float>() + r * n;
    int64_t best = 0;
    for (int64_t i = 1; i < n; ++i)
      if (x[i] > x[best] || (x[i] != x[i] && x[best] == x[best]))
        best = i;  // argmax.3: NaN is above all numbers
    call.out[0].as<int64_t>()[r] = best;
  }
}

static const char* check(const Call& c) {
  if (!has_operands(c, 1, 1) || !is_f32(c.in[0]) || c.out[0].dtype != DType::i64)
    return "an f32 operand and an i64 result";
  if (c.in[0].rank < 1 || last_dim(c.in[0]) < 1) return "a last dimension with elements";
  return c.out[0].elements() == row_count(c.in[0]) ? nullptr : "a result with one element for each row";
}

extern const Kernel row_argmax_reference;
const Kernel row_argmax_reference = {
    .op = "argmax", .isa = "reference", .check = check, .units = units, .run = run};

}  // namespace invar::ops
