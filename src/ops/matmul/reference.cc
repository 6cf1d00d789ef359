// spec: spec.md matmul.1 - matmul.4; the sum: spec/contraction.md
#include "num/contract/reference.h"
#include "ops/check.h"
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

static const char* check(const Call& c) {
  if (!has_operands(c, 2, 1)) return "two operands and one result";
  const View &a = c.in[0], &b = c.in[1], &out = c.out[0];
  if (!is_f32(a) || !is_weight(b) || !is_f32(out)) return "f32 (the second operand may be bf16 or f16)";
  bool trans = attr_i(c, "trans_b", 0) != 0;
  if (a.rank < 1 || b.rank != 2 || last_dim(a) != b.dim[trans ? 1 : 0])
    return "[..., K] times [K, N], or [N, K] with trans_b";
  return out.rank == a.rank && same_leading(a, out, a.rank - 1) && last_dim(out) == b.dim[trans ? 0 : 1]
             ? nullptr
             : "a result [..., N]";
}

extern const Kernel row_matmul_reference;
const Kernel row_matmul_reference = {
    .op = "matmul", .isa = "reference", .check = check, .units = row_units, .run = run};

}  // namespace invar::ops
