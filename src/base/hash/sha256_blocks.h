// The compression function of SHA-256 over 64-byte blocks: a portable one and, if the processor has
// instructions for it, a native one. Their results are equal; sha256_test.cc compares them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/hash/sha256.h"

namespace invar {

using Sha256Blocks = void (*)(uint32_t state[8], const uint8_t* data, size_t blocks);

extern const uint32_t kSha256Rounds[64];  // FIPS 180-4, 4.2.2

void sha256_blocks_portable(uint32_t state[8], const uint8_t* data, size_t blocks);
// Null if this processor has no SHA-256 instructions. In sha256_x86.cc, sha256_arm.cc or sha256.cc.
Sha256Blocks sha256_blocks_native();

// The same of two messages in turns: each round of one waits for the one before, so two take less
// than twice as long. Null where there are none.
using Sha256TwoBlocks = void (*)(uint32_t (*states)[8], const uint8_t* const* data, size_t blocks);
Sha256TwoBlocks sha256_two_blocks_native();

// The same of so many messages, each in a lane of vectors, in the time that six take one after
// another. Null where there are no such vectors. In sha256_avx512.cc or sha256.cc.
constexpr int kSha256Lanes = 16;
using Sha256LaneBlocks = void (*)(uint32_t (*states)[8], const uint8_t* const* data, size_t blocks);
Sha256LaneBlocks sha256_lane_blocks_native();

// The digests of two messages.
std::array<Digest, 2> sha256_of_two(std::span<const std::byte> a, std::span<const std::byte> b);

// The digests of several, fastest where about one length is that of many. digests.size() ==
// messages.size().
void sha256_of_many(std::span<const std::span<const std::byte>> messages, std::span<Digest> digests);

}  // namespace invar
