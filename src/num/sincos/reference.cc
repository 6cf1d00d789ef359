#include "num/sincos/reference.h"

#include "num/sincos/sincos.h"

namespace invar::num::reference {
float sin(float x) {
  return portable::sin(x);
}
float cos(float x) {
  return portable::cos(x);
}
}  // namespace invar::num::reference
