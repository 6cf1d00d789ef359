// spec: rope.1 - rope.7.
#include "kernels/reference.h"
#include "kernels/check.h"
#include "ops/rope/attributes.h"

namespace invar::ops {

static void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &x = call.in[0], &cos = call.in[1], &sin = call.in[2], &out = call.out[0];
  const RopeAttributes a(call);
  const bool heads_first = a.heads_first != 0;  // rope.6
  int64_t width = last_dim(x), heads = heads_first ? 1 : a.num_heads, d = width / heads;
  int64_t rotary = a.rotary_dim;
  if (rotary == 0) rotary = d;
  int64_t half = rotary / 2;
  bool interleaved = a.interleaved != 0;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t seq = x.dim[heads_first ? 2 : 1], batch = row / seq / (heads_first ? x.dim[1] : 1);
    const int64_t angles = (cos.dim[0] == 1 ? 0 : batch) * seq + row % seq;  // rope.7
    for (int64_t h = 0; h < heads; ++h) {
      int64_t at = row * width + h * d;
      for (int64_t j = 0; j < half; ++j) {
        int64_t first = at + (interleaved ? 2 * j : j), second = at + (interleaved ? 2 * j + 1 : j + half);
        float x1 = value(x, first), x2 = value(x, second);
        float c = value(cos, angles * half + j), s = value(sin, angles * half + j);
        float a = x1 * c, b = x2 * s, e = x2 * c, f = x1 * s;  // rope.2: each product rounded
        store_canonical(out, first, a - b);
        store_canonical(out, second, e + f);
      }
      for (int64_t j = rotary; j < d; ++j) store_canonical(out, at + j, value(x, at + j));  // rope.4
    }
  }
}

static const char* check(const Call& c) {
  if (!has_operands(c, 3, 1)) return "x, cos, sin and one result";
  const View &x = c.in[0], &cos = c.in[1], &sin = c.in[2];
  if (!is_f32(x) || !is_f32(cos) || !is_f32(sin) || !is_f32(c.out[0])) return "f32";
  const RopeAttributes a(c);
  int64_t heads = a.num_heads, rotary = a.rotary_dim;
  const bool heads_first = a.heads_first != 0;
  if (heads_first ? x.rank != 4 || x.dim[1] != heads : x.rank != 3 || heads < 1 || x.dim[2] % heads != 0)
    return "x [B, S, heads * D], or [B, heads, S, D] with heads_first";
  int64_t d = heads_first ? x.dim[3] : x.dim[2] / heads;
  if (rotary < 0 || rotary > d || (rotary ? rotary : d) % 2 != 0) return "an even rotary_dim of at most D";
  if (!same_shape(cos, sin) || cos.rank != 3 || (cos.dim[0] != x.dim[0] && cos.dim[0] != 1) ||
      cos.dim[1] != x.dim[heads_first ? 2 : 1] || cos.dim[2] * 2 != (rotary ? rotary : d))
    return "cos and sin [B or 1, S, rotary_dim / 2]";
  return same_shape(x, c.out[0]) ? nullptr : "a result shaped like x";
}

static bool batch_independent(const Call& c, uint64_t batched) {
  return batched == 7 || (batched == 1 && c.in[1].dim[0] == 1);
}

extern const OpContract contract_rope;
extern const CpuKernel row_rope_reference;
const OpContract contract_rope = {.op = "rope", .check = check, .batch_independent = batch_independent};
const CpuKernel row_rope_reference = {.op = "rope", .isa = "reference", .units = row_units, .run = run};

}  // namespace invar::ops
