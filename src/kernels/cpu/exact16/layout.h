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
INVAR_INLINE D load_d(const double* p) {
  return from_bits(load_l(reinterpret_cast<const int64_t*>(p)));
}
INVAR_INLINE void store_d(double* p, D x) {
  store_l(reinterpret_cast<int64_t*>(p), bits(x));
}
// h of exact16.2, of |q| <= 32767.
INVAR_INLINE I high_part(I q) {
  return sub(shift_right<8>(add(q, set1_i(65536 + 128))), set1_i(256));
}
// Writes n <= kW integers as int16 that lie side by side, pair_of() each two. Not for single lanes,
// which memory of either order has.
INVAR_INLINE void store_halves(int32_t* pairs, int64_t at, I q, int64_t n) {
  auto* const to = reinterpret_cast<uint16_t*>(pairs) + at;
  const H halves = narrow_u16(bit_and(q, set1_i(0xffff)));
  if (n >= kW)
    store_h(to, halves);
  else
    store_h_n(to, halves, static_cast<int>(n));
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
