// Bytes of small constants as integers and as hexadecimal text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace invar::compiler {

std::string hex_from_bytes(std::string_view bytes);
std::optional<std::string> bytes_from_hex(std::string_view hex);  // nothing if not lower-case hex pairs
// Decodes little-endian two's complement integers of `size` bytes each.
std::vector<int64_t> integers_from_bytes(std::string_view bytes, int size);

// Encodes integers as little-endian values of `size` bytes each.
std::string bytes_of(std::span<const int64_t> integers, size_t size);

}  // namespace invar::compiler
