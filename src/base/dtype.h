// Element types of tensors. bf16 and f16 are storage types held as uint16_t (spec/formats.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace invar {

enum class DType : uint8_t { f32, bf16, f16, f64, i64, i32, i8, u8, boolean, i16, u16, u32, u64 };

inline constexpr DType kLastDType = DType::u64;

constexpr size_t size_of(DType t) {
  switch (t) {
    case DType::f64:
    case DType::i64:
    case DType::u64: return 8;
    case DType::f32:
    case DType::i32:
    case DType::u32: return 4;
    case DType::bf16:
    case DType::f16:
    case DType::i16:
    case DType::u16: return 2;
    case DType::i8:
    case DType::u8:
    case DType::boolean: return 1;
  }
  return 0;
}

constexpr std::string_view name_of(DType t) {
  switch (t) {
    case DType::f32: return "f32";
    case DType::bf16: return "bf16";
    case DType::f16: return "f16";
    case DType::f64: return "f64";
    case DType::i64: return "i64";
    case DType::i32: return "i32";
    case DType::i8: return "i8";
    case DType::u8: return "u8";
    case DType::boolean: return "bool";
    case DType::i16: return "i16";
    case DType::u16: return "u16";
    case DType::u32: return "u32";
    case DType::u64: return "u64";
  }
  return "?";
}

constexpr std::optional<DType> dtype_from(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(kLastDType); ++i)
    if (name_of(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace invar
