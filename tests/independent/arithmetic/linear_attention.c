// spec/ops/linear_attention.md and spec/ops/causal_conv.md: one position after the other.
#include "law.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64 };  // linear_attention.2

// One head: its memory and the rows of its chunk. Rows of k and u are CHUNK, of g a column or d.
typedef struct {
  size_t d, d_v, decays, t;  // t: the row of this position in its chunk
  float* state;              // [d, d_v], before the chunk
  float* k;                  // [CHUNK, d]
  float* u;                  // [CHUNK, d_v]
  double* g;                 // [CHUNK, decays], linear_attention.3
} Head;

// linear_attention.3: exp of a binary64 number, stored
static float decay(double x) {
  if (MUTATED(decay_in_binary64)) return store((float)exp(x));
  float const y = law_exp((float)x);
  return MUTATED(decay_keeps_subnormals) ? y : store(y);
}

static double sum_of_decays(const Head* h, size_t t, size_t j) {
  return h->g[t * h->decays + (h->decays == 1 ? 0 : j)];
}

// d(t, i) of channel j; a(t) is A_t
static float between(const Head* h, size_t t, size_t i, size_t j) {
  return decay(sum_of_decays(h, t, j) - sum_of_decays(h, i, j));
}
static float a(const Head* h, size_t t, size_t j) { return decay(sum_of_decays(h, t, j)); }

// linear_attention.4: w_x(t, i)
static float weight(const Head* h, const float* x, size_t i) {
  const float* const k = h->k + i * h->d;
  if (h->decays == 1) return store(contract(k, x, h->d) * between(h, h->t, i, 0));
  float m[h->d];
  for (size_t j = 0; j < h->d; j++) m[j] = store(k[j] * between(h, h->t, i, j));
  return store(contract(m, x, h->d));
}

// linear_attention.4: h_x(t)[c]
static float past(const Head* h, const float* x, size_t c) {
  float n[h->d], column[h->d];
  for (size_t j = 0; j < h->d; j++) {
    n[j] = h->decays == 1 ? x[j] : store(a(h, h->t, j) * x[j]);
    column[j] = h->state[j * h->d_v + c];
  }
  float const y = contract(n, column, h->d);
  if (h->decays != 1) return y;
  return MUTATED(past_is_stored) ? store(a(h, h->t, 0) * y) : a(h, h->t, 0) * y;
}

// The sum of linear_attention.5 and linear_attention.6: r, then `rows` terms in ascending order
static float folded(const Head* h, float r, const float* w, size_t rows, size_t c) {
  for (size_t i = 0; i < rows; i++) {
    float const u = h->u[i * h->d_v + c];
    r = MUTATED(chunk_multiplies_and_adds) ? r + w[i] * u : fmaf(w[i], u, r);
  }
  return r;
}

// linear_attention.7
static void next_state(Head* h) {
  for (size_t j = 0; j < h->d; j++) {
    float m[CHUNK];
    for (size_t i = 0; i <= h->t; i++) {
      m[i] = store(h->k[i * h->d + j] * between(h, h->t, i, j));
    }
    for (size_t c = 0; c < h->d_v; c++) {
      float* const s = h->state + j * h->d_v + c;
      *s = store(folded(h, a(h, h->t, j) * *s, m, h->t + 1, c));
    }
  }
}

// A position of one head; beta is null for gated_linear_attention.
static void step(Head* h, const float* q, const float* k, const float* v, const float* g,
                 const float* beta, float scale, float* y) {
  size_t const t = h->t;
  memcpy(h->k + t * h->d, k, h->d * sizeof *k);
  for (size_t j = 0; j < h->decays; j++) {
    double const before = t == 0 ? 0 : h->g[(t - 1) * h->decays + j];
    h->g[t * h->decays + j] =
        MUTATED(decays_add_in_binary32) ? (float)before + g[j] : before + (double)g[j];
  }
  float w[CHUNK];
  for (size_t i = 0; beta && i < t; i++) w[i] = weight(h, k, i);
  for (size_t c = 0; c < h->d_v; c++) {  // linear_attention.5
    float* const u = h->u + t * h->d_v + c;
    *u = v[c];
    if (beta) *u = store(*beta * (v[c] - folded(h, past(h, k, c), w, t, c)));
  }
  for (size_t i = 0; i <= t; i++) w[i] = weight(h, q, i);
  for (size_t c = 0; c < h->d_v; c++) {
    float const r = folded(h, past(h, q, c), w, t + 1, c);
    y[c] = MUTATED(scale_is_left_out) ? store(r) : store(r * scale);
  }
  size_t const chunk = MUTATED(chunks_of_32) ? 32 : CHUNK;
  if (t + 1 == chunk) next_state(h);
}

// Position `position` of all heads. state [heads_v, d, d_v], keys [CHUNK, heads_k, d] are of heads
// of values here: [heads_v, CHUNK, d]; u and g likewise. All are 0 before the first position.
void law_linear_attention(const float* q, const float* k, const float* v, const float* g,
                          const float* beta, size_t position, size_t heads_k, size_t heads_v,
                          size_t d, size_t d_v, size_t decays, float scale, float* state,
                          float* keys, float* u, double* sums, float* y) {
  size_t const group = heads_v / heads_k;
  size_t const chunk = MUTATED(chunks_of_32) ? 32 : CHUNK;
  for (size_t h = 0; h < heads_v; h++) {
    size_t const from = MUTATED(value_heads_interleave) ? h % heads_k : h / group;
    Head head = {d, d_v, decays, position % chunk, state + h * d * d_v, keys + h * CHUNK * d,
                 u + h * CHUNK * d_v, sums + h * CHUNK * decays};
    step(&head, q + from * d, k + from * d, v + h * d_v, g + h * decays, beta ? beta + h : 0, scale,
         y + h * d_v);
  }
}

// causal_conv.2: x are the last rows [rows, n] up to this position, at most `taps`; w [n, taps].
// The bias of causal_conv.3 is an add.
void law_causal_conv(const float* x, size_t rows, const float* w, size_t taps, size_t n, float* y) {
  for (size_t c = 0; c < n; c++) {
    float a[8] = {0}, b[8] = {0};
    size_t const first = taps - rows;
    for (size_t r = 0; r < rows; r++) {
      a[r] = x[r * n + c];
      b[r] = w[c * taps + (MUTATED(taps_turn_back) ? taps - 1 - first - r : first + r)];
    }
    y[c] = store(contract(a, b, rows));
  }
}
