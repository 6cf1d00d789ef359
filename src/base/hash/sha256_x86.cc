// SHA-256 with the SHA extensions of x86 (SHA-NI), chosen at run time.
#include "base/hash/sha256_blocks.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

namespace invar {
namespace {

// The instructions keep the state as two vectors, (a b e f) and (c d g h), highest lane first;
// sha256rnds2 does two rounds with the two round inputs (constant + message word) in the low half
// of its third operand.
__attribute__((target("sha,sse4.1,ssse3"))) void blocks_sha_ni(uint32_t state[8], const uint8_t* data,
                                                               size_t blocks) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i abef = _mm_set_epi32(state[0], state[1], state[4], state[5]);
  __m128i cdgh = _mm_set_epi32(state[2], state[3], state[6], state[7]);
  for (; blocks > 0; --blocks, data += 64) {
    const __m128i abef0 = abef, cdgh0 = cdgh;
    __m128i w[4];  // the last 16 message words, four per vector
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      __m128i& now = w[i % 4];
      if (i < 4) {
        now = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data) + i), big_endian);
      } else {
        const __m128i last = w[(i + 3) % 4], before = w[(i + 2) % 4];
        now = _mm_sha256msg1_epu32(now, w[(i + 1) % 4]);             // w[t-16] + sigma0(w[t-15])
        now = _mm_add_epi32(now, _mm_alignr_epi8(last, before, 4));  // + w[t-7]
        now = _mm_sha256msg2_epu32(now, last);                       // + sigma1(w[t-2])
      }
      const __m128i k = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kSha256Rounds) + i);
      const __m128i in = _mm_add_epi32(now, k);
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, in);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(in, 0x0e));
    }
    abef = _mm_add_epi32(abef, abef0);
    cdgh = _mm_add_epi32(cdgh, cdgh0);
  }
  state[0] = _mm_extract_epi32(abef, 3), state[1] = _mm_extract_epi32(abef, 2);
  state[4] = _mm_extract_epi32(abef, 1), state[5] = _mm_extract_epi32(abef, 0);
  state[2] = _mm_extract_epi32(cdgh, 3), state[3] = _mm_extract_epi32(cdgh, 2);
  state[6] = _mm_extract_epi32(cdgh, 1), state[7] = _mm_extract_epi32(cdgh, 0);
}

}  // namespace

Sha256Blocks sha256_blocks_native() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1)) return nullptr;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_SHA)) return nullptr;
  return &blocks_sha_ni;
}

}  // namespace invar
#endif
