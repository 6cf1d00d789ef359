// pow with a proved rounding, for finite x > 0.
#include "num/pow/pow.h"

#include <cstdio>
#include <cstdlib>

#include "num/env.h"
#include "num/pow/certified.h"

namespace invar::num {

float pow_cr(float x, float y) {
  mend_arithmetic_env();  // rounded otherwise, nothing is proved
  const ProvedValue r = pow_certified(x, y);
  if (r.proved) return r.value;
  std::fprintf(stderr, "invar: pow(%a, %a) lies within 2^-85 of a rounding boundary; please report it\n", x,
               y);
  std::abort();
}

float inverse_frequency(float theta, float e) {
  return 1.0f / pow_cr(theta, e);
}

}  // namespace invar::num
