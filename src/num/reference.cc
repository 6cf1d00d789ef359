// The functions of function_list.h on the scalar lane.
#include "num/reference.h"

#include "num/functions.h"
#include "num/pow/lanes.h"

namespace invar::num::reference {
#define INVAR_ROW(f)                      \
  float f(float x) {                      \
    return portable::f(portable::F{x}).v; \
  }
INVAR_FUNCTIONS(INVAR_ROW)
#undef INVAR_ROW
float pow(float x, float y) {
  return portable::pow(portable::F{x}, portable::F{y}).v;
}
float atan2(float y, float x) {
  return portable::atan2(portable::F{y}, portable::F{x}).v;
}
}  // namespace invar::num::reference
