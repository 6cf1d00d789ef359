#include "probe.h"

#include "num/contract/lanes.h"
#include "num/functions_ff.h"
#include "num/pow/lanes.h"
#include "num/reduce/lanes.h"

namespace invar::prove {
namespace {
namespace lane = num::INVAR_ISA_NS;
using lane::F;
using lane::kW;

// f over whole vectors, then over the rest by the partial loads and stores.
template <class Op>
void each(int n, Op op) {
  for (int i = 0; i < n; i += kW) op(i, n - i < kW ? n - i : kW);
}
F get(const float* p, int n) {
  return n == kW ? lane::load(p) : lane::load_n(p, n);
}
void set(float* p, F v, int n) {
  n == kW ? lane::store(p, v) : lane::store_n(p, v, n);
}

#define INVAR_ROW(f)                                                       \
  void f(const float* x, float* y, int n) {                                \
    each(n, [=](int i, int c) { set(y + i, lane::f(get(x + i, c)), c); }); \
  }
INVAR_FUNCTIONS(INVAR_ROW)
#undef INVAR_ROW
#define INVAR_ROW(f)                                                            \
  void f##_ff(const float* x, float* y, int n) {                                \
    each(n, [=](int i, int c) { set(y + i, lane::f##_ff(get(x + i, c)), c); }); \
  }
INVAR_FUNCTIONS(INVAR_ROW)
#undef INVAR_ROW
constexpr Function kFunctions[] = {
#define INVAR_ROW(f) {#f, f},
    INVAR_FUNCTIONS(INVAR_ROW)
#undef INVAR_ROW
#define INVAR_ROW(f) {#f ".ff", f##_ff},
        INVAR_FUNCTIONS(INVAR_ROW)
#undef INVAR_ROW
};
void atan2(const float* y, const float* x, float* r, int n) {
  each(n, [=](int i, int c) { set(r + i, lane::atan2(get(y + i, c), get(x + i, c)), c); });
}
void canonicalize(const float* x, float* y, int n) {
  each(n, [=](int i, int c) { set(y + i, lane::canonicalize(get(x + i, c)), c); });
}
void exp_stored(const float* x, float* y, int n) {
  each(n, [=](int i, int c) { set(y + i, lane::exp_stored(get(x + i, c)), c); });
}
void put_n(float* y, const float* x, int n) {
  lane::store_canonical_n(y, lane::load_n(x, n), n);
}
void maximum(const float* a, const float* b, float* y, int n) {
  each(n, [=](int i, int c) { set(y + i, lane::maximum(get(a + i, c), get(b + i, c)), c); });
}
void minimum(const float* a, const float* b, float* y, int n) {
  each(n, [=](int i, int c) { set(y + i, lane::minimum(get(a + i, c), get(b + i, c)), c); });
}
void pow(const float* a, const float* b, float* y, int n) {
  each(n, [=](int i, int c) { set(y + i, lane::pow(get(a + i, c), get(b + i, c)), c); });
}
void arithmetic(const float* a, const float* b, const float* c, float* y, int n) {
  each(n, [=](int i, int k) {
    F u = get(a + i, k), v = get(b + i, k), w = get(c + i, k);
    set(y + i, lane::fma(u, v, w), k);
    set(y + n + i, lane::add(u, v), k);
    set(y + 2 * n + i, lane::sub(u, v), k);
    set(y + 3 * n + i, lane::mul(u, v), k);
    set(y + 4 * n + i, lane::div(u, v), k);
    set(y + 5 * n + i, lane::sqrt(lane::neg(lane::neg(lane::abs(u)))), k);
  });
}
void from_bf16(const uint16_t* x, float* y, int n) {
  each(n,
       [=](int i, int c) { set(y + i, c == kW ? lane::load_bf16(x + i) : lane::load_bf16_n(x + i, c), c); });
}
void from_f16(const uint16_t* x, float* y, int n) {
  each(n, [=](int i, int c) { set(y + i, c == kW ? lane::load_f16(x + i) : lane::load_f16_n(x + i, c), c); });
}
void to_bf16(const float* x, uint16_t* y, int n) {
  each(n, [=](int i, int c) {
    c == kW ? lane::store_bf16(y + i, lane::load(x + i))
            : lane::store_bf16_n(y + i, lane::load_n(x + i, c), c);
  });
}
void to_f16(const float* x, uint16_t* y, int n) {
  each(n, [=](int i, int c) {
    c == kW ? lane::store_f16(y + i, lane::load(x + i)) : lane::store_f16_n(y + i, lane::load_n(x + i, c), c);
  });
}
float row_sum(const float* x, int64_t n) {
  return lane::row_sum(x, n);
}
float row_sum_squares(const float* x, int64_t n) {
  return lane::row_sum_squares(x, n);
}
float block_sum(const float* x, int n) {
  return lane::block_sum(x, n);
}
void contract(const float* a, const float* b, int64_t k, float* y) {
  F out[2];
  lane::contract<2>(
      k,
      [=](int64_t begin, int64_t end, F* c) {
        c[0] = c[1] = lane::zero();
        for (int64_t i = begin; i < end; ++i)
          for (int r = 0; r < 2; ++r)
            c[r] = lane::fma(lane::set1(a[i]), lane::load(b + i * 2 * kW + r * kW), c[r]);
      },
      out);
  lane::store(y, out[0]);
  lane::store(y + kW, out[1]);
}

}  // namespace

extern const Probe INVAR_PROBE;
const Probe INVAR_PROBE = {INVAR_ISA, kW,      kFunctions, atan2,   canonicalize,    exp_stored,
                           put_n,     maximum, minimum,    pow,     arithmetic,      from_bf16,
                           from_f16,  to_bf16, to_f16,     row_sum, row_sum_squares, block_sum,
                           contract};

}  // namespace invar::prove
