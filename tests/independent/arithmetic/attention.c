// spec/attention.md: one query head, keys in blocks by absolute position.
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

// y[d_v] of one head: keys and values 0 ... keys - 1 of its head of k and v, `k_stride` and
// `v_stride` apart, all visible (attention.3).
static void attend(const float* q, const float* k, const float* v, size_t keys, size_t d,
                   size_t d_v, size_t k_stride, size_t v_stride, float scale, float* y) {
  Fold total = {-INFINITY, 0, y, d_v};
  for (size_t c = 0; c < d_v; c++) y[c] = 0;
  size_t const block = MUTATED(key_blocks_of_64) ? 64 : BLOCK;
  for (size_t begin = 0; begin < keys; begin += block) {
    size_t const count = keys - begin < block ? keys - begin : block;
    float s[BLOCK], scaled[d];
    for (size_t j = 0; j < count; j++) {
      const float* const key = k + (begin + j) * k_stride;
      float dot = contract(q, key, d);
      if (MUTATED(score_is_stored)) dot = store(dot);
      s[j] = dot * scale;
      if (MUTATED(scale_before_contraction)) {
        for (size_t i = 0; i < d; i++) scaled[i] = q[i] * scale;
        s[j] = contract(scaled, key, d);
      }
    }
    fold_block(&total, s, v + begin * v_stride, count, v_stride);
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
void law_attention(const float* q, const float* k, const float* v, size_t position,
                   size_t q_heads, size_t kv_heads, size_t d, size_t d_v, float scale, float* y) {
  size_t const group = q_heads / kv_heads;
  size_t keys = position + 1;
  if (MUTATED(sees_no_self) && position > 0) keys--;
  for (size_t h = 0; h < q_heads; h++) {
    size_t const from = MUTATED(heads_interleave) ? h % kv_heads : h / group;
    attend(q + h * d, k + from * d, v + from * d_v, keys, d, d_v, kv_heads * d, kv_heads * d_v,
           scale, y + h * d_v);
  }
}
