// Numbers of bytes as people read and write them, in powers of 1000: 512 B, 8.4 MB, 1.23 GB.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace invar {

std::string size_text(uint64_t bytes);
// A whole number with B, kB, MB, GB, TB or nothing behind it, as in 20GB; absent: it is none.
std::optional<uint64_t> parse_size(std::string_view text);

}  // namespace invar
