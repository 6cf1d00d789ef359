// Copies of x with its padding for integer convolutions, split by strides: bytes, or words of the
// channels at a place. Compiled once per instruction set.
#pragma once
#include "ops/conv_integer/cpu/words.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int64_t kByteSlack = 128;  // bytes after the copy that may be read

// How many channels, or words of them, a group's copy has; 0: x is read where it lies.
INVAR_INLINE int64_t copies_of(const Geometry& p) {
  if (has_channel_words(p)) return slide::ceil_div(p.channels, kWordBytes);
  return p.copies ? p.channels : 0;
}
// Bytes of a group of x or of its copy.
INVAR_INLINE int64_t group_bytes(const Geometry& p) {
  const int64_t each = static_cast<int64_t>(sizeof(int32_t));
  return p.channel * (has_channel_words(p) ? copies_of(p) * each : p.channels);
}
// Bytes of the channels of a word before they become words.
INVAR_INLINE int64_t strip_bytes_of(const Geometry& p) {
  return kWordBytes * (p.channel + kByteSlack);
}

// Copies n bytes, 16 at once where as many may be read and written.
INVAR_INLINE void copy_bytes(const uint8_t* from, int64_t n, int64_t may, uint8_t* to) {
  int64_t i = 0;
  for (; i < n && i + 16 <= may; i += 16) __builtin_memcpy(to + i, from + i, 16);
  for (; i < n; ++i) to[i] = from[i];
}
// A channel of x with its padding, the zero point, as planes by strides.
void copy_channel(const Geometry& p, const uint8_t* x, uint8_t fill, uint8_t* to) {
  const slide::Axis &deep = p.axis[0], &high = p.axis[1], &wide = p.axis[2];
  const uint8_t *const x_end = x + deep.in * high.in * wide.in, *const end_of_copy = to + p.channel;
  // Position i of a plane is element first + i * stride.
  const auto first_of = [](const slide::Axis& a, int64_t plane) {
    return plane * a.dilation % a.stride + a.low;
  };
  for (int64_t r = 0; r < deep.planes; ++r)
    for (int64_t q = 0; q < high.planes; ++q)
      for (int64_t s = 0; s < wide.planes; ++s) {
        const int64_t top = first_of(deep, r), left = first_of(high, q), first = first_of(wide, s);
        int64_t before = first < 0 ? slide::ceil_div(-first, wide.stride) : 0;
        int64_t inside = first >= wide.in ? 0 : slide::ceil_div(wide.in - first, wide.stride);
        before = num::min_i64(before, wide.length), inside = num::min_i64(inside, wide.length);
        for (int64_t i = 0, d = top; i < deep.length; ++i, d += deep.stride)
          for (int64_t j = 0, h = left; j < high.length; ++j, h += high.stride, to += wide.length) {
            const bool out = d < 0 || d >= deep.in || h < 0 || h >= high.in;
            const int64_t end = out || inside < before ? before : inside, n = end - before;
            const uint8_t* from = x + (out ? 0 : (d * high.in + h) * wide.in) + first + before * wide.stride;
            uint8_t* const at = to + before;
            if (wide.stride == 1)
              copy_bytes(from, n, num::min_i64(x_end - from, end_of_copy - at), at);
            else if (wide.stride == 2)
              for (int64_t k = 0; k < n; ++k) at[k] = from[2 * k];
            else
              for (int64_t k = 0; k < n; ++k) at[k] = from[k * wide.stride];
            for (int64_t k = 0; k < before; ++k) to[k] = fill;
            for (int64_t k = end; k < wide.length; ++k) to[k] = fill;
          }
      }
}

// Words of `tall` channels of x, `plane` bytes apart, with their padding; strip: of
// strip_bytes_of().
void copy_words(const Geometry& p, const WordsOfX& as, const uint8_t* x, int64_t plane, int64_t tall,
                uint8_t fill, uint8_t* strip, int32_t* to) {
  const uint8_t* row[kWordBytes];
  for (int64_t i = 0; i < kWordBytes; ++i) {
    uint8_t* const at = strip + (i < tall ? i : 0) * (p.channel + kByteSlack);
    if (i < tall) copy_channel(p, x + i * plane, fill, at);
    row[i] = at;
  }
  int64_t v = 0;
#if INVAR_WORD_PERMUTATIONS
  for (const I moved = set1_i(moved_word(as)); tall == 4 && v + 4 * kW <= p.channel; v += 4 * kW) {
    const uint8_t* const at[4] = {row[0] + v, row[1] + v, row[2] + v, row[3] + v};
    I word[4];
    words_of_rows(at, word);
    for (int i = 0; i < 4; ++i) store_i(to + v + i * kW, bit_xor(word[i], moved));
  }
#endif
  for (; v < p.channel; v += kW) {
    const int64_t left = p.channel - v;
    store_part(reinterpret_cast<float*>(to + v), from_bits(word_of(row, v, tall, left, as)),
               static_cast<int>(num::min_i64(left, kW)));
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
