// spec/attention.md and spec/attention-exact16.md: one query head, keys in blocks by absolute
// position.
#include "law.h"

#include <math.h>

enum { BLOCK = 128 };  // attention.4

typedef struct {
  float m, l;
  float* o;
  size_t columns;
} Fold;

// attention.9; the block is (m, l, o)
static void fold(Fold* to, float m, float l, const float* o) {
  int const newer = m > to->m || MUTATED(fold_rescales_old_only);
  float f = law_exp(newer ? to->m - m : m - to->m);
  if (!MUTATED(fold_keeps_subnormal_factor)) f = store(f);
  if (MUTATED(fold_rounds_product)) {
    to->l = newer ? to->l * f + l : l * f + to->l;
    for (size_t c = 0; c < to->columns; c++) {
      to->o[c] = newer ? to->o[c] * f + o[c] : o[c] * f + to->o[c];
    }
  } else {
    to->l = newer ? fmaf(to->l, f, l) : fmaf(l, f, to->l);
    for (size_t c = 0; c < to->columns; c++) {
      to->o[c] = newer ? fmaf(to->o[c], f, o[c]) : fmaf(o[c], f, to->o[c]);
    }
  }
  to->m = newer && MUTATED(fold_rescales_old_only) ? m : maximum(to->m, m);
}

// attention.5 to attention.8: `count` visible keys of one block with their scores and values
static void fold_block(Fold* to, const float* s, const float* v, size_t count, size_t stride) {
  float m = MUTATED(block_maximum_runs) ? to->m : -INFINITY;
  for (size_t j = 0; j < count; j++) m = maximum(m, s[j]);
  if (m == -INFINITY) return;
  float p[BLOCK], o[to->columns];
  for (size_t c = 0; c < to->columns; c++) o[c] = 0;
  for (size_t j = 0; j < count; j++) {
    p[j] = law_exp(s[j] - m);
    if (!MUTATED(weights_keep_subnormals)) p[j] = store(p[j]);
    if (MUTATED(block_skips_zero_weights) && p[j] == 0) continue;
    for (size_t c = 0; c < to->columns; c++) {
      float const value = v[j * stride + c];
      o[c] = MUTATED(block_value_rounds_product) ? o[c] + p[j] * value : fmaf(p[j], value, o[c]);
    }
  }
  fold(to, m, sum_of_block(p, count), o);
}

// attention_exact16.3. x <= 0
static double exact16_weight(float x, int* exponent) {
  float const log2_e = float_of(0x3fb8aa3b), c = 0x1.8p23f;
  if (x < -87) x = -87;
  float const n = fmaf(x, log2_e, c) - c, f = fmaf(x, log2_e, -n);
  float p = float_of(0x3c1d0166);
  if (MUTATED(exact16_exp_degree_3)) p = 0;
  p = fmaf(p, f, float_of(0x3d64fe23));
  p = fmaf(p, f, float_of(0x3e7601bc));
  p = fmaf(p, f, float_of(0x3f317096));
  p = fmaf(p, f, 1);
  *exponent = (int)n;
  return ldexp((double)p, (int)n);
}

// attention_exact16.3 to attention_exact16.6
static void fold_block_exact16(Fold* to, const float* s, const float* v, size_t count,
                               size_t stride) {
  size_t const columns = to->columns;
  float m = -INFINITY, o[columns];
  for (size_t j = 0; j < count; j++) m = maximum(m, s[j]);
  if (m == -INFINITY) return;
  if (isnan(m) || isinf(m)) {
    for (size_t c = 0; c < columns; c++) o[c] = NAN;
    fold(to, m, NAN, o);
    return;
  }
  int64_t q[BLOCK][columns], l = 0, sum[columns];
  double p[BLOCK];
  int e[BLOCK], good = 1, most = INT32_MIN;
  for (size_t j = 0; j < count; j++) {
    if (s[j] == -INFINITY) continue;
    int n, zero = 1;
    p[j] = exact16_weight(s[j] - m, &n);
    l += (int64_t)rint(ldexp(p[j], 22));
    if (!exact16_row(v + j * stride, columns, q[j], &e[j])) good = 0;
    for (size_t c = 0; good && c < columns; c++) zero &= q[j][c] == 0;
    if (MUTATED(exact16_largest_scale)) n = 0;
    if (good && !zero && n + e[j] > most) most = n + e[j];
  }
  for (size_t c = 0; c < columns; c++) sum[c] = 0;
  for (size_t j = 0; good && most > INT32_MIN && j < count; j++) {
    if (s[j] == -INFINITY) continue;
    int const bits = MUTATED(exact16_weights_of_16_bits) ? 15 : 14;
    int64_t const w = (int64_t)rint(ldexp(p[j], bits + e[j] - most)) >> (bits - 14);
    for (size_t c = 0; c < columns; c++) sum[c] += w * q[j][c];
  }
  for (size_t c = 0; c < columns; c++) o[c] = good ? exact16_result(sum[c], most - 14) : NAN;
  fold(to, m, ldexpf((float)l, -22), o);
}

