// matmul_nbits_exact16 on Hopper: weights are the operand of 64 rows, from shared memory where they
// have 8 bits, from registers where they have 4; activations the other, h and l plane stacked, so
// each weight is read once. The sums of a piece of k, within one group, are 256 h + l less the zero
// point times the sum of the row's integers; times the group's t they are added in int64
// (matmul_nbits_exact16.3).
#pragma once
#include <type_traits>

#include "ops/matmul/cuda/exact16/nbits/layout.cuh"
#include "ops/matmul/cuda/exact16/wgmma_scaled.cuh"
#include "ops/matmul/cuda/hopper_product.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

__device__ inline int2 load_pair(uint32_t shared) {
  int2 x;
  asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(shared) : "memory");
  return x;
}
__device__ inline int load_word(uint32_t shared) {
  int x;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(shared) : "memory");
  return x;
}
__device__ inline void store_word(uint32_t shared, int x) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(shared), "r"(x) : "memory");
}
// Sums are read after this alone, when their products have ended.
template <int kCount>
__device__ inline void products_ended(int (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(d[i])::"memory");
}
// Sums are joined before this, so that the registers of their products are free.
template <int kCount>
__device__ inline void sums_joined(int64_t (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+l"(d[i])::"memory");
}

// What a stage of a ring holds: a chunk of k of kTiles tiles of weights and of kRowTiles tiles of
// kRows activations; t and zero points of the tiles' columns and the sums of the rows' integers,
// kSub of each (none where one group is all of K).
template <int kBits, int kSub, int kRows, int kTiles, int kRowTiles>
struct NbitsStage {
  static constexpr int kWeights = nbits_block_bytes(kBits), kActivations = 2 * kRows * kBlockK;
  static constexpr int kFactors = kSub * kBlockRows * 4, kSums = kSub * kRows * 4;
  static constexpr int kAtActivations = kTiles * kWeights;
  static constexpr int kAtT = kAtActivations + kRowTiles * kActivations;
  static constexpr int kAtZeros = kAtT + kTiles * kFactors, kAtSums = kAtZeros + kTiles * kFactors;
  static constexpr int kBytes = (kAtSums + kRowTiles * kSums + 1023) / 1024 * 1024;
  __device__ static int expected(bool zeros) { return zeros ? kAtSums + kRowTiles * kSums : kAtZeros; }
  __device__ static void load_factors(const NbitsProduct& in, uint32_t to, uint32_t full, int i, int64_t tile,
                                      int chunk) {
    if constexpr (kSub > 0) {
      const int64_t row = kSub > 1 ? int64_t{kSub} * chunk : chunk / in.chunks_per_t;
      copy_bulk(to + kAtT + i * kFactors, in.t + (tile * in.t_rows + row) * kBlockRows, kFactors, full);
      if (in.zeros)
        copy_bulk(to + kAtZeros + i * kFactors, in.zeros + (tile * in.z_rows + row) * kBlockRows, kFactors,
                  full);
    }
  }
  __device__ static void load_sums(const NbitsProduct& in, uint32_t to, uint32_t full, int i, int64_t tile,
                                   int chunk) {
    if constexpr (kSub > 0)
      if (in.of_a)
        copy_bulk(to + kAtSums + i * kSums, in.of_a + (tile * in.pieces + int64_t{kSub} * chunk) * kRows,
                  kSums, full);
  }
};

// The weights of a tile in a chunk, as operands of its four steps of 32 k.
template <int kBits>
struct WeightOperands;
template <>
struct WeightOperands<8> {
  uint64_t at;
  __device__ explicit WeightOperands(uint32_t shared) : at(operand(shared)) {}
  __device__ uint64_t step(int i) const { return at + 2 * i; }
};
template <>
struct WeightOperands<4> {  // 16 times the integers
  uint32_t w[4][4];
  __device__ explicit WeightOperands(uint32_t shared) {
    constexpr uint32_t kHigh = 0xf0f0f0f0;
    const uint32_t from = shared + threadIdx.x % kWarpgroup * 16;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      uint32_t x[4];
      asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                   : "r"(from + i / 2 * kWarpgroup * 16)
                   : "memory");
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        w[i + j / 2][j % 2 * 2] = x[j] & kHigh;
        w[i + j / 2][j % 2 * 2 + 1] = x[j] << 4 & kHigh;
      }
    }
  }
  __device__ const uint32_t (&step(int i) const)[4] {
    return w[i];
  }
};

// acc = the products of one step, whose number the code does not know: no two steps' sums are held.
template <int kRows>
__device__ inline void multiply_step(int (&acc)[kRows], std::integral_constant<int, 8>, uint32_t weights,
                                     uint64_t activations, int step) {
  begin_products();
  multiply(acc, operand(weights) + 2 * step, activations + 2 * step, 0);
}
template <int kRows>
__device__ inline void multiply_step(int (&acc)[kRows], std::integral_constant<int, 4>, uint32_t weights,
                                     uint64_t activations, int step) {
  constexpr uint32_t kHigh = 0xf0f0f0f0;
  const int2 x =
      load_pair(weights + step / 2 * kWarpgroup * 16 + threadIdx.x % kWarpgroup * 16 + step % 2 * 8);
  const uint32_t w[4] = {x.x & kHigh, x.x << 4 & kHigh, x.y & kHigh, x.y << 4 & kHigh};
  begin_products();
  multiply(acc, w, activations + 2 * step, 0);
}

