// What the kernels are given of an operand in tiles of codes (weights/tiles/code_tiles.h).
#pragma once
#include "ops/matmul/cuda/exact16/select.h"
#include "weights/tiles/code_tiles.h"

namespace invar::ops::INVAR_ISA_NS {

// What the columns of products that one kernel computes have in common.
struct CodedForm {
  weights::Codes codes;
  weights::Rounding rounding;
  int bits, parts, zero, code_bytes, tile_bytes;
  bool has_addends;
  bool operator==(const CodedForm&) const = default;
};

namespace {

// A constant in tiles has the type of bytes: no product has such an operand otherwise.
inline bool is_coded(const View& b) {
  return b.packed && b.dtype == DType::u8;
}
inline const weights::CodeTiles& tiles_of(const View& b) {
  return *b.as<const weights::CodeTiles>();
}
inline CodedForm form_of(const weights::CodeTiles& t) {
  return {t.codes, t.rounding, t.bits, t.parts, t.zero, t.code_bytes(), t.tile_bytes(), t.has_addends};
}
// Planes whose blocks are tiles of codes.
inline Planes coded_planes(const weights::CodeTiles& t) {
  auto* const memory = const_cast<uint8_t*>(t.memory);
  return {memory, reinterpret_cast<int32_t*>(memory + t.scales_at()), t.down(), t.across, kBlockRows};
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
