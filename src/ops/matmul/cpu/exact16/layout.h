// How exact16 products hold their rows: integers of 16 bits in pairs along k, one to a lane of 32
// bits. Compiled once per instruction set.
#pragma once
#include "kernels/cpu/exact16.h"
#include "num/contract/schedule.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int64_t kExactColumns = 32;  // of a panel of B

INVAR_INLINE int32_t pair_of(int32_t low, int32_t high) {
  return static_cast<int32_t>((static_cast<uint32_t>(low) & 0xffff) | static_cast<uint32_t>(high) << 16);
}
// The low bytes of four k, in the order in which vectors of pairs give them: k 0, 2, 1, 3.
INVAR_INLINE int32_t quad_of(int32_t k0, int32_t k1, int32_t k2, int32_t k3) {
  return static_cast<int32_t>((static_cast<uint32_t>(k0) & 0xff) | (static_cast<uint32_t>(k2) & 0xff) << 8 |
                              (static_cast<uint32_t>(k1) & 0xff) << 16 | static_cast<uint32_t>(k3) << 24);
}
INVAR_INLINE I load_i(const int32_t* p) {
  return bits(load(reinterpret_cast<const float*>(p)));
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
