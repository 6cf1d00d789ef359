// The checks of random numbers and dropout.
#include "kernels/check.h"
#include "ops/random/philox.h"

namespace invar::ops::random {

static bool is_number(const View& v) {
  return v.dtype == DType::i64 && v.elements() == 1;
}

const char* check(const Call& c) {
  if (!has_operands(c, 2, 1)) return "a seed, an offset and one result";
  return is_number(c.in[0]) && is_number(c.in[1]) ? nullptr : "a seed and an offset of one i64 each";
}

const char* dropout_check(const Call& c) {
  if (!has_operands(c, 3, 1)) return "an operand, a seed, an offset and one result";
  if (!is_f32(c.in[0]) || !is_f32(c.out[0])) return "f32";
  if (!same_shape(c.in[0], c.out[0])) return "a result shaped like the operand";
  if (!is_number(c.in[1]) || !is_number(c.in[2])) return "a seed and an offset of one i64 each";
  const float ratio = RandomDropoutAttributes(c).ratio;
  return ratio >= 0 && ratio <= 1 ? nullptr : "a ratio from 0 to 1";
}

}  // namespace invar::ops::random
