// Rows of numbers in blocks of a format, as a file holds them. Kernels include this: nothing inline
// of the standard library is used here (kernels/call.h).
#pragma once

#include <cstdint>

namespace invar::weights {

// Makes the numbers of one block, each operation rounded once to binary32 in the order of the
// format's clause.
using Unpack = void (*)(const uint8_t* block, float* numbers);
inline constexpr int kLargestBlock = 256;

// The integers of a block, which are what kernels keep of it: number i is q[i] S + A in binary32
// with one rounding, since the product is exact. S is d times s[i / group] less 128, or d alone
// where there are no groups. A is -`zero` S; where there is e it is -(e m[i / group]), or e alone.
struct BlockIntegers {
  uint8_t q[kLargestBlock];
  uint16_t d, e;  // binary16
  uint8_t s[kLargestBlock / 16], m[kLargestBlock / 16];
};
struct Coding {
  void (*read)(const uint8_t* block, BlockIntegers&);
  int bits;   // that hold every q: 4 or 8
  int group;  // numbers with one s; without groups those of a block
  int zero;
  bool has_groups, has_e;
};

struct Format {
  const char* name;
  int gguf_type;                   // ggml_type; -1: no GGUF file has it
  int block, bytes;                // numbers and bytes of a block
  const char* element;             // the smallest type that holds every number: F32, F16, BF16
  Unpack unpack;                   // null: the bytes are those of `element`
  const char* clause;              // of spec/weights.md
  const char* value;               // a number of it, for docs/reference/weight-formats.md
  const Coding* coding = nullptr;  // null: kernels unpack its blocks where they read them
};

struct PackedRows {
  const Format* format = nullptr;
  const uint8_t* bytes = nullptr;   // of the tensor
  int64_t numbers = 0, stride = 0;  // of a row, a whole number of blocks, and its bytes
  int64_t rows = 0, first = 0;      // how many, from this row of the tensor on
  int64_t head = 0;                 // rows of a head whose two halves lie in turns (weights.14); 0: in order

  [[gnu::always_inline]] uint64_t bytes_of_rows() const { return static_cast<uint64_t>(rows * stride); }
  // The blocks of row r.
  [[gnu::always_inline]] const uint8_t* row(int64_t r) const {
    r += first;
    if (head) {
      const int64_t at = r % head;
      r += at % (head / 2) * 2 + at / (head / 2) - at;
    }
    return bytes + r * stride;
  }
};

}  // namespace invar::weights
