// spec: spec.md matmul.1 - matmul.4; the sum: spec/contraction.md
#include "num/contract/reference.h"
#include "ops/check.h"
#include "ops/matmul/matmul.h"
#include "ops/reference.h"

namespace invar::ops {

static matmul::Shape shape(const Call& c) {
  return matmul::shape(c.in[0], c.in[1], c.out[0], attr_i(c, "trans_a", 0) != 0,
                       attr_i(c, "trans_b", 0) != 0);
}

static void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &a = call.in[0], &b = call.in[1], &out = call.out[0];
  const matmul::Shape s = shape(call);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t i = row % s.m;
    const matmul::Offsets at = matmul::offsets(s, row / s.m);
    for (int64_t j = 0; j < s.n; ++j) {
      auto left = [&](int64_t k) { return value(a, at.a + (s.trans_a ? k * s.m + i : i * s.k + k)); };
      auto right = [&](int64_t k) { return value(b, at.b + (s.trans_b ? j * s.k + k : k * s.n + j)); };
      put(out, row * s.n + j, num::reference::contract(s.k, left, right));
    }
  }
}

static const char* check(const Call& c) {
  if (!has_operands(c, 2, 1)) return "two operands and one result";
  const View &a = c.in[0], &b = c.in[1], &out = c.out[0];
  if (!is_f32(a) || !is_weight(b) || !is_f32(out)) return "f32 (the second operand may be bf16 or f16)";
  const bool trans_a = attr_i(c, "trans_a", 0) != 0, trans_b = attr_i(c, "trans_b", 0) != 0;
  const char* shapes =
      "[..., M, K] times [..., K, N], the last two dimensions exchanged with trans_a, trans_b";
  if (a.rank < (trans_a ? 2 : 1) || b.rank < 2 || (a.rank < 2 && b.rank > 2)) return shapes;
  if (a.dim[a.rank - (trans_a ? 2 : 1)] != b.dim[b.rank - (trans_b ? 1 : 2)]) return shapes;
  const char* result = "a result [..., M, N] whose leading dimensions both operands broadcast to";
  if (out.rank != (a.rank < 2 || a.rank > b.rank ? a.rank : b.rank) ||
      last_dim(out) != b.dim[b.rank - (trans_b ? 2 : 1)])
    return result;
  if (a.rank >= 2 && out.dim[out.rank - 2] != a.dim[a.rank - (trans_a ? 1 : 2)]) return result;
  for (int i = 3; i <= out.rank; ++i) {
    const int64_t da = i <= a.rank ? a.dim[a.rank - i] : 1, db = i <= b.rank ? b.dim[b.rank - i] : 1;
    if ((da != db && da != 1 && db != 1) || out.dim[out.rank - i] != (da == 1 ? db : da)) return result;
  }
  return nullptr;
}

extern const Kernel row_matmul_reference;
const Kernel row_matmul_reference = {
    .op = "matmul", .isa = "reference", .check = check, .units = row_units, .run = run};

}  // namespace invar::ops
