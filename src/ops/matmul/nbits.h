// How the integers, scales and zero points of a quantised b lie (spec.md matmul_nbits.1).
#pragma once
#include "ops/call.h"

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
int integer(const Nbits&, const View& b, int64_t j, int64_t k);
int zero_point(const Nbits&, const View& zeros, int64_t j, int64_t group);
int zero_point(const Nbits&);
int64_t scale_index(const Nbits&, const View& scales, int64_t j, int64_t group);

// Scales (operand 2) and zero points (3) packed: [ceil(N / panel)][groups][panel], zero points as bytes as zero_point()
// gives them; what is one for all stays as it is. 4-bit zero points have room for a whole number of bytes of groups.
int64_t zero_groups(const Nbits&, const View& zeros);
size_t small_bytes(const View&, int operand, const Attrs&, int panel);
void pack_small(const View&, int operand, const Attrs&, int panel, void* packed);

}  // namespace invar::ops::matmul
