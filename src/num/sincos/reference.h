// sin and cos for reference code: the sequence of sincos.h.
#pragma once

namespace invar::num::reference {
float sin(float x);
float cos(float x);
}  // namespace invar::num::reference
