// SHA-1 (FIPS 180-4), as git names its objects by it. It finds damage, and proves nothing against a
// person who wants two contents of one digest: what Invar binds, it binds by SHA-256.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace invar {

class Sha1 {
 public:
  Sha1();
  Sha1& update(const void* data, size_t bytes);
  Sha1& update(std::string_view text) { return update(text.data(), text.size()); }
  std::string finish();  // 40 lower-case digits; the object must not be used afterwards

 private:
  void compress(const uint8_t* block);
  uint32_t state_[5];
  uint64_t total_ = 0;
  uint8_t block_[64];
};

}  // namespace invar
