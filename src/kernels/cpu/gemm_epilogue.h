// The GEMM epilogue: store rule, bias, and the add and relu that an Epilogue applies in registers.
// Compiled once per instruction set.
#pragma once
#include "kernels/cpu/gemm_packing.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

struct GemmEpilogue {
  // The bias of the first row, added to the stored contraction (spec/contraction.md contraction.6).
  const float* bias = nullptr;
  bool plain = false;  // there is a bias, and no row's is small
  bool raw = false;    // store unchanged: the reader applies the epilogue
  // After the bias: the addend of a residual add, in the layout of the result.
  const float* other = nullptr;
  bool relu = false;       // last: clamp at +0
  bool by_column = false;  // the bias is per column, a multiple of vectors
  int64_t other_ld = 0;    // row stride of `other` if it differs from that of the result, else 0
};
// No epilogue: what is constant here, no tile holds the code of.
struct StoreRule {
  static constexpr const float *bias = nullptr, *other = nullptr;
  static constexpr bool plain = false, raw = false, relu = false, by_column = false;
  static constexpr int64_t other_ld = 0;
};
template <class E>
INVAR_INLINE bool is_nontrivial(const E& f) {
  return f.bias || f.other || f.relu || f.raw;
}
// Adds what a call's add_relu epilogue applies in registers to results from `first` on.
INVAR_INLINE void fuse_add_relu(GemmEpilogue& f, const Call& call, const float* first) {
  const Epilogue* const e = call.cpu.epilogue;
  if (!e || !e->add_relu) return;
  f.relu = e->relu;
  if (e->other) f.other = e->other->as<const float>() + (first - call.out[0].as<const float>());
}
// Whether no bias is small. Then an FMA chain that the store rule would change (subnormal or -0)
// changes no sum, and no sum is subnormal or -0: under near-cancellation both numbers are multiples
// of 2^-125. Of two store rules only the canonical NaN remains.
INVAR_INLINE bool has_no_small_bias(const float* bias, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (!(bias[i] >= 0x1p-100f || bias[i] <= -0x1p-100f)) return false;
  return true;
}
// Under that condition relu may use a max instruction that picks either of two zeros.
template <class E>
INVAR_INLINE F relu_floor(const E& f) {
  return set1(f.relu ? 0.0f : -__builtin_inff());
}
INVAR_INLINE F bias_vector(const GemmEpilogue& f, int64_t row) {
  return f.bias ? set1(f.bias[row]) : zero();
}
INVAR_INLINE F apply_epilogue_fast(F c, F bias, F least) {
  return one_nan(larger(least, add(c, bias)));
}
INVAR_INLINE F apply_epilogue_fast(F c, F bias, F other, F least) {
  return canonicalize(larger(least, add(add(c, bias), other)));
}

// Applies the epilogue to contractions c with this bias; `at` is their element offset in `other`.
template <class E>
INVAR_INLINE F apply_epilogue(const E& f, F c, F bias, int64_t at, int lanes) {
  if (f.raw) return c;
  if (f.plain && !f.other) return apply_epilogue_fast(c, bias, relu_floor(f));
  if (f.plain) return apply_epilogue_fast(c, bias, load_part(f.other + at, lanes), relu_floor(f));
  c = canonicalize(c);
  if (f.bias) c = canonicalize(add(c, bias));  // contraction.6
  if (f.other) c = canonicalize(add(c, load_part(f.other + at, lanes)));
  if (!f.relu) return c;
  c = add(c, zero());  // elementwise.9: no -0
  return select(lt(c, zero()), zero(), c);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
