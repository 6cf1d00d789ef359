// SHA-256 (FIPS 180-4) and Merkle roots. Dependency-free so that the runtime cross-compiles
// anywhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace invar {

using Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  Sha256();
  Sha256& update(const void* data, size_t bytes);
  Sha256& update(std::string_view text) { return update(text.data(), text.size()); }
  Digest finish();  // the object must not be used afterwards

 private:
  uint32_t state_[8];
  uint64_t total_ = 0;
  uint8_t block_[64];
};

Digest sha256(const void* data, size_t bytes);
inline Digest sha256(std::string_view text) {
  return sha256(text.data(), text.size());
}

// Merkle root (spec/receipt.md): leaf = SHA-256(0x00 || leaf digest), node = SHA-256(0x01 || left
// || right); an odd node is carried up unchanged; the root of no leaves is SHA-256 of the empty
// string.
Digest merkle_root(std::span<const Digest> leaves);

std::string to_hex(const Digest& d);                        // 64 lower-case digits
std::optional<Digest> digest_from_hex(std::string_view s);  // exactly 64 lower-case hexadecimal digits

}  // namespace invar
