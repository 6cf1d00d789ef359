// The formats of weights, a row each: how many bytes are how many numbers, and which
// (spec/weights.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weights/packed_rows.h"

namespace invar::weights {

std::span<const Format> formats();
const Format* find_format(int gguf_type);
const Format* find_format(std::string_view name);
// The name of a ggml_type that is known and not read, as "IQ2_XXS"; "" of others.
std::string_view unread_type(int gguf_type);

// Bytes of an element of F32, F16 or BF16.
constexpr size_t element_bytes(std::string_view element) {
  return element == "F32" ? 4 : 2;
}
// Writes numbers as elements of the type, each rounded once, little-endian. False: one of them is
// infinite or no number.
bool write_elements(std::string_view element, const float* numbers, int64_t count, uint8_t* out);
// Makes `numbers` of a row of the format's blocks as elements of `Format::element`, little-endian.
// False: one of them is infinite or no number, as with a scale that is.
bool unpack_row(const Format&, const uint8_t* packed, int64_t numbers, uint8_t* elements);

// Blocks of 32 and of 256 numbers.
void unpack_q4_0(const uint8_t*, float*);
void unpack_q4_1(const uint8_t*, float*);
void unpack_q5_0(const uint8_t*, float*);
void unpack_q5_1(const uint8_t*, float*);
void unpack_q8_0(const uint8_t*, float*);
void unpack_iq4_nl(const uint8_t*, float*);
void unpack_mxfp4(const uint8_t*, float*);
void unpack_q2_k(const uint8_t*, float*);
void unpack_q3_k(const uint8_t*, float*);
void unpack_q4_k(const uint8_t*, float*);
void unpack_q5_k(const uint8_t*, float*);
void unpack_q6_k(const uint8_t*, float*);
void unpack_iq4_xs(const uint8_t*, float*);
// The codes of the same blocks (Coding).
void integers_q4_0(const uint8_t*, BlockCodes&);
void integers_q4_1(const uint8_t*, BlockCodes&);
void integers_q5_0(const uint8_t*, BlockCodes&);
void integers_q5_1(const uint8_t*, BlockCodes&);
void integers_q8_0(const uint8_t*, BlockCodes&);
void integers_iq4_nl(const uint8_t*, BlockCodes&);
void codes_mxfp4(const uint8_t*, BlockCodes&);
void integers_q2_k(const uint8_t*, BlockCodes&);
void integers_q3_k(const uint8_t*, BlockCodes&);
void integers_q4_k(const uint8_t*, BlockCodes&);
void integers_q5_k(const uint8_t*, BlockCodes&);
void integers_q6_k(const uint8_t*, BlockCodes&);
void integers_iq4_xs(const uint8_t*, BlockCodes&);

}  // namespace invar::weights
