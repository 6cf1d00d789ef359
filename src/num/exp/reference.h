// exp for reference code: the sequence of exp.h on one lane.
#pragma once

namespace invar::num::reference {
float exp(float x);
}
