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
template <int N>
__attribute__((target("sha,sse4.1,ssse3"))) void blocks_sha_ni(uint32_t (*states)[8],
                                                               const uint8_t* const* from, size_t blocks) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i abef[N], cdgh[N], w[N][4];  // w: the last 16 message words, four per vector
  for (int s = 0; s < N; ++s) {
    const uint32_t* const state = states[s];
    abef[s] = _mm_set_epi32(state[0], state[1], state[4], state[5]);
    cdgh[s] = _mm_set_epi32(state[2], state[3], state[6], state[7]);
  }
  for (size_t block = 0; block < blocks; ++block) {
    __m128i abef0[N], cdgh0[N];
    for (int s = 0; s < N; ++s) abef0[s] = abef[s], cdgh0[s] = cdgh[s];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i)
#pragma GCC unroll 2
      for (int s = 0; s < N; ++s) {
        __m128i& now = w[s][i % 4];
        if (i < 4) {
          const auto* data = reinterpret_cast<const __m128i*>(from[s] + 64 * block);
          now = _mm_shuffle_epi8(_mm_loadu_si128(data + i), big_endian);
        } else {
          const __m128i last = w[s][(i + 3) % 4], before = w[s][(i + 2) % 4];
          now = _mm_sha256msg1_epu32(now, w[s][(i + 1) % 4]);          // w[t-16] + sigma0(w[t-15])
          now = _mm_add_epi32(now, _mm_alignr_epi8(last, before, 4));  // + w[t-7]
          now = _mm_sha256msg2_epu32(now, last);                       // + sigma1(w[t-2])
        }
        const __m128i k = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kSha256Rounds) + i);
        const __m128i in = _mm_add_epi32(now, k);
        cdgh[s] = _mm_sha256rnds2_epu32(cdgh[s], abef[s], in);
        abef[s] = _mm_sha256rnds2_epu32(abef[s], cdgh[s], _mm_shuffle_epi32(in, 0x0e));
      }
    for (int s = 0; s < N; ++s) {
      abef[s] = _mm_add_epi32(abef[s], abef0[s]);
      cdgh[s] = _mm_add_epi32(cdgh[s], cdgh0[s]);
    }
  }
  for (int s = 0; s < N; ++s) {
    uint32_t* const state = states[s];
    state[0] = _mm_extract_epi32(abef[s], 3), state[1] = _mm_extract_epi32(abef[s], 2);
    state[4] = _mm_extract_epi32(abef[s], 1), state[5] = _mm_extract_epi32(abef[s], 0);
    state[2] = _mm_extract_epi32(cdgh[s], 3), state[3] = _mm_extract_epi32(cdgh[s], 2);
    state[6] = _mm_extract_epi32(cdgh[s], 1), state[7] = _mm_extract_epi32(cdgh[s], 0);
  }
}

void one_message(uint32_t state[8], const uint8_t* data, size_t blocks) {
  blocks_sha_ni<1>(reinterpret_cast<uint32_t(*)[8]>(state), &data, blocks);
}

}  // namespace

Sha256Blocks sha256_blocks_native() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1)) return nullptr;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_SHA)) return nullptr;
  return &one_message;
}
Sha256TwoBlocks sha256_two_blocks_native() {
  return sha256_blocks_native() ? &blocks_sha_ni<2> : nullptr;
}

}  // namespace invar
#endif
