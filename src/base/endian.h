// Byte order, which only this file knows. Files, digests and receipts hold numbers little-endian;
// memory holds them in the processor's order (spec/formats.md formats.11). On a little-endian
// processor every function here is a plain copy or does nothing.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

namespace invar {

inline constexpr bool kLittleEndian = std::endian::native == std::endian::little;
static_assert(kLittleEndian || std::endian::native == std::endian::big, "mixed byte orders are not known");

// Copies `bytes` bytes of elements of `width` bytes from little-endian storage to memory, or back:
// both reverse the same bytes. The two ranges do not overlap.
inline void copy_little_endian(void* to, const void* from, size_t bytes, size_t width) {
  if (bytes == 0) return;  // the pointers may be null
  if (kLittleEndian || width == 1) {
    std::memcpy(to, from, bytes);
    return;
  }
  auto* out = static_cast<std::byte*>(to);
  auto* in = static_cast<const std::byte*>(from);
  for (size_t i = 0; i < bytes; i += width) std::reverse_copy(in + i, in + i + width, out + i);
}

// Whether elements of `width` bytes in little-endian storage are in the processor's order.
constexpr bool native_in_storage(size_t width) {
  return kLittleEndian || width == 1;
}

}  // namespace invar
