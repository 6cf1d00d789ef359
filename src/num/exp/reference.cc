#include "num/exp/reference.h"

#include "num/exp/exp.h"

namespace invar::num::reference {
float exp(float x) {
  return portable::exp(portable::F{x}).v;
}
}  // namespace invar::num::reference
