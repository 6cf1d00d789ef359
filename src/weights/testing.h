// Matrices in parts with random codes and scales, for tests.
#pragma once

#include <bit>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "weights/packed_matrix.h"

namespace invar::weights::testing {

struct MadeMatrix {
  std::string name;
  PackedMatrix matrix;
  std::vector<std::shared_ptr<std::vector<uint8_t>>> memory = {};  // of its parts
};

inline MadeMatrix make_matrix(std::string name, PackedMatrix m, PartType scales, uint64_t seed) {
  std::mt19937_64 random(seed);
  MadeMatrix made{std::move(name), std::move(m)};
  const auto fill = [&](PartOf part, PartType type, auto byte) {
    MatrixPart& p = made.matrix.parts[part];
    p.type = type;
    auto& bytes =
        made.memory.emplace_back(std::make_shared<std::vector<uint8_t>>(made.matrix.bytes_of(part)));
    for (size_t i = 0; i < bytes->size(); ++i) (*bytes)[i] = byte(i);
    p.bytes = bytes->data(), p.length = bytes->size();
  };
  const auto any = [&](size_t) { return static_cast<uint8_t>(random()); };
  const bool zeros = made.matrix.has(kZeros), nested = made.matrix.has(kOuterScales);
  fill(kCodes, PartType::u8, [&](size_t) {
    const auto byte = static_cast<uint8_t>(random());  // neither NaN nor infinity
    return made.matrix.kind == CodeKind::e4m3 ? static_cast<uint8_t>((byte & 0x7f) == 0x7f ? byte ^ 1 : byte)
           : made.matrix.kind == CodeKind::e5m2 ? static_cast<uint8_t>(byte & 0xbf)
                                                : byte;
  });
  // Scales near 1: the highest byte of each has the exponent.
  fill(kScales, nested ? PartType::u8 : scales, [&](size_t i) {
    const auto byte = static_cast<uint8_t>(random());
    switch (scales) {
      case PartType::f16: return static_cast<uint8_t>(i % 2 ? 0x2c + byte % 16 + (byte & 0x80) : byte);
      case PartType::bf16: return static_cast<uint8_t>(i % 2 ? 0x3b + byte % 5 + (byte & 0x80) : byte);
      case PartType::f32: return static_cast<uint8_t>(i % 4 == 3 ? 0x3b + byte % 5 + (byte & 0x80) : byte);
      case PartType::e8m0: return static_cast<uint8_t>(100 + byte % 40);
      default: return static_cast<uint8_t>((byte & 0x7f) == 0x7f ? 0x30 : byte);
    }
  });
  if (made.matrix.kind == CodeKind::of_table)
    fill(kTable, PartType::f32, [&](size_t i) {
      const float* const table = made.name.starts_with("nf4") ? kNf4 : kFp4;
      return static_cast<uint8_t>(std::bit_cast<uint32_t>(table[i / 4]) >> 8 * (i % 4));
    });
  if (nested) {
    const auto near_one = [&](size_t i) {
      const auto byte = static_cast<uint8_t>(random());
      return static_cast<uint8_t>(i % 4 == 3 ? 0x3d + byte % 3 : byte);
    };
    fill(kOuterScales, PartType::f32, near_one), fill(kOuterTable, PartType::f32, near_one);
  }
  if (made.matrix.has(kColumnGroups))
    fill(kColumnGroups, PartType::i32, [&](size_t i) {
      return static_cast<uint8_t>(i % 4 ? 0 : random() % static_cast<uint64_t>(made.matrix.across()));
    });
  if (zeros) fill(kZeros, made.matrix.parts[kZeros].type, any);
  if (scales == PartType::e4m3)
    fill(kWhole, PartType::f32,
         [](size_t i) { return static_cast<uint8_t>(std::string_view("\x12\x34\x56\x3d")[i]); });
  return made;
}

// Every kind that kernels read, of so many rows and columns, a multiple of 128: `matrices` of them.
inline std::vector<MadeMatrix> made_matrices(int64_t rows, int64_t columns, int64_t matrices) {
  using enum CodeKind;
  std::vector<MadeMatrix> all;
  const auto add = [&](std::string name, CodeKind kind, int bits, int64_t scale_rows, int64_t scale_columns,
                       PartType scales, Rounding rounding, auto more) {
    PackedMatrix m{rows, columns, matrices, kind};
    m.bits = bits, m.row_bytes = columns * bits / 8, m.scale_rows = scale_rows,
    m.scale_columns = scale_columns;
    m.rounding = rounding;
    more(m);
    all.push_back(make_matrix(std::move(name), std::move(m), scales, all.size() + 1));
  };
  const auto none = [](PackedMatrix&) {};
  const auto zeros = [](PackedMatrix& m) { m.parts[kZeros].type = PartType::i32; };
  const Rounding as_it_is = Rounding::none;
  add("fp8 blocks", e4m3, 8, 128, 128, PartType::f32, as_it_is, none);
  add("fp8 blocks of powers", e4m3, 8, 128, 128, PartType::e8m0, as_it_is, none);
  add("fp8 rows", e4m3, 8, 1, columns, PartType::bf16, Rounding::bf16, none);
  add("fp8 matrix", e5m2, 8, rows, columns, PartType::f32, as_it_is, none);
  add("int8 rows", signed_integer, 8, 1, columns, PartType::bf16, Rounding::bf16,
      [](PackedMatrix& m) { m.zero = 128, m.parts[kZeros].type = PartType::i8; });
  add("packed 4", unsigned_integer, 4, 1, 32, PartType::f16, Rounding::f16,
      [](PackedMatrix& m) { m.zero = 8; });
  add("packed 8", unsigned_integer, 8, 1, 64, PartType::bf16, Rounding::bf16, zeros);
  add("nvfp4", e2m1, 4, 1, 16, PartType::e4m3, Rounding::bf16, [](PackedMatrix& m) { m.divided = true; });
  add("nvfp4 of modelopt", e2m1, 4, 1, 16, PartType::e4m3, as_it_is, none);
  add("mxfp4", e2m1, 4, 1, 32, PartType::e8m0, Rounding::bf16, [](PackedMatrix& m) { m.exact = true; });
  add("gptq 4", unsigned_integer, 4, 1, 64, PartType::f16, as_it_is,
      [&](PackedMatrix& m) { m.order = CodeOrder::gptq, m.zero_more = 1, zeros(m); });
  add("gptq 8", unsigned_integer, 8, 1, 128, PartType::f16, as_it_is,
      [&](PackedMatrix& m) { m.order = CodeOrder::gptq, zeros(m); });
  const auto any_order = [](PackedMatrix& m) { m.parts[kColumnGroups].type = PartType::i32; };
  add("gptq 4 by act-order", unsigned_integer, 4, 1, 64, PartType::f16, as_it_is,
      [&](PackedMatrix& m) { m.order = CodeOrder::gptq, m.zero_more = 1, zeros(m), any_order(m); });
  add("gptq 8 by act-order", unsigned_integer, 8, 1, 32, PartType::bf16, as_it_is,
      [&](PackedMatrix& m) { m.order = CodeOrder::gptq, zeros(m), any_order(m); });
  add("packed 4 by act-order", unsigned_integer, 4, 1, 32, PartType::f16, Rounding::f16,
      [&](PackedMatrix& m) { m.zero = 8, any_order(m); });
  const auto high_first = [](PackedMatrix& m) { m.order = CodeOrder::high_first; };
  add("nf4", of_table, 4, 1, 64, PartType::f32, Rounding::bf16, high_first);
  add("nf4 of binary32", of_table, 4, 1, 128, PartType::f32, as_it_is, high_first);
  add("nf4 nested", of_table, 4, 1, 64, PartType::f32, Rounding::bf16, [&](PackedMatrix& m) {
    high_first(m), m.outer_scales = 256, m.offset = 0.01f;
    m.parts[kOuterScales].type = PartType::f32;
  });
  add("fp4", of_table, 4, 1, 64, PartType::f32, Rounding::f16, high_first);
  if (rows % 8 == 0)
    add("awq", unsigned_integer, 4, 1, 128, PartType::f16, as_it_is,
        [&](PackedMatrix& m) { m.order = CodeOrder::awq, zeros(m); });
  return all;
}

}  // namespace invar::weights::testing
