// spec: linear_attention.1 - linear_attention.9; sums over channels: spec/contraction.md.
#include "kernels/reference.h"

#include "kernels/check.h"
#include "num/contract/reference.h"
#include "num/reference.h"
#include "ops/linear_attention/linear_attention.h"

namespace invar::ops {
namespace {

using linear_attention::Geometry;
using linear_attention::HeadState;
using linear_attention::kChunkRows;

float stored_exp(double x) {
  return num::canonicalize(num::reference::exp(static_cast<float>(x)));
}

// One head of one sequence, row by row.
class Head {
 public:
  Head(const Geometry& geometry, const HeadState& state) : g_(geometry), m_(state) {}

  void begin() {  // the first chunk
    for (int64_t i = 0; i < g_.d * g_.dv_padded; ++i) m_.s[i] = 0;
  }
  // linear_attention.3
  double decay(int64_t t, int64_t j) const { return m_.decay[(per_channel() ? j : 0) * kChunkRows + t]; }
  float a(int64_t t, int64_t j) const { return stored_exp(decay(t, j)); }
  float d(int64_t t, int64_t i, int64_t j) const { return stored_exp(decay(t, j) - decay(i, j)); }

  void append(int64_t t, const float* k, const float* g) {
    for (int64_t j = 0; j < g_.d; ++j) m_.keys[j * kChunkRows + t] = k[j];
    for (int64_t j = 0; j < g_.decays; ++j) {
      double* const row = m_.decay + j * kChunkRows;
      row[t] = (t ? row[t - 1] : 0.0) + static_cast<double>(g[j]);
    }
  }
  // linear_attention.4
  float weight(int64_t t, int64_t i, const float* x) const {
    const auto x_of = [&](int64_t j) { return x[j]; };
    if (per_channel())
      return num::canonicalize(num::reference::contract(
          g_.d, [&](int64_t j) { return num::canonicalize(key(i, j) * d(t, i, j)); }, x_of));
    return num::canonicalize(num::reference::contract(
                                 g_.d, [&](int64_t j) { return key(i, j); }, x_of) *
                             d(t, i, 0));
  }
  float from_state(int64_t t, int64_t c, const float* x) const {
    const auto s_of = [&](int64_t j) { return m_.s[j * g_.dv_padded + c]; };
    if (per_channel())
      return num::reference::contract(
          g_.d, [&](int64_t j) { return num::canonicalize(a(t, j) * x[j]); }, s_of);
    return a(t, 0) * num::reference::contract(
                         g_.d, [&](int64_t j) { return x[j]; }, s_of);
  }
  // The sum of linear_attention.5 and linear_attention.6 over the rows before `end`.
  float sum(int64_t t, int64_t end, int64_t c, const float* x, const float* w) const {
    float r = from_state(t, c, x);
    // linear_attention.5, linear_attention.6
    for (int64_t i = 0; i < end; ++i) r = std::fma(w[i], m_.u[i * g_.dv_padded + c], r);
    return r;
  }
  void row(int64_t t, const float* q, const float* k, const float* v, const float* beta, const View& y,
           int64_t at) const {
    float w[kChunkRows];
    for (int64_t i = 0; beta && i < t; ++i) w[i] = weight(t, i, k);
    for (int64_t c = 0; c < g_.dv; ++c)
      m_.u[t * g_.dv_padded + c] =
          beta ? num::canonicalize(*beta * (v[c] - sum(t, t, c, k, w))) : v[c];  // linear_attention.5
    for (int64_t i = 0; i <= t; ++i) w[i] = weight(t, i, q);
    for (int64_t c = 0; c < g_.dv; ++c) store_canonical(y, at + c, sum(t, t + 1, c, q, w) * g_.scale);
  }
  void close() const {  // linear_attention.7
    constexpr int64_t kLast = kChunkRows - 1;
    for (int64_t j = 0; j < g_.d; ++j) {
      float m[kChunkRows];
      for (int64_t i = 0; i < kChunkRows; ++i) m[i] = num::canonicalize(key(i, j) * d(kLast, i, j));
      for (int64_t c = 0; c < g_.dv; ++c) {
        float& s = m_.s[j * g_.dv_padded + c];
        float r = a(kLast, j) * s;
        // linear_attention.7
        for (int64_t i = 0; i < kChunkRows; ++i) r = std::fma(m[i], m_.u[i * g_.dv_padded + c], r);
        s = num::canonicalize(r);
      }
    }
  }

