// What becomes of contractions on their way to memory: the store rule, a bias, and what elementwise operations right behind would do
// (Epilogue). Compiled once per instruction set.
#pragma once
#include "kernels/cpu/gemm_packing.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

struct Finish {
  const float* bias =
      nullptr;  // added to the stored contraction (spec/contraction.md contraction.6), of the first row
  bool plain = false;            // there is one, and no row's is small
  bool raw = false;              // nothing: who reads them will
  bool relu = false;             // stored, no less than +0
  const float* other = nullptr;  // before that: stored, and added to this, which lies as the result does
  bool by_column = false;        // the bias is one of columns, a multiple of vectors
  int64_t other_ld = 0;          // not 0: so far apart lie the rows of `other`, not as those of the result
};
INVAR_INLINE bool any(const Finish& f) {
  return f.bias || f.other || f.relu || f.raw;
}
// What follows a call in registers, of results from `first` on.
INVAR_INLINE void follow(Finish& f, const Call& call, const float* first) {
  const Epilogue* const e = call.epilogue;
  if (!e || !e->light) return;
  f.relu = e->relu;
  if (e->other) f.other = e->other->as<const float>() + (first - call.out[0].as<const float>());
}
// Whether no bias is small. Then a contraction that the store rule changes, subnormal or -0, changes no sum, and no sum is subnormal
// or -0: where it nearly cancels, both numbers are multiples of 2^-125. What is left of two store rules is that NaN is one.
INVAR_INLINE bool is_plain(const float* bias, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (!(bias[i] >= 0x1p-100f || bias[i] <= -0x1p-100f)) return false;
  return true;
}
// So a sum may be limited to +0 by an instruction that takes either of two zeros.
INVAR_INLINE F least(const Finish& f) {
  return set1(f.relu ? 0.0f : -__builtin_inff());
}
INVAR_INLINE F bias_of(const Finish& f, int64_t row) {
  return f.bias ? set1(f.bias[row]) : zero();
}
INVAR_INLINE F finish_plain(F c, F bias, F least) {
  return one_nan(larger(least, add(c, bias)));
}
INVAR_INLINE F finish_plain(F c, F bias, F other, F least) {
  return canon(larger(least, add(add(c, bias), other)));
}

// The contractions c, whose bias this is; `at` elements behind the first one's lie those of `other`.
INVAR_INLINE F finish(const Finish& f, F c, F bias, int64_t at, int lanes) {
  if (f.raw) return c;
  if (f.plain && !f.other) return finish_plain(c, bias, least(f));
  if (f.plain) return finish_plain(c, bias, load_part(f.other + at, lanes), least(f));
  c = canon(c);
  if (f.bias) c = canon(add(c, bias));
  if (f.other) c = canon(add(c, load_part(f.other + at, lanes)));
  if (!f.relu) return c;
  c = add(c, zero());  // no -0
  return select(lt(c, zero()), zero(), c);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
