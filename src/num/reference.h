// The functions of function_list.h for reference code: the sequences of the lanes on one lane of
// plain C++.
#pragma once

#include "num/function_list.h"

namespace invar::num::reference {
#define INVAR_ROW(f) float f(float x);
INVAR_FUNCTIONS(INVAR_ROW)
#undef INVAR_ROW
float pow(float x, float y);  // num/pow/lanes.h
float atan2(float y, float x);
}  // namespace invar::num::reference
