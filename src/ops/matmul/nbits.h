// How the integers, scales and zero points of a quantised b lie (spec.md matmul_nbits.1).
#pragma once
#include "kernels/call.h"

namespace invar::ops::matmul {

struct Nbits {
  int64_t n, k, bits;
  int64_t block, blocks;  // k that share a scale, 0 = all; how many such
  bool trans_b;           // columns of b one after another
  bool is_signed;
  int64_t zero;    // zero point where there is no operand
  int64_t column;  // trans_b: bytes from one column to the next
};
Nbits nbits(const Call&);
// As far as b says it: k may be rounded up, blocks are not known.
Nbits nbits(const View& b, const Attrs&);

// Integer k of column j and the zero point of its group. Signed ones are moved to 0 ... 255, both alike.
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

// Scales (operand 2) and zero points (3) packed: [ceil(N / panel)][groups][panel], zero points as bytes as zero_point()
// gives them; what is one for all stays as it is. 4-bit zero points have room for a whole number of bytes of groups.
int64_t zero_groups(const Nbits&, const View& zeros);
size_t small_bytes(const View&, int operand, const Attrs&, int panel);
void pack_small(const View&, int operand, const Attrs&, int panel, void* packed);

}  // namespace invar::ops::matmul
