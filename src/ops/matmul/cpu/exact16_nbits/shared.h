// Rows of matmul_nbits_exact16 share this (exact16_nbits.h). Compiled once per instruction set.
#pragma once
#include "ops/matmul/cpu/byte_pairs.h"
#include "ops/matmul/cpu/exact16.h"
#include "ops/matmul/nbits.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int64_t kNbitsRows = 48;  // rows of a that use one panel

struct NbitsExact {
  matmul::Nbits l;
  int64_t rows, words, panels, row_blocks;
  int64_t depth;                                                    // rows of bytes of a packed panel of b
  int64_t row() const { return words + 1; }                         // int32: the integers, the scale
  int64_t panel() const { return depth * kByteColumns; }            // bytes
  int64_t scales() const { return (l.blocks + 1) * kByteColumns; }  // floats: t of each group, es
};

// Whole sums below 2^51 in magnitude: on 3 * 2^51 they are the low bits.
INVAR_INLINE L whole_sum(D sum) {
  const D base = set1_d(0x3p51);
  return sub(bits(add(sum, base)), bits(base));
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
