// The steps of optimisers over num/lane (optim.2 - optim.6): x are the operands of one
// element without the scalars s, y its results.
#pragma once
#include "kernels/cpu/vector_io.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

struct SgdStep {
  static constexpr int kIn = 2, kScalars = 2, kOut = 1;
  INVAR_INLINE void step(const F* x, const F* s, int64_t, F* y) {
    const F d = fma(s[1], x[0], x[1]);
    y[0] = fma(neg(s[0]), d, x[0]);
  }
};

struct MomentumStep {
  static constexpr int kIn = 3, kScalars = 4, kOut = 2;
  INVAR_INLINE void step(const F* x, const F* s, int64_t nesterov, F* y) {
    const F d = fma(s[1], x[0], x[1]);
    y[1] = fma(s[2], x[2], mul(s[3], d));
    const F update = nesterov ? fma(s[2], y[1], d) : y[1];
    y[0] = fma(neg(s[0]), update, x[0]);
  }
};

template <bool kAmsgrad>
struct AdamStep {
  static constexpr int kIn = kAmsgrad ? 5 : 4, kScalars = 8, kOut = 3;
  INVAR_INLINE void step(const F* x, const F* s, int64_t, F* y) {
    const F d = fma(s[2], x[0], x[1]);
    y[1] = fma(s[3], sub(d, x[2]), x[2]);
    y[2] = fma(s[5], mul(d, d), mul(s[4], x[3]));
    F most = y[2];
    if constexpr (kAmsgrad) most = maximum(x[4], canonicalize(most));
    const F scale = add(div(sqrt(most), s[6]), s[7]);
    y[0] = fma(neg(s[0]), div(y[1], scale), mul(s[1], x[0]));
  }
};

struct LionStep {
  static constexpr int kIn = 3, kScalars = 4, kOut = 2;
  INVAR_INLINE void step(const F* x, const F* s, int64_t, F* y) {
    const F r = sub(x[1], x[2]), c = fma(s[2], r, x[2]);
    const F one = from_bits(bit_or(set1_i(0x3f800000), bit_and(bits(c), set1_i(INT32_MIN))));
    const F sign = select(either(eq(c, zero()), unordered(c, c)), c, one);
    y[0] = fma(neg(s[0]), sign, mul(s[1], x[0]));
    y[1] = fma(s[3], r, x[2]);
  }
};

// The struct of each row of the room.
#define INVAR_OPTIM_STEPS(X)      \
  X(sgd_step, SgdStep)            \
  X(momentum_step, MomentumStep)  \
  X(adam_step, AdamStep<false>)   \
  X(amsgrad_step, AdamStep<true>) \
  X(lion_step, LionStep)

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
