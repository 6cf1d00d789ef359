#include "num/reference.h"

#include "num/functions.h"

namespace invar::num::reference {
#define INVAR_ROW(f)                      \
  float f(float x) {                      \
    return portable::f(portable::F{x}).v; \
  }
INVAR_FUNCTIONS(INVAR_ROW)
#undef INVAR_ROW
}  // namespace invar::num::reference
