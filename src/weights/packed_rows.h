// Rows of numbers in blocks of a format, as a file holds them. Kernels include this: nothing inline
// of the standard library is used here (kernels/call.h).
#pragma once

#include <cstdint>

namespace invar::weights {

// Makes the numbers of one block, each operation rounded once to binary32 in the order of the
// format's clause.
using Unpack = void (*)(const uint8_t* block, float* numbers);
inline constexpr int kLargestBlock = 256;

// How kernels read the codes of a block: as integers, or as small floats of a sign, so many bits of
// exponent and of mantissa, without infinity, or as places in a table of bitsandbytes.
enum class Codes : uint8_t { integers, e4m3, e5m2, e2m1, nf4, fp4 };
constexpr float kNf4[16] = {-1.0f,
                            -0.6961928009986877f,
                            -0.5250730514526367f,
                            -0.39491748809814453f,
                            -0.28444138169288635f,
                            -0.18477343022823334f,
                            -0.09105003625154495f,
                            0.0f,
                            0.07958029955625534f,
                            0.16093020141124725f,
                            0.24611230194568634f,
                            0.33791524171829224f,
                            0.44070982933044434f,
                            0.5626170039176941f,
                            0.7229568362236023f,
                            1.0f};
constexpr float kFp4[16] = {0.0f,       0.0625f / 12, 8.0f / 12,  1.0f,          4.0f / 12,  6.0f / 12,
                            2.0f / 12,  3.0f / 12,    0.0f,       -0.0625f / 12, -8.0f / 12, -1.0f,
                            -4.0f / 12, -6.0f / 12,   -2.0f / 12, -3.0f / 12};
// The numbers that four bits of IQ4_NL and IQ4_XS are places of.
constexpr float kIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
// The type of the number that scales a block. scaled_e4m3: times, or through, one number of the
// matrix.
enum class ScaleType : uint8_t { f16, bf16, f32, e8m0, scaled_e4m3 };
// To what each number is rounded once more.
enum class Rounding : uint8_t { none, bf16, f16 };

// The codes of a block, which are what kernels keep of it. S is the scale d times s[i / group] less
// 128, or d alone where there are no groups. Number i of integers is q[i] S + A in binary32 with
// one rounding, since the product is exact. A is -`zero` S, or -z S where blocks have zeros; where
// there is e it is -(e m[i / group]), or e alone. Number i of floats is the product q[i] S. At last
// comes the rounding.
struct BlockCodes {
  uint8_t q[kLargestBlock];
  uint32_t d;  // bits of the scale's type
  uint16_t e;  // binary16
  uint8_t s[kLargestBlock / 16], m[kLargestBlock / 16], z;
};
struct Coding {
  void (*read)(const uint8_t* block, BlockCodes&);  // null: of a matrix in parts
  int bits;                                         // that hold every q: 4 or 8
  int group;                                        // numbers with one s; without groups those of a block
  int zero;
  bool has_groups, has_e;
  Codes codes = Codes::integers;
  ScaleType scale = ScaleType::f16;
  Rounding rounding = Rounding::none;
  bool has_zeros = false;
  bool divided = false;  // scaled_e4m3: through, not times
  float whole = 1;       // of the matrix
  // Each number has the scale and zero of one of so many groups, in any order: group_of() and
  // read_group(). 0: of its block.
  int64_t column_groups = 0;
  int held = 0;         // bits that hold every integer, where these are others than `bits`; 0: `bits`
  bool of_iq4 = false;  // integers are 128 more than a number of kIq4
};

struct Format {
  const char* name;
  int gguf_type;                   // ggml_type; -1: no GGUF file has it
  int block, bytes;                // numbers and bytes of a block
  const char* element;             // the smallest type that holds every number: F32, F16, BF16
  Unpack unpack;                   // null: the bytes are those of `element`
  const char* clause;              // of spec/weights.md
  const char* value;               // a number of it, for docs/reference/weight-formats.md
  const Coding* coding = nullptr;  // of a format with `unpack`
};

struct PackedMatrix;  // weights/packed_matrix.h: codes, scales and zeros lie apart

struct PackedRows {
  const Format* format = nullptr;   // null: those of a matrix in parts
  const uint8_t* bytes = nullptr;   // of the tensor
  int64_t numbers = 0, stride = 0;  // of a row, a whole number of blocks, and its bytes
  int64_t rows = 0, first = 0;      // how many, from this row of the tensor on
  int64_t head = 0;                 // rows of a head whose two halves lie in turns (weights.14); 0: in order
  const PackedMatrix* matrix = nullptr;
  const Coding* coding = nullptr;   // of the matrix
  bool turned = false;              // rows are the columns of the tensor's matrices
  const uint8_t* second = nullptr;  // rows lie in turns at `bytes` and here; null: all at `bytes`

  [[gnu::always_inline]] uint64_t bytes_of_rows() const { return static_cast<uint64_t>(rows * stride); }
  // The blocks of row r, of a format.
  [[gnu::always_inline]] const uint8_t* row(int64_t r) const {
    r += first;
    if (second) return (r % 2 ? second : bytes) + r / 2 * stride;
    if (head) {
      const int64_t at = r % head;
      r += at % (head / 2) * 2 + at / (head / 2) - at;
    }
    return bytes + r * stride;
  }
};

// How kernels read the rows, the numbers of a block, and the codes of block `at` of row r.
const Coding& coding_of(const PackedRows&);
int block_of(const PackedRows&);
void read_codes(const PackedRows&, int64_t r, int64_t at, BlockCodes&);
// Of column groups: that of number k of a row, and the scale and zero of one.
int64_t group_of(const PackedRows&, int64_t k);
void read_group(const PackedRows&, int64_t r, int64_t group, BlockCodes&);

}  // namespace invar::weights
