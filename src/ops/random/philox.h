// Philox4x32-10 (spec/sampling.md sampling.2) and what the operations make of its words.
// Shared by all rows.
#pragma once
#include "kernels/call.h"
#include "num/contract/schedule.h"
#include "ops/random/attributes.h"

namespace invar::ops::random {

struct Words {
  uint32_t w[4];
};
// random.2: the words of the numbers 4 * quad to 4 * quad + 3 modulo 2^64.
INVAR_INLINE Words words_of(uint64_t seed, uint64_t quad) {
  quad &= (uint64_t{1} << 62) - 1;
  uint32_t c0 = static_cast<uint32_t>(quad), c1 = static_cast<uint32_t>(quad >> 32), c2 = 0, c3 = 0x80000000u;
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  INVAR_UNROLL
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xd2511f53} * c0, p1 = uint64_t{0xcd9e8d57} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0, c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1, c3 = static_cast<uint32_t>(p0);
    k0 += 0x9e3779b9, k1 += 0xbb67ae85;
  }
  return {{c0, c1, c2, c3}};
}
// random.4.
INVAR_INLINE float uniform_of(uint32_t word) {
  return static_cast<float>(static_cast<int32_t>(word >> 8)) * 0x1p-24f;
}
// random.5.
INVAR_INLINE float scale_of(float ratio) {
  const float kept = 1.0f - ratio;
  return 1.0f / kept;
}

const char* check(const Call&);
const char* dropout_check(const Call&);

}  // namespace invar::ops::random
