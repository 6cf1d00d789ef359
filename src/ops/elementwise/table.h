// The operations of this room: X(how, name, attributes...). `how` is a constructor of kinds.h, the
// graph is the function of that name. A new operation is a graph, a line here, one in
// spec/opset.toml, op.td and import.cc, and its clause, vectors and golden digests. The table has
// three parts because some compilers take long for one.
#pragma once

#define INVAR_ELEMENTWISE_FLOATS(X)       \
  X(light_real, ceil)                     \
  X(light_real, floor)                    \
  X(light_real, round)                    \
  X(light_real, trunc)                    \
  X(light_real, sqrt)                     \
  X(light_real, reciprocal)               \
  X(unary, exp)                           \
  X(unary, exp2)                          \
  X(unary, exp10)                         \
  X(unary, expm1)                         \
  X(unary, log)                           \
  X(unary, log2)                          \
  X(unary, log10)                         \
  X(unary, log1p)                         \
  X(unary, rsqrt)                         \
  X(unary, cbrt)                          \
  X(unary, sin)                           \
  X(unary, cos)                           \
  X(unary, tan)                           \
  X(unary, sinpi)                         \
  X(unary, cospi)                         \
  X(unary, asin)                          \
  X(unary, acos)                          \
  X(unary, atan)                          \
  X(unary, sinh)                          \
  X(unary, cosh)                          \
  X(unary, tanh)                          \
  X(unary, asinh)                         \
  X(unary, acosh)                         \
  X(unary, atanh)                         \
  X(unary, erf)                           \
  X(unary, erfc)                          \
  X(unary, softplus)                      \
  X(light_real, relu)                     \
  X(binary64, exp_f64)                    \
  X(binary64, log_f64)                    \
  X(light, hardswish)                     \
  X(light, softsign)                      \
  X(unary, sigmoid)                       \
  X(unary, silu)                          \
  X(unary, mish)                          \
  X(unary, gelu_tanh)                     \
  X(unary, gelu)                          \
  X(scaled_heavy, elu, "alpha")           \
  X(scaled_heavy, selu, "alpha", "gamma") \
  X(scaled_heavy, celu, "alpha")          \
  X(scaled, leakyrelu, "alpha")           \
  X(scaled, thresholdedrelu, "alpha")     \
  X(scaled, shrink, "lambd", "bias")      \
  X(scaled, hardsigmoid, "alpha", "beta") \
  X(scaled, clip, "min", "max")           \
  X(scaled_heavy, swish, "alpha")

#define INVAR_ELEMENTWISE_NUMBERS(X)     \
  X(unary_number, abs)                   \
  X(unary_number, neg)                   \
  X(unary_number, sign)                  \
  X(test_real, isnan)                    \
  X(test, isinf, "negative", "positive") \
  X(binary_wrapping, add)                \
  X(binary_wrapping, sub)                \
  X(binary_wrapping, mul)                \
  X(binary_number, div)                  \
  X(binary_number, max)                  \
  X(binary_number, min)                  \
  X(binary_number, fmod)                 \
  X(binary_number, mod)                  \
  X(power, pow)                          \
  X(binary_heavy, atan2)                 \
  X(binary, prelu)

#define INVAR_ELEMENTWISE_BITS(X) \
  X(binary_bits, bitwise_and)     \
  X(binary_bits, bitwise_or)      \
  X(binary_bits, bitwise_xor)     \
  X(unary_bits, bitwise_not)      \
  X(binary_bits, shift_left)      \
  X(binary_integer, shift_right)  \
  X(compare_all, equal)           \
  X(compare, less)                \
  X(compare, less_equal)          \
  X(compare, greater)             \
  X(compare, greater_equal)       \
  X(logic, logical_and)           \
  X(logic, logical_or)            \
  X(logic, logical_xor)           \
  X(negation, logical_not)        \
  X(ternary_select, where)

#define INVAR_ELEMENTWISE(X)   \
  INVAR_ELEMENTWISE_FLOATS(X)  \
  INVAR_ELEMENTWISE_NUMBERS(X) \
  INVAR_ELEMENTWISE_BITS(X)
