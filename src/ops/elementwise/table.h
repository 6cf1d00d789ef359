// The operations of this room: X(how, name, attributes...). `how` is a constructor of maps.h, the graph is the function of
// that name. A new operation is a graph, a line here, one in spec/opset.toml, op.td and import.cc, and its clause, vectors and
// golden digests.
#pragma once

#define INVAR_ELEMENTWISE(X)              \
  X(light, ceil)                          \
  X(light, floor)                         \
  X(light, round)                         \
  X(light, trunc)                         \
  X(light, sqrt)                          \
  X(light, reciprocal)                    \
  X(unary, exp)                           \
  X(unary, log)                           \
  X(unary, log2)                          \
  X(unary, log10)                         \
  X(unary, log1p)                         \
  X(unary, rsqrt)                         \
  X(unary, cbrt)                          \
  X(unary, softplus)                      \
  X(unary, sin)                           \
  X(unary, cos)                           \
  X(light, relu)                          \
  X(light, hardswish)                     \
  X(light, softsign)                      \
  X(unary, sigmoid)                       \
  X(unary, silu)                          \
  X(unary, mish)                          \
  X(unary, gelu_tanh)                     \
  X(scaled, leakyrelu, "alpha")           \
  X(scaled, thresholdedrelu, "alpha")     \
  X(scaled, shrink, "lambd", "bias")      \
  X(scaled, hardsigmoid, "alpha", "beta") \
  X(scaled, clip, "min", "max")           \
  X(scaled, swish, "alpha")               \
  X(unary_number, abs)                    \
  X(unary_number, neg)                    \
  X(unary_number, sign)                   \
  X(test, isnan)                          \
  X(test, isinf, "negative", "positive")  \
  X(binary_number, add)                   \
  X(binary_number, sub)                   \
  X(binary_number, mul)                   \
  X(binary_number, div)                   \
  X(binary_number, max)                   \
  X(binary_number, min)                   \
  X(couple_number, fmod)                  \
  X(binary_integer, mod)                  \
  X(binary, prelu)                        \
  X(compare_all, equal)                   \
  X(compare, less)                        \
  X(compare, less_equal)                  \
  X(compare, greater)                     \
  X(compare, greater_equal)               \
  X(logic, logical_and)                   \
  X(logic, logical_or)                    \
  X(logic, logical_xor)                   \
  X(negation, logical_not)                \
  X(choice, where)
