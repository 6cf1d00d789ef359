// The compression function of SHA-256 over whole 64-byte blocks: one portable form and, where the processor
// has instructions for it, a native one. Same result; hash_test.cc compares them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace invar {

using Sha256Blocks = void (*)(uint32_t state[8], const uint8_t* data, size_t blocks);

extern const uint32_t kSha256Rounds[64];  // FIPS 180-4, 4.2.2

void sha256_blocks_portable(uint32_t state[8], const uint8_t* data, size_t blocks);
// Null where this processor has no SHA-256 instructions. sha256_x86.cc, sha256_arm.cc or, elsewhere, hash.cc.
Sha256Blocks sha256_blocks_native();

}  // namespace invar
