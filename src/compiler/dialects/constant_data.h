// Bytes of small constants as text in the IR.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace invar::compiler {

std::string hex_from_bytes(std::string_view bytes);
std::optional<std::string> bytes_from_hex(std::string_view hex);  // nothing: odd length or not lower-case hex
// Little-endian two's complement integers of `size` bytes each.
std::vector<int64_t> integers_from_hex(std::string_view hex, int size);

// The lowest bytes of each, `size` of them.
std::string bytes_of(std::span<const int64_t> integers, size_t size);

}  // namespace invar::compiler
