// CPU rope: rotates pairs of elements of each head by the given cosines and sines.
#include "kernels/cpu/vector_io.h"
#include "ops/rope/attributes.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// rope.2: one head of one row with pairs (j, j + half).
void rotate_halves(const float* x, const float* c, const float* s, int64_t half, float* out) {
  auto at = [](const float* p, int n) { return n == kW ? load(p) : load_n(p, n); };
  strip(out, half, [&](int64_t j, int n) {
    return sub(mul(at(x + j, n), at(c + j, n)), mul(at(x + half + j, n), at(s + j, n)));
  });
  strip(out + half, half, [&](int64_t j, int n) {
    return add(mul(at(x + half + j, n), at(c + j, n)), mul(at(x + j, n), at(s + j, n)));
  });
}

// rope.3: pairs (2j, 2j + 1). Scalar code: the compiler vectorizes plain multiplies and adds.
void rotate_pairs(const float* x, const float* c, const float* s, int64_t half, float* out) {
  for (int64_t j = 0; j < half; ++j) {
    float x1 = x[2 * j], x2 = x[2 * j + 1];
    float a = x1 * c[j], b = x2 * s[j], d = x2 * c[j], e = x1 * s[j];
    out[2 * j] = num::canonicalize(a - b);
    out[2 * j + 1] = num::canonicalize(d + e);
  }
}

// The row of cosines for a row of x [B, S, H D] or [B, H, S, D]; rope.7.
INVAR_INLINE int64_t angle_row(const View& x, const View& cos, bool heads_first, int64_t row) {
  const int64_t seq = x.dim[heads_first ? 2 : 1];
  if (cos.dim[0] == 1) return row % seq;
  return heads_first ? row / seq / x.dim[1] * seq + row % seq : row;
}

void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const RopeAttributes a(call);
  const bool heads_first = a.heads_first != 0;  // rope.6: a row belongs to one head
  int64_t width = last_dim(call.in[0]), heads = heads_first ? 1 : a.num_heads, d = width / heads;
  int64_t rotary = a.rotary_dim;
  if (rotary == 0) rotary = d;
  int64_t half = rotary / 2;
  auto rotate = a.interleaved ? rotate_pairs : rotate_halves;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t angles = angle_row(call.in[0], call.in[1], heads_first, row);
    const float *c = call.in[1].as<const float>() + angles * half,
                *s = call.in[2].as<const float>() + angles * half;
    for (int64_t h = 0; h < heads; ++h) {
      const float* x = call.in[0].as<const float>() + row * width + h * d;
      float* out = call.out[0].as<float>() + row * width + h * d;
      rotate(x, c, s, half, out);
      strip(out + rotary, d - rotary,
            [&](int64_t j, int n) { return n == kW ? load(x + rotary + j) : load_n(x + rotary + j, n); });
    }
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW;
const CpuKernel INVAR_ROW = {.op = "rope", .isa = INVAR_ISA, .units = row_units, .run = INVAR_ISA_NS::run};

}  // namespace invar::ops
