// The correctly rounded functions of one binary32 (spec/functions.md; docs/evidence/functions.md)
// in one list. A line here and an include in functions.h give a function its reference, its rows in
// invar_prove and, with its golden_NAME.txt, its tests. Each also has a float-float sequence, f_ff
// (num/functions_ff.h): rows NAME.ff.
#pragma once

#define INVAR_FUNCTIONS(X) \
  X(exp)                   \
  X(exp2)                  \
  X(exp10)                 \
  X(expm1)                 \
  X(sinh)                  \
  X(cosh)                  \
  X(tanh)                  \
  X(erf)                   \
  X(erfc)                  \
  X(sin)                   \
  X(cos)                   \
  X(log)                   \
  X(log2)                  \
  X(log10)                 \
  X(log1p)                 \
  X(sqrt)                  \
  X(rsqrt)                 \
  X(cbrt)                  \
  X(asinh)                 \
  X(acosh)                 \
  X(atanh)                 \
  X(tan)                   \
  X(sinpi)                 \
  X(cospi)                 \
  X(asin)                  \
  X(acos)                  \
  X(atan)