 private:
  bool per_channel() const { return g_.decays > 1; }
  float key(int64_t i, int64_t j) const { return m_.keys[j * kChunkRows + i]; }

  const Geometry& g_;
  const HeadState& m_;
};

void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const Geometry g = linear_attention::geometry(call);
  const auto row_of = [&](const View& v, int64_t row, int64_t head, int64_t heads) {
    const int64_t size = v.dim[2] / heads;
    return v.as<const float>() + (row * heads + head) * size;
  };
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t batch = unit / g.value_heads, h = unit % g.value_heads, key_head = h / g.group;
    const HeadState state = linear_attention::head_state(g, call, batch, h);
    Head head(g, state);
    for (int64_t i = 0; i < g.seq; ++i) {
      const int64_t position = call.sequences[batch].past + i, t = position % kChunkRows;
      const int64_t row = batch * g.seq + i;
      if (position == 0) head.begin();
      const float* const k = row_of(call.in[1], row, key_head, g.key_heads);
      head.append(t, k, row_of(call.in[3], row, h, g.value_heads));
      head.row(t, row_of(call.in[0], row, key_head, g.key_heads), k,
               row_of(call.in[2], row, h, g.value_heads),
               g.beta ? row_of(*g.beta, row, h, g.value_heads) : nullptr, call.out[0],
               (row * g.value_heads + h) * g.dv);
      if (t == kChunkRows - 1) head.close();
    }
  }
}

// The byte sizes of operands and states fit int64_t; plans are untrusted files.
bool countable(const Geometry& g) {
  int64_t bytes = 4 * kChunkRows * static_cast<int64_t>(sizeof(float));
  for (const int64_t x : {g.batch, g.value_heads, g.seq, g.d + kChunkRows, g.dv + kChunkRows})
    if (__builtin_mul_overflow(bytes, x > 0 ? x : 1, &bytes)) return false;
  return true;
}

const char* check(const Call& c, size_t operands) {
  if (!has_operands(c, operands, 1)) return "q, k, v, g, beta where the operation has it, and one result";
  for (const std::span<const View> views : {c.in, c.out})
    for (const View& v : views)
      if (!is_f32(v) || v.rank != 3) return "f32 [batch, sequence, heads * size]";
  const GatedDeltaRuleAttributes a(c);
  if (a.key_heads < 1 || a.value_heads < a.key_heads || a.value_heads % a.key_heads)
    return "value_heads a multiple of key_heads";
  for (const View& v : c.in)
    if (!same_leading(v, c.in[0], 2)) return "operands of one batch and sequence";
  const View &q = c.in[0], &v = c.in[2], &decay = c.in[3];
  if (!same_shape(q, c.in[1]) || q.dim[2] < 1 || q.dim[2] % a.key_heads || v.dim[2] < 1 ||
      v.dim[2] % a.value_heads)
    return "q and k [B, S, key_heads * D], v [B, S, value_heads * Dv]";
  const int64_t d = q.dim[2] / a.key_heads;
  if (decay.dim[2] % a.value_heads ||
      (decay.dim[2] / a.value_heads != 1 && decay.dim[2] / a.value_heads != d))
    return "g [B, S, value_heads] or [B, S, value_heads * D]";
  if (operands > 4 && c.in[4].dim[2] != a.value_heads) return "beta [B, S, value_heads]";
  if (!same_shape(c.out[0], v)) return "a result shaped like v";
  return countable(linear_attention::geometry(c)) ? nullptr : "sizes that some memory holds";
}
const char* check_delta(const Call& c) {
  return check(c, 5);
}
const char* check_gated(const Call& c) {
  return check(c, 4);
}

bool batch_independent(const Call& c, uint64_t batched) {
  return batched == (uint64_t{1} << c.in.size()) - 1;
}

}  // namespace

#define INVAR_LINEAR_ATTENTION(name, checked)                                                   \
  extern const OpContract contract_##name;                                                      \
  extern const CpuKernel row_##name##_reference;                                                \
  const OpContract contract_##name = {                                                          \
      .op = #name, .check = checked, .batch_independent = batch_independent, .stateful = true}; \
  const CpuKernel row_##name##_reference = {.op = #name,                                        \
                                            .isa = "reference",                                 \
                                            .units = linear_attention::units,                   \
                                            .run = run,                                         \
                                            .state_bytes = linear_attention::state_bytes};
INVAR_LINEAR_ATTENTION(gated_delta_rule, check_delta)
INVAR_LINEAR_ATTENTION(gated_linear_attention, check_gated)
#undef INVAR_LINEAR_ATTENTION

}  // namespace invar::ops
