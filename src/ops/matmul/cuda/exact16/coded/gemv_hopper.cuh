// The product of few rows with columns in codes on Hopper. Codes become integers in registers, from
// which the tensor cores take them as the operand of 64 rows; activations are the other, h and l
// plane stacked. Warpgroups take the stages of a ring in turn, and their sums meet in shared
// memory: sums are exact, so their order is free (exact16.6).
#pragma once
#include "ops/matmul/cuda/exact16/coded/decode.cuh"
#include "ops/matmul/cuda/exact16/coded/hopper.h"
#include "ops/matmul/cuda/exact16/gemv_parts.cuh"
#include "ops/matmul/cuda/exact16/wgmma_scaled.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kCodedMemory = 216 << 10;
constexpr int kCodedBarrier = 14;  // of all consumers

// As many warpgroups as have registers for their sums.
constexpr int coded_groups(int rows) {
  return rows == 8 ? 4 : rows == 16 ? 3 : 2;
}

// kParts: factors of a tile (CodeTiles).
template <weights::Codes kCodes, int kBits, int kParts, int kRows>
struct CodedGemv : ProductFrame<coded_groups(kRows), kWarpgroup / kWarp, kWarpgroup, 24, kCodedMemory,
                                kRows == 64 ? 56 : 0, kRows == 64 ? 224 : 0, true> {
  static constexpr int kGroups = coded_groups(kRows);
  static constexpr int kEmptyArrivals = kWarpgroup / kWarp;  // of the one that a stage is for
  static constexpr int kActivations = 2 * kRows * kBlockK;
  static constexpr int kSums = kRows / 2;                                 // of a thread
  static constexpr int kJoined = (kGroups - 1) * kSums * kWarpgroup * 8;  // bytes of sums that meet
  ExactTogether in;
  CodedForm form;
  GemvWork w;

  __device__ uint32_t stage_bytes() const { return (kActivations + form.tile_bytes + 1023) / 1024 * 1024; }
  __device__ uint32_t stages() const {
    const uint32_t most = (kCodedMemory - kJoined) / stage_bytes() / kTurns * kTurns;
    return most < CodedGemv::kStages ? most : CodedGemv::kStages;
  }

  // Codes are few bytes, so one thread could not ask for them as fast as they come. One of kTurns
  // threads alone fills a stage: none then meets a barrier of another's earlier turn.
  static constexpr int kTurns = kRows <= 16 ? 4 : 2;
  __device__ void produce(Ring ring) const {
    const int turn = threadIdx.x % kWarpgroup / kWarp;
    if (threadIdx.x % kWarp != 0 || turn >= kTurns) return;
    int column = -1;
    const uint8_t* tiles = nullptr;  // of that column
    const auto tile_at = [&](const GemvTile& at) {
      if (at.column != column) {
        const ExactTogether::One& one = in.of[product_of(in, column = at.column)];
        tiles = one.b.blocks + int64_t{column - one.first} * w.chunks * form.tile_bytes;
      }
      return tiles + int64_t{at.chunk} * form.tile_bytes;
    };
    produce_gemv_units<kTurns>(
        w, true, ring,
        [&](const GemvTile& at, uint32_t to, uint32_t full) {
          expect_bytes(full, kActivations + form.tile_bytes);
          copy_bulk_once(to + kActivations, tile_at(at), form.tile_bytes, full);
        },
        [&](const GemvTile& at) { prefetch_bulk(tile_at(at), form.tile_bytes); },
        [&](const GemvTile& at, uint32_t to, uint32_t full) {
          const int64_t block = gemv_row_tile(at, 1, 0, in.a.tiles) * w.chunks + at.chunk;
          copy_bulk(to, in.a.blocks + block * kActivations, kActivations, full);
        },
        turn);
  }

  // The thread's columns in a tile.
  struct Columns {
    float* out;
    const float* addend;
    int64_t n, columns;  // the first of them; of the product
    int32_t e[2];
    float factor[2];
  };
  __device__ Columns columns_of(const GemvTile& tile) const {
    const int t = threadIdx.x % kWarpgroup;
    const ExactTogether::One& one = in.of[product_of(in, tile.column)];
    Columns c{one.out, one.addend,
              int64_t{tile.column - one.first} * kBlockRows + t / kWarp * 16 + t % kWarp / 4, one.n};
    for (int i = 0; i < 2; ++i) c.e[i] = one.b.scales[c.n + 8 * i], c.factor[i] = factor_of(c.e[i]);
    return c;
  }

  struct Sums {
    int from_h[kRows], from_l[kRows];  // of the bytes h and l of weights
    __device__ Sums() {
#pragma unroll
      for (int i = 0; i < kRows; ++i) from_h[i] = from_l[i] = 0;
    }
  };
  // Of the thread's two columns in both halves of a step: scales of codes in binary16, and addends.
  struct Factors {
    float scale[2][2], addend[2][2];
  };
  __device__ void load_factors(Factors& f, uint32_t from, int step) const {
    // Without addends they are the scales times -zero, else they are times 1: no branch.
    const uint32_t stride = (form.has_addends ? 2 : 1) * kBlockRows * 4;  // of a part
    const uint32_t addends = form.has_addends ? kBlockRows * 4 : 0;
    const float times = form.has_addends ? 1.0f : static_cast<float>(-form.zero);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int sixteen = 2 * step + half;
      if (sixteen * kParts % 8 != 0) {
        if (half == 0) return;  // those of the step before
#pragma unroll
        for (int i = 0; i < 2; ++i) f.scale[1][i] = f.scale[0][i], f.addend[1][i] = f.addend[0][i];
        return;
      }
      const uint32_t part = from + sixteen * kParts / 8 * stride;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        f.scale[half][i] = load_float(part + i * 32) * times_of_half<kCodes, kBits>(i);
        f.addend[half][i] =
            kCodes == weights::Codes::integers ? load_float(part + addends + i * 32) * times : 0;
      }
    }
  }
  template <weights::Rounding kRounding>
  __device__ void multiply_stage(uint32_t at, const Columns& c, Sums& sums) const {
    constexpr int kSteps = kBlockK / 32, kVectors = kSteps * kBits / 8;
    const int t = threadIdx.x % kWarpgroup, row = t / kWarp * 16 + t % kWarp / 4;
    const uint32_t codes = at + kActivations + t * 16;
    const uint32_t factors = at + kActivations + form.code_bytes + row * 4;
    const uint64_t x = operand(at);
    uint32_t word[kVectors][4];
    Factors of_step[kParts == 1 ? 1 : 2];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) load_words(word[v], codes + v * 2048);
    load_factors(of_step[0], factors, 0);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const Factors& f = of_step[kParts == 1 ? 0 : step % 2];
      if (kParts > 1 && step + 1 < kSteps) load_factors(of_step[(step + 1) % 2], factors, step + 1);
      uint32_t high[4], low[4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const uint32_t of = kBits == 8 ? word[step][2 * half + i] : word[step / 2][step % 2 * 2 + half];
          const IntegerBytes q =
              integers_of<kCodes, kBits, kRounding>(of, i, f.scale[half][i], f.addend[half][i], c.factor[i]);
          high[2 * half + i] = q.high, low[2 * half + i] = q.low;
        }
      }
      begin_products();
      multiply(sums.from_h, high, x + 2 * step, 1);
      multiply<true>(sums.from_l, low, x + 2 * step, 1);
      commit_products();
    }
    wait_products<0>();
  }
  __device__ static void load_words(uint32_t (&x)[4], uint32_t from) {
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(from)
                 : "memory");
  }
  __device__ static float load_float(uint32_t from) {
    float x;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from) : "memory");
    return x;
  }

  __device__ static void sync_consumers() {
    asm volatile("bar.sync %0, %1;" ::"n"(kCodedBarrier), "n"(kGroups * kWarpgroup) : "memory");
  }
  // The sums of all warpgroups, in the first one.
  __device__ static void meet(uint32_t memory, int group, int64_t (&sum)[kSums]) {
    const uint32_t at = memory + threadIdx.x % kWarpgroup * 8;
    constexpr uint32_t kStep = kWarpgroup * 8;
    if (group > 0) {
#pragma unroll
      for (int i = 0; i < kSums; ++i)
        asm volatile("st.shared.b64 [%0], %1;" ::"r"(at + ((group - 1) * kSums + i) * kStep), "l"(sum[i])
                     : "memory");
    }
    sync_consumers();
    if (group == 0) {
      for (int g = 1; g < kGroups; ++g) {
#pragma unroll
        for (int i = 0; i < kSums; ++i) {
          int64_t more;
          asm volatile("ld.shared.b64 %0, [%1];"
                       : "=l"(more)
                       : "r"(at + ((g - 1) * kSums + i) * kStep)
                       : "memory");
          sum[i] += more;
        }
      }
    }
    sync_consumers();
  }

  __device__ void store(const GemvTile& tile, const Columns& c, const int64_t (&sum)[kSums]) const {
    const int64_t m0 = int64_t{tile.row_block} * kRows + threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < kSums; i += 4) {
      float y[4];
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const int64_t m = m0 + i / 4 * 8 + q % 2, n = c.n + q / 2 * 8;
        if (m >= in.s.m || n >= c.columns) continue;
        y[q] = exact_result(sum[i + q], in.a.scales[m], c.e[q / 2]);
        if (c.addend) y[q] = with_addend(y[q], c.addend[m * c.columns + n]);
      }
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const int64_t m = m0 + i / 4 * 8 + q % 2, n = c.n + q / 2 * 8;
        if (m < in.s.m && n < c.columns) c.out[m * c.columns + n] = y[q];
      }
    }
  }

  __device__ void consume(Ring ring, int group) const {
    const uint32_t joined = ring.memory + ring.stages * ring.bytes;
    int next = group;  // this group's next stage, from the first one of a tile on
    ring.skip(group);
    wait_for_previous_grid();
    for_gemv_tiles(w, [&](const GemvTile& tile, int unit) {
      const Columns c = columns_of(tile);
      Sums sums;
      const int stages = tile.end - tile.chunk;
      for (; next < stages; next += kGroups) {
        wait_barrier(ring.full_now(), ring.phase);
        with_rounding(form.rounding,
                      [&]<weights::Rounding kRounding>(std::integral_constant<weights::Rounding, kRounding>) {
                        multiply_stage<kRounding>(ring.stage_now(), c, sums);
                      });
        this->leave(ring.empty_now());
        ring.skip(kGroups);
      }
      next -= stages;
      int64_t sum[kSums];
#pragma unroll
      for (int i = 0; i < kSums; ++i)
        sum[i] = int64_t{sums.from_h[i]} * 65536 + (int64_t{sums.from_h[kSums + i]} + sums.from_l[i]) * 256 +
                 sums.from_l[kSums + i];
      meet(joined, group, sum);
      if (group == 0 && GemvParts<kRows, 1>::complete(w, tile, unit, 0, sum)) store(tile, c, sum);
    });
  }
};

template <weights::Codes kCodes, int kBits, int kParts>
void enqueue_coded_of(const ExactTogether& in, const CodedForm& form, const GemvWork& w, Stream stream) {
  const auto go = [&]<int kRows>() {
    launch_product(CodedGemv<kCodes, kBits, kParts, kRows>{{}, in, form, w}, w.grid, stream);
  };
  if (w.rows == 64) return go.template operator()<64>();
  if (w.rows == 32) return go.template operator()<32>();
  if (w.rows == 16) return go.template operator()<16>();
  go.template operator()<8>();
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
