#include "weights/formats.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "num/convert/convert.h"

namespace invar::weights {

static constexpr Coding held(Coding c, int bits) {
  c.held = bits;
  return c;
}
static constexpr Coding of_iq4(Coding c) {
  c.of_iq4 = true;
  return c;
}

std::span<const Format> formats() {
  static constexpr Coding kQ8_0{integers_q8_0, 8, 32, 128, false, false},
      kQ4_0{integers_q4_0, 4, 32, 8, false, false},
      kQ5_0 = held({integers_q5_0, 8, 32, 16, false, false}, 5), kQ4_1{integers_q4_1, 4, 32, 0, false, true},
      kQ5_1 = held({integers_q5_1, 8, 32, 0, false, true}, 5),
      kIq4Nl = of_iq4({integers_iq4_nl, 8, 32, 128, false, false}),
      kQ2K = held({integers_q2_k, 4, 16, 0, true, true}, 2), kQ4K{integers_q4_k, 4, 32, 0, true, true},
      kQ5K = held({integers_q5_k, 8, 32, 0, true, true}, 5),
      kQ3K = held({integers_q3_k, 4, 16, 4, true, false}, 3),
      kQ6K = held({integers_q6_k, 8, 16, 32, true, false}, 6),
      kIq4Xs = of_iq4({integers_iq4_xs, 8, 32, 128, true, false}),
      kMxfp4{codes_mxfp4, 4, 32, 0, false, false, Codes::e2m1, ScaleType::e8m0};
  static constexpr Format kFormats[] = {
      {"F32", 0, 1, 4, "F32", nullptr, "weights.2", "binary32"},
      {"F16", 1, 1, 2, "F16", nullptr, "weights.2", "binary16"},
      {"BF16", 30, 1, 2, "BF16", nullptr, "weights.2", "bfloat16"},
      {"Q8_0", 8, 32, 34, "F32", unpack_q8_0, "weights.3", "q · d", &kQ8_0},
      {"Q4_0", 2, 32, 18, "F32", unpack_q4_0, "weights.3", "(q − 8) · d", &kQ4_0},
      {"Q5_0", 6, 32, 22, "F32", unpack_q5_0, "weights.3", "(q − 16) · d", &kQ5_0},
      {"Q4_1", 3, 32, 20, "F32", unpack_q4_1, "weights.4", "q · d + m", &kQ4_1},
      {"Q5_1", 7, 32, 24, "F32", unpack_q5_1, "weights.4", "q · d + m", &kQ5_1},
      {"IQ4_NL", 20, 32, 18, "F32", unpack_iq4_nl, "weights.5", "table[q] · d", &kIq4Nl},
      {"MXFP4", 39, 32, 17, "BF16", unpack_mxfp4, "weights.5", "e2m1 · 2^(s − 127)", &kMxfp4},
      {"Q2_K", 10, 256, 84, "F32", unpack_q2_k, "weights.6", "(d · s) · q − (e · m)", &kQ2K},
      {"Q4_K", 12, 256, 144, "F32", unpack_q4_k, "weights.7", "(d · s) · q − (e · m)", &kQ4K},
      {"Q5_K", 13, 256, 176, "F32", unpack_q5_k, "weights.7", "(d · s) · q − (e · m)", &kQ5K},
      {"Q3_K", 11, 256, 110, "F32", unpack_q3_k, "weights.8", "(d · (s − 32)) · q", &kQ3K},
      {"Q6_K", 14, 256, 210, "F32", unpack_q6_k, "weights.9", "(d · s) · (q − 32)", &kQ6K},
      {"IQ4_XS", 23, 256, 136, "F32", unpack_iq4_xs, "weights.10", "(d · (s − 32)) · table[q]", &kIq4Xs},
  };
  return kFormats;
}

const Format* find_format(int gguf_type) {
  const auto found = std::ranges::find(formats(), gguf_type, &Format::gguf_type);
  return found == formats().end() ? nullptr : &*found;
}

const Format* find_format(std::string_view name) {
  const auto found =
      std::ranges::find(formats(), name, [](const Format& f) { return std::string_view(f.name); });
  return found == formats().end() ? nullptr : &*found;
}

std::string_view unread_type(int gguf_type) {
  static constexpr std::pair<int, std::string_view> kNames[] = {
      {9, "Q8_1"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"},
      {21, "IQ3_S"}, {22, "IQ2_S"}, {24, "I8"},      {25, "I16"},    {26, "I32"},     {27, "I64"},
      {28, "F64"},   {29, "IQ1_M"}, {34, "TQ1_0"},   {35, "TQ2_0"},  {40, "NVFP4"},   {41, "Q1_0"}};
  for (const auto& [type, name] : kNames)
    if (type == gguf_type) return name;
  return "";
}

bool unpack_row(const Format& f, const uint8_t* packed, int64_t numbers, uint8_t* elements) {
  if (!f.unpack) {
    std::memcpy(elements, packed, static_cast<size_t>(numbers / f.block * f.bytes));
    return true;
  }
  bool finite = true;
  float block[kLargestBlock];
  for (int64_t at = 0; at < numbers; at += f.block, packed += f.bytes) {
    f.unpack(packed, block);
    for (int i = 0; i < f.block; ++i) {
      const uint32_t bits = num::f32_bits(block[i]);
      finite &= (bits & 0x7f800000u) != 0x7f800000u;
      for (size_t b = 4 - element_bytes(f.element); b < 4; ++b)
        *elements++ = static_cast<uint8_t>(bits >> 8 * b);
    }
  }
  return finite;
}

bool write_elements(std::string_view element, const float* numbers, int64_t count, uint8_t* out) {
  const bool f32 = element == "F32", bf16 = element == "BF16";
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = f32    ? num::f32_bits(numbers[i])
                          : bf16 ? num::bf16_from_f32(numbers[i])
                                 : num::f16_from_f32(numbers[i]);
    const uint32_t infinity = f32 ? 0x7f800000 : bf16 ? 0x7f80 : 0x7c00;
    finite &= (bits & infinity) != infinity;
    for (int b = 0; b < (f32 ? 4 : 2); ++b) *out++ = static_cast<uint8_t>(bits >> 8 * b);
  }
  return finite;
}

}  // namespace invar::weights