// acc += or = all of a chunk.
template <int kBits, int kRows>
__device__ inline void multiply_chunk(int (&acc)[kRows], uint32_t weights, uint32_t activations, int adds) {
  const WeightOperands<kBits> w(weights);
  const uint64_t x = operand(activations);
  begin_products();
#pragma unroll
  for (int i = 0; i < kBlockK / 32; ++i) multiply(acc, w.step(i), x + 2 * i, i ? 1 : adds);
  commit_products();
}

// acc = the products of the ring's next `count` chunks.
template <class Frame, int kBits, int kRows>
__device__ inline void multiply_chunks(int (&acc)[kRows], Ring& ring, int count, int weights,
                                       int activations) {
  if constexpr (kBits == 8) {
    Frame::multiply_stages(ring, count, [&](uint32_t at, int i) {
      multiply_chunk<kBits>(acc, at + weights, at + activations, i > 0);
    });
  } else {  // its operands are in registers, which the next chunk's take
    for (int i = 0; i < count; ++i) {
      wait_barrier(ring.full_now(), ring.phase);
      multiply_chunk<kBits>(acc, ring.stage_now() + weights, ring.stage_now() + activations, i > 0);
      wait_products<0>();
      Frame::leave(ring.empty_now());
      ring.next();
    }
  }
  products_ended(acc);
}

// sum + a b, one instruction: mad.wide becomes three.
__device__ inline void add_product(int64_t& sum, int a, int b) {
  asm("{\n.reg .s64 p;\nmul.wide.s32 p, %1, %2;\nadd.s64 %0, %0, p;\n}" : "+l"(sum) : "r"(a), "r"(b));
}
// A thread has results of two columns, and of two of every eight rows.
template <int kRows>
struct NbitsJoin {
  static constexpr int kSums = kRows / 2;
  // Calls f(number of the sum, the group's t, the sum of the piece). t, zeros, sums: of this group,
  // in shared memory.
  template <class Fn>
  __device__ static void each(const int (&acc)[kRows], uint32_t t, uint32_t zeros, uint32_t sums,
                              bool has_zeros, Fn f) {
    const int lane = threadIdx.x % kWarp, column = threadIdx.x % kWarpgroup / kWarp * 16 + lane / 4;
    const int of[2] = {load_word(t + column * 4), load_word(t + column * 4 + 32)};
    if (has_zeros) {
      const int z[2] = {load_word(zeros + column * 4), load_word(zeros + column * 4 + 32)};
#pragma unroll
      for (int j = 0; j < kRows / 8; ++j) {
        const int2 s = load_pair(sums + (8 * j + lane % 4 * 2) * 4);
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          const int i = 4 * j + q;
          f(i, of[q / 2], (acc[i] << 8) + acc[kSums + i] - z[q / 2] * (q % 2 ? s.y : s.x));
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < kSums; ++i) f(i, of[i % 4 / 2], (acc[i] << 8) + acc[kSums + i]);
    }
  }
  __device__ static void add(int64_t (&sum)[kSums], const int (&acc)[kRows], uint32_t t, uint32_t zeros,
                             uint32_t sums, bool has_zeros) {
    each(acc, t, zeros, sums, has_zeros, [&](int i, int of, int p) { add_product(sum[i], of, p); });
    sums_joined(sum);
  }
};

// Stores results of 64 columns from a tile of weights and of kRows rows from `row` on, whose sums
// are value(i).
template <int kBits, bool kWhole, int kRows, class Value>
__device__ inline void store_nbits(const NbitsProduct& in, int64_t tile, int64_t row_tile, Value value) {
  const int t = threadIdx.x % kWarpgroup, lane = t % kWarp;
  const int64_t n0 = tile * kBlockRows + t / kWarp * 16 + lane / 4, m0 = row_tile * kRows + lane % 4 * 2;
  const int32_t es[2] = {in.es[n0], in.es[n0 + 8]};
  int64_t of[2] = {1, 1}, z[2] = {0, 0};
  if constexpr (kWhole) {
    of[0] = in.t[n0], of[1] = in.t[n0 + 8];
    if (in.zeros) z[0] = in.zeros[n0], z[1] = in.zeros[n0 + 8];
  }
#pragma unroll
  for (int j = 0; j < kRows / 8; ++j) {
    const int2 ea = *reinterpret_cast<const int2*>(in.a.scales + m0 + 8 * j);
    float x[4];  // loaded before the stores, over which the compiler does not move them
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int64_t m = m0 + 8 * j + q % 2, n = n0 + q / 2 * 8;
      x[q] = in.addend && m < in.m && n < in.n ? in.addend[m * in.n + n] : 0;
    }
    int64_t of_a[2] = {0, 0};
    if (kWhole && in.zeros)
      for (int64_t piece = 0; piece < in.pieces; ++piece)
        for (int e = 0; e < 2; ++e)
          of_a[e] += in.of_a[(row_tile * in.pieces + piece) * kRows + 8 * j + lane % 4 * 2 + e];
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int64_t m = m0 + 8 * j + q % 2, n = n0 + q / 2 * 8;
      int64_t v = value(4 * j + q);
      if (kWhole) v = of[q / 2] * (v - z[q / 2] * of_a[q % 2]);
      if (kBits == 4) v >>= 4;
      const float y = exact_result(v, q % 2 ? ea.y : ea.x, es[q / 2]);
      if (m < in.m && n < in.n) in.out[m * in.n + n] = in.addend ? with_addend(y, x[q]) : y;
    }
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
