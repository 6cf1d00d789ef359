// How Hopper holds the integers of matmul_nbits_exact16: blocks of 64 columns and 128 k that one
// bulk copy moves.
#pragma once
#include "ops/matmul/cuda/exact16/select.h"
#include "ops/matmul/nbits.h"

namespace invar::ops::INVAR_ISA_NS {

// 8 bits: signed bytes of kBlockK k of each column, in the 128-byte swizzle. 4 bits, less 8: the
// fragments of the tensor cores, two words of each of four steps of 32 k of each of 128 threads; a
// word's high halves are four k of one column, its low ones those of the column 8 behind.
__host__ __device__ constexpr int nbits_block_bytes(int64_t bits) {
  return static_cast<int>(bits) * kBlockRows * kBlockK / 8;
}
constexpr int64_t kWholePiece = 65536;  // k whose sums of a plane fit 32 bits

// What a kernel is given. A tile has t_rows rows of t: one where one group is all of K, one for
// each 32 k where groups are shorter than kBlockK, else one for each group.
struct NbitsProduct {
  int64_t m, n;
  Planes a;
  const uint8_t* b;             // [tile][chunk]
  int64_t chunks_b, chunks;     // of a tile of b; of K
  const int32_t *t, *es;        // [tile][row of t][64]; [tile][64]
  const int32_t *zeros, *of_a;  // as t; [tile of rows][piece][row]; null where all zero points are 0
  int64_t t_rows, z_rows;       // of a tile of t, of zero points
  int64_t pieces;               // of a tile of rows
  int chunks_per_t;             // where groups are not shorter
  float* out;
  const float* addend;  // null, or elements like those of out, which few rows' kernel adds to them
  __device__ const uint8_t* block(int64_t tile, int64_t chunk, int bits) const {
    return b + (tile * chunks_b + chunk) * nbits_block_bytes(bits);
  }
};

// What the kernel of few rows is given: products of the same rows, with matrices alike but for
// their columns.
struct NbitsTogether {
  int count;
  int first[kMostTogether];  // of a product's tiles of columns, among those of all
  NbitsProduct of[kMostTogether];
  __device__ int product_of(int column) const {
    int product = 0;
    while (product + 1 < count && column >= first[product + 1]) ++product;
    return product;
  }
};

// Kinds of groups: one for all of K; of whole chunks; of 32 or 64 k.
enum class NbitsGroups { whole, chunks, parts };
void enqueue_nbits_gemv_hopper(const NbitsTogether& in, int bits, NbitsGroups groups, const GemvWork& work,
                               bool packed, Stream stream);
void enqueue_nbits_gemm_hopper(const NbitsProduct& in, int bits, NbitsGroups groups, Stream stream);

}  // namespace invar::ops::INVAR_ISA_NS
