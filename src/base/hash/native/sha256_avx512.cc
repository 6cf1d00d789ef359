// SHA-256 of 16 messages at a time with AVX-512, chosen at run time: lane i of a vector belongs to
// message i, so no instruction of one message waits for another of the same one.
#include "base/hash/sha256_blocks.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace invar {
namespace {

#define INVAR_LANES __attribute__((target("avx512f,avx512bw")))
#define INVAR_LANES_INLINE __attribute__((target("avx512f,avx512bw"), always_inline)) inline

constexpr int kAhead = 1024;  // bytes that are fetched ahead of each message

INVAR_LANES_INLINE __m512i exclusive_or(__m512i a, __m512i b, __m512i c) {
  return _mm512_ternarylogic_epi32(a, b, c, 0x96);
}

// r[i] is the i-th row of 16 x 16 words, and then the i-th column.
INVAR_LANES_INLINE void transpose(__m512i r[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i low = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88),
                  high = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd),
                  low2 = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88),
                  high2 = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
    r[i] = _mm512_shuffle_i32x4(low, low2, 0x88), r[i + 8] = _mm512_shuffle_i32x4(low, low2, 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(high, high2, 0x88), r[i + 12] = _mm512_shuffle_i32x4(high, high2, 0xdd);
  }
}

// FIPS 180-4, 6.2.2, of one block of each message, whose words are in w.
INVAR_LANES_INLINE void compress(__m512i s[8], __m512i w[16]) {
  __m512i a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
#pragma GCC unroll 64
  for (int t = 0; t < 64; ++t) {
    __m512i& now = w[t % 16];
    if (t >= 16) {
      const __m512i near = w[(t + 1) % 16], last = w[(t + 14) % 16];
      const __m512i s0 = exclusive_or(_mm512_ror_epi32(near, 7), _mm512_ror_epi32(near, 18),
                                      _mm512_srli_epi32(near, 3)),
                    s1 = exclusive_or(_mm512_ror_epi32(last, 17), _mm512_ror_epi32(last, 19),
                                      _mm512_srli_epi32(last, 10));
      now = _mm512_add_epi32(_mm512_add_epi32(now, s0), _mm512_add_epi32(w[(t + 9) % 16], s1));
    }
    const __m512i k = _mm512_set1_epi32(static_cast<int>(kSha256Rounds[t]));
    const __m512i s1 = exclusive_or(_mm512_ror_epi32(e, 6), _mm512_ror_epi32(e, 11), _mm512_ror_epi32(e, 25));
    const __m512i choice = _mm512_ternarylogic_epi32(e, f, g, 0xca);
    const __m512i t1 =
        _mm512_add_epi32(_mm512_add_epi32(_mm512_add_epi32(h, k), now), _mm512_add_epi32(s1, choice));
    const __m512i s0 = exclusive_or(_mm512_ror_epi32(a, 2), _mm512_ror_epi32(a, 13), _mm512_ror_epi32(a, 22));
    const __m512i majority = _mm512_ternarylogic_epi32(a, b, c, 0xe8);
    h = g, g = f, f = e, e = _mm512_add_epi32(d, t1), d = c, c = b, b = a;
    a = _mm512_add_epi32(t1, _mm512_add_epi32(s0, majority));
  }
  const __m512i after[8] = {a, b, c, d, e, f, g, h};
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) s[j] = _mm512_add_epi32(s[j], after[j]);
}

INVAR_LANES void blocks_of_lanes(uint32_t (*states)[8], const uint8_t* const* from, size_t blocks) {
  static_assert(kSha256Lanes == 16);
  const __m512i big_endian = _mm512_broadcast_i32x4(_mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203));
  alignas(64) uint32_t words[8][kSha256Lanes];
  __m512i s[8], w[kSha256Lanes];
  for (int i = 0; i < kSha256Lanes; ++i)
    for (int j = 0; j < 8; ++j) words[j][i] = states[i][j];
  for (int j = 0; j < 8; ++j) s[j] = _mm512_load_si512(words[j]);
  for (size_t block = 0; block < blocks; ++block) {
#pragma GCC unroll 16
    for (int i = 0; i < kSha256Lanes; ++i) {
      const uint8_t* const data = from[i] + 64 * block;
      w[i] = _mm512_shuffle_epi8(_mm512_loadu_si512(data), big_endian);
      _mm_prefetch(reinterpret_cast<const char*>(data) + kAhead, _MM_HINT_T0);  // never a fault
    }
    transpose(w);
    compress(s, w);
  }
  for (int j = 0; j < 8; ++j) _mm512_store_si512(words[j], s[j]);
  for (int i = 0; i < kSha256Lanes; ++i)
    for (int j = 0; j < 8; ++j) states[i][j] = words[j][i];
}

}  // namespace

Sha256LaneBlocks sha256_lane_blocks_native() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") ? &blocks_of_lanes : nullptr;
}

}  // namespace invar
#endif