// The product of a row of q and one of k.
static float dot_exact16(const float* q, const float* k, size_t d) {
  int64_t a[d], b[d], v = 0;
  int ea, eb;
  if (!exact16_row(q, d, a, &ea) || !exact16_row(k, d, b, &eb)) return NAN;
  for (size_t i = 0; i < d; i++) v += a[i] * b[i];
  return exact16_result(v, ea + eb);
}

// y[d_v] of one head: keys and values 0 ... keys - 1 of its head of k and v, `k_stride` and
// `v_stride` apart, all visible (attention.3).
static void attend(const float* q, const float* k, const float* v, size_t keys, size_t d,
                   size_t d_v, size_t k_stride, size_t v_stride, float scale, int exact16,
                   float* y) {
  Fold total = {-INFINITY, 0, y, d_v};
  for (size_t c = 0; c < d_v; c++) y[c] = 0;
  size_t const block = MUTATED(key_blocks_of_64) ? 64 : BLOCK;
  for (size_t begin = 0; begin < keys; begin += block) {
    size_t const count = keys - begin < block ? keys - begin : block;
    float s[BLOCK], scaled[d];
    for (size_t j = 0; j < count; j++) {
      const float* const key = k + (begin + j) * k_stride;
      float dot = exact16 ? dot_exact16(q, key, d) : contract(q, key, d);
      if (MUTATED(score_is_stored)) dot = store(dot);
      s[j] = dot * scale;
      if (MUTATED(scale_before_contraction)) {
        for (size_t i = 0; i < d; i++) scaled[i] = q[i] * scale;
        s[j] = contract(scaled, key, d);
      }
    }
    (exact16 ? fold_block_exact16 : fold_block)(&total, s, v + begin * v_stride, count, v_stride);
  }
  for (size_t c = 0; c < d_v; c++) {  // attention.10
    float const o = y[c];
    y[c] = total.m == -INFINITY          ? 0.0f
           : MUTATED(result_by_reciprocal) ? store(o * (1 / total.l))
                                           : store(o / total.l);
  }
}

// A causal query at position `position` over a memory that holds at least the keys and values of
// positions 0 ... position (attention.1 to attention.3); rows of k are [kv_heads, d], of v
// [kv_heads, d_v].
static void attend_all(const float* q, const float* k, const float* v, size_t position,
                       size_t q_heads, size_t kv_heads, size_t d, size_t d_v, float scale,
                       int exact16, float* y) {
  size_t const group = q_heads / kv_heads;
  size_t keys = position + 1;
  if (MUTATED(sees_no_self) && position > 0) keys--;
  for (size_t h = 0; h < q_heads; h++) {
    size_t const from = MUTATED(heads_interleave) ? h % kv_heads : h / group;
    attend(q + h * d, k + from * d, v + from * d_v, keys, d, d_v, kv_heads * d, kv_heads * d_v,
           scale, exact16, y + h * d_v);
  }
}

void law_attention(const float* q, const float* k, const float* v, size_t position,
                   size_t q_heads, size_t kv_heads, size_t d, size_t d_v, float scale, float* y) {
  attend_all(q, k, v, position, q_heads, kv_heads, d, d_v, scale, 0, y);
}
void law_attention_exact16(const float* q, const float* k, const float* v, size_t position,
                           size_t q_heads, size_t kv_heads, size_t d, size_t d_v, float scale,
                           float* y) {
  attend_all(q, k, v, position, q_heads, kv_heads, d, d_v, scale, 1, y);
}
