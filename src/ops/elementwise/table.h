// The operations of this room: X(how, name, operator, attributes...), one row a line. `how` is a
// constructor of kinds.h. The graph is the function of that name. `operator` names the ONNX
// operator that becomes this operation and the opset that introduced it; it is empty if ONNX has
// none or import.cc has the rule. Kernels, the form in the repro dialect (cmake/room.cmake) and the
// rule (import/table_rules.cc) come from the row: docs/guide/adding-an-operation.md. The table has
// four parts because some compilers take long for one.
#pragma once

#define INVAR_ELEMENTWISE_FLOATS(X)           \
  X(light_real, ceil, "Ceil-1")               \
  X(light_real, floor, "Floor-1")             \
  X(light_real, round, "Round-11")            \
  X(light_real, trunc, "")                    \
  X(light_real, sqrt, "Sqrt-1")               \
  X(light_real, reciprocal, "Reciprocal-1")   \
  X(unary, exp, "")                           \
  X(unary, exp2, "")                          \
  X(unary, exp10, "")                         \
  X(unary, expm1, "")                         \
  X(unary, log, "")                           \
  X(unary, log2, "")                          \
  X(unary, log10, "")                         \
  X(unary, log1p, "")                         \
  X(unary, rsqrt, "")                         \
  X(unary, cbrt, "")                          \
  X(unary, sin, "")                           \
  X(unary, cos, "")                           \
  X(unary, tan, "Tan-7")                      \
  X(unary, sinpi, "")                         \
  X(unary, cospi, "")                         \
  X(unary, asin, "Asin-7")                    \
  X(unary, acos, "Acos-7")                    \
  X(unary, atan, "Atan-7")                    \
  X(unary, sinh, "Sinh-9")                    \
  X(unary, cosh, "Cosh-9")                    \
  X(unary, tanh, "Tanh-1")                    \
  X(unary, asinh, "Asinh-9")                  \
  X(unary, acosh, "Acosh-9")                  \
  X(unary, atanh, "Atanh-9")                  \
  X(unary, erf, "Erf-9")                      \
  X(unary, erfc, "")                          \
  X(unary, softplus, "Softplus-1")            \
  X(unary, logsigmoid, "")                    \
  X(light_real, relu, "")                     \
  X(binary64, exp_f64, "")                    \
  X(binary64, log_f64, "")                    \
  X(light, hardswish, "HardSwish-14")         \
  X(light, softsign, "Softsign-1")            \
  X(unary, sigmoid, "Sigmoid-1")              \
  X(unary, silu, "")                          \
  X(unary, mish, "Mish-18")                   \
  X(unary, gelu_tanh, "")                     \
  X(unary, gelu, "")                          \
  X(scaled_heavy, elu, "", "alpha")           \
  X(scaled_heavy, selu, "", "alpha", "gamma") \
  X(scaled_heavy, celu, "", "alpha")          \
  X(scaled, leakyrelu, "", "alpha")           \
  X(scaled, thresholdedrelu, "", "alpha")     \
  X(scaled, shrink, "", "lambd", "bias")      \
  X(scaled, hardsigmoid, "", "alpha", "beta") \
  X(scaled, clip, "", "min", "max")           \
  X(scaled_heavy, swish, "", "alpha")

#define INVAR_ELEMENTWISE_NUMBERS(X)         \
  X(unary_number, abs, "Abs-1")              \
  X(unary_number, neg, "Neg-1")              \
  X(unary_number, sign, "Sign-9")            \
  X(test_real, isnan, "IsNaN-9")             \
  X(test, isinf, "", "negative", "positive") \
  X(binary_wrapping, add, "Add-1")           \
  X(binary_wrapping, sub, "Sub-1")           \
  X(binary_wrapping, mul, "Mul-1")           \
  X(binary_number, div, "Div-1")             \
  X(binary_number, max, "")                  \
  X(binary_number, min, "")                  \
  X(binary_number, fmod, "")                 \
  X(binary_number, mod, "")                  \
  X(power, pow, "")                          \
  X(binary_heavy, atan2, "")                 \
  X(binary, prelu, "")

#define INVAR_ELEMENTWISE_BITS(X)                \
  X(binary_bits, bitwise_and, "BitwiseAnd-18")   \
  X(binary_bits, bitwise_or, "BitwiseOr-18")     \
  X(binary_bits, bitwise_xor, "BitwiseXor-18")   \
  X(unary_bits, bitwise_not, "BitwiseNot-18")    \
  X(binary_bits, shift_left, "")                 \
  X(binary_integer, shift_right, "")             \
  X(compare_all, equal, "Equal-1")               \
  X(compare, less, "Less-1")                     \
  X(compare, less_equal, "LessOrEqual-12")       \
  X(compare, greater, "Greater-1")               \
  X(compare, greater_equal, "GreaterOrEqual-12") \
  X(logic, logical_and, "And-1")                 \
  X(logic, logical_or, "Or-1")                   \
  X(logic, logical_xor, "Xor-1")                 \
  X(negation, logical_not, "Not-1")              \
  X(ternary_select, where, "Where-9")

#define INVAR_ELEMENTWISE_GRADIENTS(X) \
  X(binary, relu_backward, "")         \
  X(binary, sigmoid_backward, "")      \
  X(binary, tanh_backward, "")         \
  X(binary_graph, silu_backward, "")   \
  X(binary_graph, gelu_backward, "")   \
  X(binary_graph, gelu_tanh_backward, "")

#define INVAR_ELEMENTWISE(X)   \
  INVAR_ELEMENTWISE_FLOATS(X)  \
  INVAR_ELEMENTWISE_NUMBERS(X) \
  INVAR_ELEMENTWISE_BITS(X)    \
  INVAR_ELEMENTWISE_GRADIENTS(X)
