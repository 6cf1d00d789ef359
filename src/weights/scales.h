// Scales within blocks.
#pragma once

#include <cstdint>

#include "num/convert/convert.h"

namespace invar::weights {

// A binary16 number, widened.
inline float half_at(const uint8_t* p) {
  return num::f32_from_f16(static_cast<uint16_t>(p[0] | p[1] << 8));
}

// The numbers that four bits of IQ4_NL and IQ4_XS stand for.
inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

}  // namespace invar::weights
