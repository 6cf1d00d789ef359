// int8 products. Sums are exact modulo 2^32 (matmul_integer.2), so their order is free:
// what multiplies the bytes is each instruction set's own. Compiled once per instruction set.
#pragma once
#include "ops/matmul/cpu/byte_pairs.h"
#include "ops/matmul/matmul.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int64_t kByteRows = 96;  // rows of A that use one widened panel

struct ByteProduct {
  matmul::Shape s;
  int64_t panels, row_blocks;
};
ByteProduct byte_product(const Call& call) {
  ByteProduct p{matmul::shape(call.in[0], call.in[1], call.out[0], false, false), 0, 0};
  p.panels = (p.s.n + kByteColumns - 1) / kByteColumns;
  p.row_blocks = (p.s.m + kByteRows - 1) / kByteRows;
  return p;
}

// Phase 0: rows of A; phase 1: panels of row blocks.
int64_t units_integer(const Call& call, int phase) {
  if (call.out[0].elements() == 0) return 0;
  if (phase == 0) return row_count(call.in[0]);
  const ByteProduct p = byte_product(call);
  return p.s.batches * p.row_blocks * p.panels;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS

#if INVAR_EXTENSION_AVX512_VNNI || INVAR_EXTENSION_AVX512_AMX || INVAR_EXTENSION_AVX2_VNNI || \
    INVAR_EXTENSION_NEON_DOT || INVAR_EXTENSION_NEON_I8MM
#include "ops/matmul/cpu/integer/int8_dot.h"
#else
#include "ops/matmul/cpu/integer/int16_madd.h"
#endif
