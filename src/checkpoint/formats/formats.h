// The formats of weights, a row each: how many bytes are how many numbers, and which. Kernels know
// none of them: export_checkpoint writes out what no kernel reads (spec/weights.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace invar::checkpoint {

// Makes the numbers of one block, each operation rounded once to binary32 in the order of the
// format's clause.
using Unpack = void (*)(const uint8_t* block, float* numbers);

struct Format {
  const char* name;
  int gguf_type;        // ggml_type; -1: no GGUF file has it
  int block, bytes;     // numbers and bytes of a block
  const char* element;  // the smallest type that holds every number: F32, F16, BF16
  Unpack unpack;        // null: the bytes are those of `element`
  const char* clause;   // of spec/weights.md
  const char* value;    // a number of it, for docs/reference/weight-formats.md
};
std::span<const Format> formats();
const Format* find_format(int gguf_type);
const Format* find_format(std::string_view name);
// The name of a ggml_type that is known and not read, as "IQ2_XXS"; "" of others.
std::string_view unread_type(int gguf_type);

// Bytes of an element of F32, F16 or BF16.
constexpr size_t element_bytes(std::string_view element) {
  return element == "F32" ? 4 : 2;
}
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

}  // namespace invar::checkpoint
