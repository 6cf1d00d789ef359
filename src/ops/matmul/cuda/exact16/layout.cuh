// How a GPU holds the 16-bit integers of rows (spec/exact16.md): two planes of bytes, in blocks
// that one bulk copy moves and the tensor cores of Hopper read as they are.
#pragma once
#include "kernels/cuda/launch.h"
#include "num/exact16/quantize.h"
#include "ops/matmul/matmul.h"

namespace invar::ops::INVAR_ISA_NS {

constexpr int kBlockK = 128;    // k of a block; rows are zero behind K
constexpr int kBlockRows = 64;  // rows of a block of weights, and of activations but a few
constexpr int kPlane = kBlockRows * kBlockK;
constexpr int64_t kBlocksToJoin = 512;  // blocks whose three sums fit 32 bits (exact16.3)

// Blocks [matrix][tile of `height` rows][chunk of kBlockK k]: the h plane, then the l plane, each
// `height` rows of kBlockK bytes, with the 16 bytes of group g of row r at group g ^ (r & 7). Then
// the scales, of all rows of all tiles.
struct Planes {
  uint8_t* blocks;
  int32_t* scales;
  int64_t tiles, chunks;  // of a matrix
  int height;

  __host__ __device__ int64_t block_bytes() const { return int64_t{2} * height * kBlockK; }
  __device__ const uint8_t* block(int64_t matrix, int64_t tile, int64_t chunk) const {
    return blocks + ((matrix * tiles + tile) * chunks + chunk) * block_bytes();
  }
  __device__ const int32_t* scales_of(int64_t matrix) const { return scales + matrix * tiles * height; }
};
// Units cut evenly over blocks: a block's are consecutive, the first `longer` blocks have one more.
struct EvenShares {
  int each, longer;
  __device__ int first_unit(int block) const { return block * each + (block < longer ? block : longer); }
  __device__ int block_of(int unit) const {
    const int in_longer = longer * (each + 1);
    return unit < in_longer ? unit / (each + 1) : longer + (unit - in_longer) / each;
  }
};
// What a kernel of one product is given.
struct ExactProduct {
  matmul::Shape s;
  Planes a, b;
  float* out;
  const float* addend;  // null, or elements like those of out, which are added to the results
};
// What a kernel of several products of the same rows is given.
constexpr size_t kMostTogether = 4;
struct ExactTogether {
  struct One {
    Planes b;
    float* out;
    const float* addend;
    int64_t n;
    int first;  // of its tiles of columns, among those of all
  };
  matmul::Shape s;  // of the first
  Planes a;
  int count, columns;  // products, and their tiles of columns
  One of[kMostTogether];
};

namespace {

Planes planes(void* memory, int64_t matrices, int64_t rows, int64_t k, int height) {
  Planes p{static_cast<uint8_t*>(memory), nullptr, ceil_div(rows, height), ceil_div(k, kBlockK), height};
  p.scales = reinterpret_cast<int32_t*>(p.blocks + matrices * p.tiles * p.chunks * p.block_bytes());
  return p;
}
size_t planes_bytes(int64_t matrices, int64_t rows, int64_t k, int height) {
  const Planes p = planes(nullptr, matrices, rows, k, height);
  const int64_t per_tile = p.chunks * p.block_bytes() + int64_t{height} * int64_t{sizeof(int32_t)};
  return static_cast<size_t>(matrices * p.tiles * per_tile);
}

// The matrices of a and b of one product.
struct MatrixPair {
  int64_t a, b;
};
__device__ inline MatrixPair matrices_of(const matmul::Shape& s, int64_t batch) {
  if (s.batches == 1) return {0, 0};
  const matmul::Offsets at = matmul::offsets(s, batch);
  return {at.a / (s.m * s.k), at.b_matrix};
}

// Tile i of rows times columns: runs of tiles of rows meet a column before the next, for the L2
// cache.
struct TileInRuns {
  int row, column;
};
__device__ inline TileInRuns tile_in_runs(int i, int rows, int columns) {
  constexpr int kTileRun = 16;
  const int run = i / (kTileRun * columns), first = run * kTileRun;
  const int height = rows - first < kTileRun ? rows - first : kTileRun;
  i -= first * columns;
  return {first + i % height, i / height};
}

// exact16.4 and exact16.5.
__device__ inline float exact_result(int64_t sum, int32_t ea, int32_t eb) {
  const float v = __ll2float_rn(sum);
  // The usual case: a normal result, whose exponent is the sum of exponents.
  const int32_t bits = __float_as_int(v), e = ea + eb, field = (bits >> 23 & 255) + e;
  if (sum != 0 && field >= 1 && field <= 254) return __int_as_float(bits + e * (1 << 23));
  if (ea == num::kExact16NoIntegers || eb == num::kExact16NoIntegers) return __uint_as_float(0x7fc00000);
  if (sum == 0) return 0.0f;
  const uint32_t sign = static_cast<uint32_t>(bits) & 0x80000000u;
  return __uint_as_float(field < 1 ? sign : sign | 0x7f800000u);
}
// exact_result where both scales are such that |sum| < 2^62 gives a normal result or 0.
__device__ inline bool usual_scale(int32_t e) {
  return e >= -63 && e <= 32;
}
__device__ inline float power_of_two(int32_t e) {
  return __int_as_float((e + 127) << 23);
}
__device__ inline float usual_result(int64_t sum, int32_t ea, int32_t eb) {
  return __ll2float_rn(sum) * (power_of_two(ea) * power_of_two(eb));
}
// The result of `add` of a result and an addend (formats.5).
__device__ inline float with_addend(float y, float addend) {
  return canonicalize(add(F{y}, F{addend})).v;
}
__device__ inline void store_result(const ExactProduct& in, int64_t i, float y) {
  in.out[i] = in.addend ? with_addend(y, in.addend[i]) : y;
}
// The product that a tile of columns is of.
__device__ inline int product_of(const ExactTogether& in, int column) {
  int product = 0;
  while (product + 1 < in.count && column >= in.of[product + 1].first) ++product;
  return product;
}
__device__ inline int64_t exact_sum(int high, int cross, int low) {
  return int64_t{high} * 65536 + int64_t{cross} * 256 + low;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
