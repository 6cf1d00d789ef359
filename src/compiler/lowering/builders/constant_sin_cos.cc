// Sine and cosine in double-double arithmetic.
#include "compiler/lowering/builders/constant_sin_cos.h"

#include <bit>
#include <cmath>

#include "num/dd/dd.h"

namespace invar::compiler {
namespace {

// Subtracts the nearest multiple of pi / 2 and sums the Taylor series in double-double. The error
// is below 2^-80 for |x| <= 2^20; the result is rounded once.
double sin_or_cos(double x, bool cosine) {
  using num::DD;
  const double quarters = std::nearbyint(x * 0x1.45f306dc9c883p-1);
  DD r{x, 0};
  for (double part : {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110})
    r = num::dd_add(r, num::dd_mul({-quarters, 0}, {part, 0}));
  const DD square = num::dd_neg(num::dd_mul(r, r));
  DD odd{0, 0}, even{0, 0};
  for (double k = 26; k > 0; k -= 2) {  // Horner's scheme; the first term left out is below 2^-98
    odd = num::dd_mul(num::dd_div(square, {(k + 1) * k, 0}), num::dd_add({1, 0}, odd));
    even = num::dd_mul(num::dd_div(square, {k * (k - 1), 0}), num::dd_add({1, 0}, even));
  }
  const DD sine = num::dd_mul(r, num::dd_add({1, 0}, odd)), other = num::dd_add({1, 0}, even);
  const int64_t quarter = static_cast<int64_t>(quarters) + cosine;
  const DD y = quarter & 1 ? other : sine;
  const double rounded = y.hi + y.lo;
  return quarter & 2 ? -rounded : rounded;
}

}  // namespace

Status lower_constant_sin_f64(NodeView& node, bool cosine) {
  INVAR_CHECK_OK(node.expect(1, 1, {}));
  const std::optional<std::string> from = node.constant_bytes(0);
  if (!from) return node.not_constant(0, "of f32, nor a constant");
  std::string to;
  for (size_t at = 0; at < from->size(); at += 8) {
    uint64_t bits = 0;
    for (size_t i = 8; i-- > 0;) bits = bits << 8 | static_cast<unsigned char>((*from)[at + i]);
    const auto x = std::bit_cast<double>(bits);
    if (!(std::abs(x) <= 0x1p20)) return not_covered("the sine or cosine of an f64 beyond 2^20");
    bits = std::bit_cast<uint64_t>(x == 0 && !cosine ? x : sin_or_cos(x, cosine));
    for (int i = 0; i < 8; ++i, bits >>= 8) to += static_cast<char>(bits);
  }
  const auto type = cast<RankedTensorType>(node.in(0).getType());
  return node.replace(node.constant(to, DType::f64, type.getShape()));
}

}  // namespace invar::compiler
