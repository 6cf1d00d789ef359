// SHA-512 (FIPS 180-4), which Ed25519 is defined with.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace invar::signature {

std::array<uint8_t, 64> sha512(std::string_view text);

}  // namespace invar::signature
