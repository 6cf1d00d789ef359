// spec: spec/attention.md; sums: spec/contraction.md, spec/reduction.md
// Memory: one row per position, all key heads and then all value heads.
#include <cmath>

#include "num/contract/reference.h"
#include "num/reduce/reference.h"
#include "num/reference.h"
#include "ops/check.h"
#include "ops/reference.h"

namespace invar::ops {
namespace {

constexpr int64_t kBlock = 128;  // attention.4
constexpr float kInf = INFINITY;

int64_t units(const Call& call, int phase) {
  int64_t rows = row_count(call.in[0]);
  return phase == 0 ? rows : rows * attr_i(call, "q_heads", 1);
}

size_t scratch_bytes(const Call& call) {
  return static_cast<size_t>(2 * kBlock + last_dim(call.out[0]) / attr_i(call, "q_heads", 1)) * sizeof(float);
}

size_t state_bytes(const Call& call, int64_t capacity) {
  return static_cast<size_t>(call.in[0].dim[0] * capacity * (last_dim(call.in[1]) + last_dim(call.in[2]))) *
         sizeof(float);
}

float weight(float difference) {
  return num::canon(num::reference::exp(difference));
}  // attention.6

// One query and one head; `memory` holds `visible` positions.
void attend(const float* q, const float* memory, int64_t stride, int64_t d, const float* v0, int64_t dv,
            int64_t visible, float scale, float* scratch, const View& out, int64_t at) {
  float *s = scratch, *p = scratch + kBlock, *o = scratch + 2 * kBlock;
  float m = -kInf, l = 0;
  for (int64_t i = 0; i < dv; ++i) o[i] = 0;
  for (int64_t first = 0; first < visible; first += kBlock) {
    int n = static_cast<int>(visible - first < kBlock ? visible - first : kBlock);
    float mb = -kInf;
    for (int j = 0; j < n; ++j) {
      const float* k = memory + (first + j) * stride;
      s[j] = num::reference::contract(
                 d, [&](int64_t i) { return q[i]; }, [&](int64_t i) { return k[i]; }) *
             scale;
      mb = maximum(mb, s[j]);  // attention.5
    }
    if (mb == -kInf) continue;
    for (int j = 0; j < n; ++j) p[j] = weight(s[j] - mb);
    float lb = num::reference::block_sum(p, n);  // attention.7
    bool later = mb > m;                         // attention.9
    float f = weight(later ? m - mb : mb - m);
    l = later ? std::fma(l, f, lb) : std::fma(lb, f, l);
    for (int64_t i = 0; i < dv; ++i) {
      float ob = 0;
      for (int j = 0; j < n; ++j) ob = std::fma(p[j], v0[(first + j) * stride + i], ob);  // attention.8
      o[i] = later ? std::fma(o[i], f, ob) : std::fma(ob, f, o[i]);
    }
    m = maximum(m, mb);
  }
  for (int64_t i = 0; i < dv; ++i) put(out, at + i, m == -kInf ? 0.0f : o[i] / l);  // attention.10
}

void run(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const View &q = call.in[0], &k = call.in[1], &v = call.in[2], &out = call.out[0];
  int64_t seq = q.dim[1], wk = last_dim(k), wv = last_dim(v), stride = wk + wv;
  auto memory = [&](int64_t batch, int64_t position) {
    return static_cast<float*>(call.state) + (batch * call.capacity + position) * stride;
  };
  if (phase == 0) {  // attention.2
    for (int64_t row = begin; row < end; ++row) {
      float* to = memory(row / seq, call.past + row % seq);
      for (int64_t i = 0; i < wk; ++i) to[i] = value(k, row * wk + i);
      for (int64_t i = 0; i < wv; ++i) to[wk + i] = value(v, row * wv + i);
    }
    return;
  }
  int64_t heads = attr_i(call, "q_heads", 1), kv_heads = attr_i(call, "kv_heads", 1);
  int64_t d = wk / kv_heads, dv = wv / kv_heads;
  for (int64_t unit = begin; unit < end; ++unit) {
    int64_t row = unit / heads, h = unit % heads, kv = h / (heads / kv_heads), i = row % seq;
    int64_t visible = call.past + (attr_i(call, "causal", 1) ? i + 1 : seq);  // attention.3
    const float* base = memory(row / seq, 0);
    attend(q.as<const float>() + unit * d, base + kv * d, stride, d, base + wk + kv * dv, dv, visible,
           attr_f(call, "scale", 1.0f), static_cast<float*>(scratch), out, unit * dv);
  }
}

}  // namespace

static const char* check(const Call& c) {
  if (!has_operands(c, 3, 1)) return "q, k, v and one result";
  const View &q = c.in[0], &k = c.in[1], &v = c.in[2], &out = c.out[0];
  if (!is_f32(q) || !is_f32(k) || !is_f32(v) || !is_f32(out)) return "f32";
  int64_t heads = attr_i(c, "q_heads", 1), kv = attr_i(c, "kv_heads", 1);
  attr_i(c, "causal", 1), attr_f(c, "scale", 1.0f);
  if (kv < 1 || heads < kv || heads % kv != 0) return "q_heads a multiple of kv_heads";
  if (q.rank != 3 || k.rank != 3 || v.rank != 3 || out.rank != 3 || !same_leading(q, k, 2) ||
      !same_leading(q, v, 2) || !same_leading(q, out, 2))
    return "operands [B, S, ...] of one batch and length";
  if (k.dim[2] % kv != 0 || v.dim[2] % kv != 0 || k.dim[2] < kv || v.dim[2] < kv ||
      q.dim[2] / heads != k.dim[2] / kv || q.dim[2] % heads != 0 || out.dim[2] != v.dim[2] / kv * heads)
    return "q [B, S, q_heads * D], k [B, S, kv_heads * D], v [B, S, kv_heads * Dv], a result [B, S, q_heads "
           "* Dv]";
  return nullptr;
}

extern const Kernel row_attention_reference;
const Kernel row_attention_reference = {.op = "attention",
                                        .isa = "reference",
                                        .check = check,
                                        .phases = 2,
                                        .units = units,
                                        .run = run,
                                        .scratch_bytes = scratch_bytes,
                                        .state_bytes = state_bytes};

}  // namespace invar::ops
