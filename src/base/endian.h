// The order of bytes in memory, known here and nowhere else. Files, digests and receipts hold numbers little-endian;
// memory holds them as the processor does (spec/formats.md formats.11). On a little-endian processor every function
// here is a plain copy or nothing.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

namespace invar {

inline constexpr bool kLittleEndian = std::endian::native == std::endian::little;
static_assert(kLittleEndian || std::endian::native == std::endian::big, "mixed byte orders are not known");

// Copies `bytes` bytes of elements of `width` bytes each from little-endian storage to memory, or from memory to
// little-endian storage: the same exchange. The two places do not overlap.
inline void copy_little_endian(void* to, const void* from, size_t bytes, size_t width) {
  if (bytes == 0) return;  // the places may be null
  if (kLittleEndian || width == 1) {
    std::memcpy(to, from, bytes);
    return;
  }
  auto* out = static_cast<std::byte*>(to);
  auto* in = static_cast<const std::byte*>(from);
  for (size_t i = 0; i < bytes; i += width) std::reverse_copy(in + i, in + i + width, out + i);
}

// Whether elements of `width` bytes in little-endian storage are the processor's own.
constexpr bool native_in_storage(size_t width) {
  return kLittleEndian || width == 1;
}

}  // namespace invar
