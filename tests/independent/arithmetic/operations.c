// spec/operations.md: operations beside attention, on one position each.
#include "law.h"

#include <math.h>

// y[rows] = x[n] times the transpose of w[rows, n]
void law_linear(const float* x, const float* w, size_t rows, size_t n, float* y) {
  for (size_t r = 0; r < rows; r++) {
    float const product = contract(x, w + r * n, n);
    y[r] = MUTATED(product_keeps_subnormals) ? product : store(product);
  }
}

void law_add(const float* a, const float* b, size_t n, float* y) {
  for (size_t i = 0; i < n; i++) y[i] = store(a[i] + b[i]);
}

void law_mul(const float* a, const float* b, size_t n, float* y) {
  for (size_t i = 0; i < n; i++) y[i] = store(a[i] * b[i]);
}

void law_rms_norm(const float* x, const float* w, size_t n, float epsilon, float* y) {
  float const total = sum_of_squares(x, n);
  float mean = total / (float)n;
  if (MUTATED(norm_multiplies_by_inverse)) mean = total * (1 / (float)n);
  float root = sqrtf(mean + epsilon);
  if (MUTATED(norm_epsilon_outside_root)) root = sqrtf(mean) + epsilon;
  float inverse = 1 / root;
  if (MUTATED(norm_root_rounds_once)) inverse = (float)(1 / sqrt((double)(mean + epsilon)));
  for (size_t i = 0; i < n; i++) {
    y[i] = store(MUTATED(norm_divides_by_root) ? x[i] / root * w[i]
                 : MUTATED(norm_weight_first)  ? x[i] * (inverse * w[i])
                                               : x[i] * inverse * w[i]);
  }
}

// layernorm.2 to layernorm.4
void law_layer_norm(const float* x, const float* w, const float* b, size_t n, float epsilon,
                    float* y) {
  float const m = sum_of_row(x, n) / (float)n;
  float v = sum_of_squares_about(x, n, m) / (float)n;
  if (MUTATED(moments_in_one_pass)) v = sum_of_squares(x, n) / (float)n - m * m;
  float const r = 1 / sqrtf(v + epsilon);
  for (size_t i = 0; i < n; i++) y[i] = store((x[i] - m) * r * w[i] + b[i]);
}

// elementwise.12
void law_gelu(const float* x, size_t n, float* y) {
  float const c = float_of(0x3f3504f3), d = float_of(0x324fe77a), k = float_of(0x3fa2f983);
  for (size_t i = 0; i < n; i++) {
    float const z = x[i] > -20 ? -x[i] : 20, t = z * c;
    float e;
    law_function("erfc", t, &e);
    float const r = fmaf(z, d, fmaf(z, c, -t)), m = t + sqrtf(fmaf(t, t, k));
    float const w = x[i] < 0 ? fmaf(-(r * m), e, e) : e;
    y[i] = store(0.5f * x[i] * (MUTATED(gelu_by_erf) ? e : w));
  }
}

void law_silu(const float* x, size_t n, float* y) {
  for (size_t i = 0; i < n; i++) {
    float sigmoid = 1 / (1 + law_exp(-x[i]));
    if (!MUTATED(silu_keeps_subnormal_sigmoid)) sigmoid = store(sigmoid);
    y[i] = store(x[i] * sigmoid);
    if (MUTATED(silu_divides)) y[i] = store(x[i] / (1 + law_exp(-x[i])));
  }
}

void law_sigmoid(const float* x, size_t n, float* y) {
  for (size_t i = 0; i < n; i++) y[i] = store(1 / (1 + law_exp(-x[i])));
}

void law_exps(const float* x, size_t n, float* y) {
  for (size_t i = 0; i < n; i++) y[i] = store(law_exp(x[i]));
}

// elementwise.12
void law_softplus(const float* x, size_t n, float* y) {
  for (size_t i = 0; i < n; i++) {
    float rest;
    law_function("log1p", law_exp(-fabsf(x[i])), &rest);
    y[i] = store(maximum(x[i], 0.0f) + rest);
  }
}

// softmax.1 to softmax.4
void law_softmax(const float* x, size_t n, float* y) {
  float m = x[0];
  for (size_t i = 1; i < n; i++) m = maximum(m, x[i]);
  for (size_t i = 0; i < n; i++) y[i] = store(law_exp(x[i] - m));
  float const total = sum_of_row(y, n);
  for (size_t i = 0; i < n; i++) y[i] = store(y[i] / total);
}

void law_cosines(const float* x, size_t n, float* y) {
  for (size_t i = 0; i < n; i++) y[i] = store(law_cos(x[i]));
}

void law_sines(const float* x, size_t n, float* y) {
  for (size_t i = 0; i < n; i++) y[i] = store(law_sin(x[i]));
}

// Pairs (i, i + r/2) of the first r elements of each head; the others stay (rope.4).
void law_rope(const float* x, const float* cosine, const float* sine, size_t heads, size_t d,
              size_t r, float* y) {
  size_t const half = r / 2;
  for (size_t h = 0; h < heads; h++) {
    for (size_t i = r; i < d; i++) y[h * d + i] = store(x[h * d + i]);
    for (size_t i = 0; i < half; i++) {
      size_t const a = MUTATED(rope_interleaves) ? h * d + 2 * i : h * d + i;
      size_t const b = MUTATED(rope_interleaves) ? a + 1 : a + half;
      float const s = MUTATED(rope_turns_back) ? -sine[i] : sine[i];
      float const c = cosine[i];
      y[a] = store(x[a] * c - x[b] * s);
      y[b] = store(x[b] * c + x[a] * s);
      if (MUTATED(rope_fuses)) y[a] = store(fmaf(x[a], c, -(x[b] * s)));
    }
  }
}
