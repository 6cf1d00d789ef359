// spec/operations.md: the operations of a Llama beside attention, on one position each.
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

void law_silu(const float* x, size_t n, float* y) {
  for (size_t i = 0; i < n; i++) {
    float sigmoid = 1 / (1 + law_exp(-x[i]));
    if (!MUTATED(silu_keeps_subnormal_sigmoid)) sigmoid = store(sigmoid);
    y[i] = store(x[i] * sigmoid);
    if (MUTATED(silu_divides)) y[i] = store(x[i] / (1 + law_exp(-x[i])));
  }
}

void law_cosines(const float* x, size_t n, float* y) {
  for (size_t i = 0; i < n; i++) y[i] = store(law_cos(x[i]));
}

void law_sines(const float* x, size_t n, float* y) {
  for (size_t i = 0; i < n; i++) y[i] = store(law_sin(x[i]));
}

// Pairs (i, i + d/2) of each head
void law_rope(const float* x, const float* cosine, const float* sine, size_t heads, size_t d,
              float* y) {
  size_t const half = d / 2;
  for (size_t h = 0; h < heads; h++) {
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
