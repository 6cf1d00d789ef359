// SHA-256 with the cryptographic extension of ARMv8, chosen at run time.
#include "base/hash/sha256_blocks.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#if defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace invar {
namespace {

__attribute__((target("+crypto"))) void blocks_armv8(uint32_t state[8], const uint8_t* data, size_t blocks) {
  uint32x4_t abcd = vld1q_u32(state), efgh = vld1q_u32(state + 4);
  for (; blocks > 0; --blocks, data += 64) {
    const uint32x4_t abcd0 = abcd, efgh0 = efgh;
    uint32x4_t w[4];  // the last 16 message words, four per vector
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      uint32x4_t& now = w[i % 4];
      if (i < 4) {
        now = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(data + 16 * i)));
      } else {
        now = vsha256su0q_u32(now, w[(i + 1) % 4]);
        now = vsha256su1q_u32(now, w[(i + 2) % 4], w[(i + 3) % 4]);
      }
      const uint32x4_t in = vaddq_u32(now, vld1q_u32(kSha256Rounds + 4 * i));
      const uint32x4_t before = abcd;
      abcd = vsha256hq_u32(abcd, efgh, in);
      efgh = vsha256h2q_u32(efgh, before, in);
    }
    abcd = vaddq_u32(abcd, abcd0);
    efgh = vaddq_u32(efgh, efgh0);
  }
  vst1q_u32(state, abcd);
  vst1q_u32(state + 4, efgh);
}

}  // namespace

Sha256Blocks sha256_blocks_native() {
#if defined(__linux__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  if (getauxval(AT_HWCAP) & HWCAP_SHA2) return &blocks_armv8;
#endif
  return nullptr;
}

Sha256TwoBlocks sha256_two_blocks_native() {
  return nullptr;
}

}  // namespace invar
#endif
