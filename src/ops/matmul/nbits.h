// Layout of the integers, scales and zero points of a quantized B (matmul_nbits.1).
#pragma once
#include "kernels/call.h"
#include "ops/matmul/attributes.h"

namespace invar::ops::matmul {

struct Nbits {
  int64_t n, k, bits;
  int64_t block, blocks;  // k that share a scale (0: all); number of such groups
  bool trans_b;           // B is column-major
  bool is_signed;
  int64_t zero;    // the zero point if there is no operand
  int64_t column;  // trans_b: bytes per column
};
Nbits nbits(const Call&);
// Reads B alone: k may be rounded up, and the number of groups is unknown.
Nbits nbits(const View& b, const Attributes&);
// Reads scales (operand 2) or zero points (operand 3) alone: columns and groups.
Nbits nbits_of(const View&, int operand, const Attributes&);

// Integer k of column j, and the zero point of its group. Signed ones are offset to 0 ... 255, both
// alike.
INVAR_INLINE int integer(const Nbits& l, const View& b, int64_t j, int64_t k) {
  const auto* p = static_cast<const uint8_t*>(b.data);
  if (l.bits == 4) return p[j * l.column + k / 2] >> k % 2 * 4 & 15;
  return p[l.trans_b ? j * l.column + k : k * l.n + j] ^ (l.is_signed ? 0x80 : 0);
}
INVAR_INLINE int64_t scale_index(const Nbits& l, bool one_for_all, int64_t j, int64_t group) {
  if (one_for_all) return 0;
  return l.trans_b ? j * l.blocks + group : group * l.n + j;
}
INVAR_INLINE int zero_point(const Nbits& l, const uint8_t* zeros, bool one_for_all, int64_t j,
                            int64_t group) {
  if (l.bits == 4) return zeros[j * ((l.blocks + 1) / 2) + group / 2] >> group % 2 * 4 & 15;
  return zeros[scale_index(l, one_for_all, j, group)] ^ (l.is_signed ? 0x80 : 0);
}
INVAR_INLINE int zero_point(const Nbits& l) {
  return static_cast<int>(l.zero + (l.is_signed ? 0x80 : 0));
}
int zero_point(const Nbits&, const View& zeros, int64_t j, int64_t group);
int64_t scale_index(const Nbits&, const View& scales, int64_t j, int64_t group);

// Packed scales (operand 2) and zero points (operand 3): [ceil(N / panel)][groups][panel], zero
// points as the bytes that zero_point() returns; a single value for all stays unpacked. 4-bit zero
// points have space for a whole number of bytes of groups.
int64_t zero_groups(const Nbits&, const View& zeros);
size_t small_bytes(const View&, int operand, const Attributes&, int panel);
void pack_small(const View&, int operand, const Attributes&, int panel, void* packed);

}  // namespace invar::ops::matmul
