// The product of many rows (hopper.cuh): each of kGroups warpgroups has 64 columns and kRows
// rows of results.
#pragma once
#include "ops/matmul/cuda/exact16/nbits/hopper.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// What a thread knows of its two columns of a tile of weights.
template <bool kWhole>
struct NbitsColumns {
  int es[2], t[2], tz[2];  // t, and times the zero point: where one group is all of K
  __device__ NbitsColumns(const NbitsProduct& in, int64_t tile) {
    const int i = threadIdx.x % kWarpgroup;
    const int64_t n = tile * kBlockRows + i / kWarp * 16 + i % kWarp / 4;
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      es[q] = in.es[n + 8 * q];
      t[q] = kWhole ? in.t[n + 8 * q] : 0;
      tz[q] = kWhole && in.zeros ? t[q] * in.zeros[n + 8 * q] : 0;
    }
  }
};

// Stores results of a tile of weights and of kRows rows: sums value(i, the sum of the row's
// integers). 4 bits: 16 times the sums.
template <int kBits, int kRows, class Columns, class Value>
__device__ inline void store_tile(const NbitsProduct& in, int64_t tile, int64_t row_tile, const int2* rows,
                                  const Columns& columns, Value value) {
  constexpr int kShift = kBits == 4 ? 4 : 0;
  const int t = threadIdx.x % kWarpgroup, lane = t % kWarp;
  const int64_t n = tile * kBlockRows + t / kWarp * 16 + lane / 4, m = row_tile * kRows + lane % 4 * 2;
  const bool has[2] = {n < in.n, n + 8 < in.n};
  const int rows_left = static_cast<int>(in.m - m < kRows ? in.m - m : kRows);
  const int4* const of_rows = reinterpret_cast<const int4*>(rows) + lane % 4;
  bool usual = usual_scale(columns.es[0] - kShift) && usual_scale(columns.es[1] - kShift);
#pragma unroll
  for (int j = 0; j < kRows / 8; ++j) {
    const int4 r = of_rows[4 * j];
    usual = usual && usual_scale(r.x) && usual_scale(r.z);
  }
  auto each = [&](auto result) {
    float* to = in.out + m * in.n + n;
#pragma unroll
    for (int j = 0; j < kRows / 8; ++j, to += 8 * in.n) {
      const int4 r = of_rows[4 * j];
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const float y = result(value(4 * j + q, q % 2 ? r.w : r.y), q % 2 ? r.z : r.x, columns.es[q / 2]);
        if (has[q / 2] && 8 * j + q % 2 < rows_left) to[q % 2 * in.n + q / 2 * 8] = y;
      }
    }
  };
  if (__all_sync(~0u, usual))
    each([](int64_t v, int32_t ea, int32_t es) { return usual_result(v, ea, es - kShift); });
  else
    each([](int64_t v, int32_t ea, int32_t es) { return exact_result(v >> kShift, ea, es); });
}

// Sums of products of 64 bits: their last 32 bits, and roughly what they are, from which settle()
// finds the bits before. A product of 64 bits takes longer than both.
template <int kSums>
struct NbitsSums {
  // A product of t and a sum of 32 k is less than 2^45 (130558 * 32 * 32639 * 255), so a rough sum
  // of 32 of them is wrong by less than 2^21 (32 + 32 * 33 / 2) = 0.27 * 2^32; of 8 with sums of
  // 128 k by less than 0.09 * 2^32.
  static constexpr int kMostK = 1024;
  uint32_t low[kSums];
  float rough[kSums];
  __device__ NbitsSums() {
#pragma unroll
    for (int i = 0; i < kSums; ++i) low[i] = 0, rough[i] = 0;
  }
  __device__ void add(int i, int t, int x) {
    low[i] += static_cast<uint32_t>(t) * static_cast<uint32_t>(x);
    rough[i] = __fmaf_rn(__int2float_rn(t), __int2float_rn(x), rough[i]);
  }
  __device__ void joined() {
#pragma unroll
    for (int i = 0; i < kSums; ++i) asm volatile("" : "+r"(low[i]), "+f"(rough[i])::"memory");
  }
  // high: of the thread, in shared memory.
  __device__ void settle(uint32_t high, bool adds) {
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      const uint32_t at = high + i * kWarpgroup * 4;
      const float of_low = __int2float_rn(static_cast<int>(low[i]));
      const int x = __float2int_rn((rough[i] - of_low) * 0x1p-32f);
      store_word(at, adds ? load_word(at) + x : x);
      rough[i] = of_low;
    }
  }
  __device__ int64_t value(uint32_t high, int i) const {
    return (int64_t{load_word(high + i * kWarpgroup * 4)} << 32) + static_cast<int>(low[i]);
  }
};

template <int kBits, int kSub, int kRows, int kGroups>
struct NbitsGemmSizes {
  using Stage = NbitsStage<kBits, kSub, kRows, kGroups, 1>;
  static constexpr int kSums = kRows / 2;
  static constexpr int kHigh = (kSub > 0) ? kSums * kWarpgroup * 4 : 0;  // of a warpgroup's sums
  static constexpr int kMost = ((222 << 10) - kGroups * kHigh) / Stage::kBytes;
  static constexpr int kStages = kMost < 8 ? kMost : 8;
  using Frame =
      ProductFrame<kGroups, kWarpgroup / kWarp, kWarp, kStages, kStages * Stage::kBytes + kGroups * kHigh,
                   kGroups == 3 ? 32 : 40, kGroups == 3 ? 160 : 232, false>;
};

template <int kBits, int kSub, int kRows_, int kGroups_>
struct NbitsGemm : NbitsGemmSizes<kBits, kSub, kRows_, kGroups_>::Frame {
  static constexpr int kRows = kRows_, kGroups = kGroups_;
  using Sizes = NbitsGemmSizes<kBits, kSub, kRows, kGroups>;
  using Stage = typename Sizes::Stage;
  using Frame = typename Sizes::Frame;
  static constexpr int kSums = Sizes::kSums, kHigh = Sizes::kHigh;
  NbitsProduct in;
  ProductTiles tiles;
  __device__ static uint32_t stages() { return Frame::kStages; }
  __device__ static uint32_t stage_bytes() { return Stage::kBytes; }

  // One warp: a lane copies a tile of weights and its factors, another one activations. A tile of
  // weights that does not exist is replaced by the last one; its results are not stored.
  __device__ void produce(Ring ring) const {
    const int lane = threadIdx.x % kWarp;
    if (lane > kGroups) return;
    const bool weights = lane < kGroups;
    const int bytes = Stage::expected(in.zeros != nullptr);
    const int64_t last = ceil_div(in.n, kBlockRows) - 1;
    tiles.for_tiles<false>([&](int, const TileInRuns& tile) {
      const int64_t wanted = int64_t{tile.column} * kGroups + lane, of = wanted < last ? wanted : last;
      const uint8_t* from = weights ? in.block(of, 0, kBits) : in.a.block(0, tile.row, 0);
      const int64_t first_t = of * in.t_rows * kBlockRows, first_sum = tile.row * in.pieces * kRows;
      const int32_t *t = in.t + first_t, *zeros = in.zeros ? in.zeros + first_t : nullptr;
      const int32_t* sums = in.of_a ? in.of_a + first_sum : nullptr;
      int chunks_of_t = 0;
      for (int left = static_cast<int>(in.chunks); left > 0; --left, ring.next()) {
        wait_barrier(ring.empty_now(), ring.phase ^ 1);
        const uint32_t to = ring.stage_now(), full = ring.full_now();
        if (lane == 0) expect_bytes(full, bytes);
        if (weights) {
          copy_bulk(to + lane * Stage::kWeights, from, Stage::kWeights, full);
          from += Stage::kWeights;
        } else {
          copy_bulk(to + Stage::kAtActivations, from, Stage::kActivations, full);
          from += Stage::kActivations;
        }
        if constexpr (kSub > 0) {
          if (weights) {
            copy_bulk(to + Stage::kAtT + lane * Stage::kFactors, t, Stage::kFactors, full);
            if (zeros) copy_bulk(to + Stage::kAtZeros + lane * Stage::kFactors, zeros, Stage::kFactors, full);
            if (kSub > 1 || ++chunks_of_t == in.chunks_per_t) {
              t += kSub * kBlockRows, chunks_of_t = 0;
              if (zeros) zeros += kSub * kBlockRows;
            }
          } else if (sums) {
            copy_bulk(to + Stage::kAtSums, sums, Stage::kSums, full);
            sums += kSub * kRows;
          }
        }
      }
    });
  }

  template <bool kZeros>
  __device__ static void sum_groups(NbitsSums<kSums>& sum, int chunks, Ring& ring, int group) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      wait_barrier(ring.full_now(), ring.phase);
      const uint32_t at = ring.stage_now();
      const uint32_t weights = at + group * Stage::kWeights, factors = at + group * Stage::kFactors;
#pragma unroll 1
      for (int sub = 0; sub < kSub; ++sub) {
        int acc[kRows];
        if constexpr (kSub == 1) {
          multiply_chunk<kBits>(acc, weights, at + Stage::kAtActivations, 0);
        } else {
          multiply_step(acc, std::integral_constant<int, kBits>{}, weights,
                        operand(at + Stage::kAtActivations), sub);
          commit_products();
        }
        wait_products<0>();
        products_ended(acc);
        const uint32_t of = factors + sub * kBlockRows * 4;
        NbitsJoin<kRows>::each(acc, of + Stage::kAtT, of + Stage::kAtZeros,
                               at + Stage::kAtSums + sub * kRows * 4, kZeros,
                               [&](int i, int t, int x) { sum.add(i, t, x); });
        sum.joined();
      }
      Frame::leave(ring.empty_now());
      ring.next();
    }
  }

  __device__ void consume(Ring ring, int group) const {
    __shared__ int2 rows[kGroups][kRows];  // the scale of a row and the sum of its integers
    tiles.for_tiles<false>([&](int, const TileInRuns& tile) {
      const int64_t of = int64_t{tile.column} * kGroups + group;
      const bool exists = of * kBlockRows < in.n;
      const NbitsColumns<kSub == 0> columns(in, exists ? of : 0);
      const int t = threadIdx.x % kWarpgroup;
      const int64_t m = int64_t{tile.row} * kRows + t;
      const bool has_row = t < kRows && m < in.m;
      int2 row{0, 0};
      if (has_row) row.x = in.a.scales[m];
      if (kSub == 0 && has_row && in.zeros) row.y = in.of_a[m];  // K is one piece
      auto store = [&](auto value) {
        sync_warpgroup(group);  // the rows of the tile before have been read
        if (t < kRows) rows[group][t] = row;
        sync_warpgroup(group);
        if (exists) store_tile<kBits, kRows>(in, of, tile.row, rows[group], columns, value);
      };
      if constexpr (kSub == 0) {
        int acc[kRows];
        multiply_chunks<Frame, kBits>(acc, ring, static_cast<int>(in.chunks), group * Stage::kWeights,
                                      Stage::kAtActivations);
        if (in.zeros)
          store([&](int q, int of_row) {
            int64_t v = int64_t{-columns.tz[q / 2 % 2]} * of_row;
            add_product(v, columns.t[q / 2 % 2], acc[kSums + q]);
            add_product(v, columns.t[q / 2 % 2] << 8, acc[q]);
            return v;
          });
        else
          store([&](int q, int) {
            int64_t v = int64_t{columns.t[q / 2 % 2]} * acc[kSums + q];
            add_product(v, columns.t[q / 2 % 2] << 8, acc[q]);
            return v;
          });
      } else {
        constexpr int kMost = NbitsSums<kSums>::kMostK / kBlockK;
        const uint32_t high = ring.memory + Frame::kStages * Stage::kBytes + group * kHigh + t * 4;
        const int chunks = static_cast<int>(in.chunks);
        NbitsSums<kSums> sum;
        for (int first = 0; first < chunks; first += kMost) {
          const int count = chunks - first < kMost ? chunks - first : kMost;
          if (in.zeros)
            sum_groups<true>(sum, count, ring, group);
          else
            sum_groups<false>(sum, count, ring, group);
          sum.settle(high, first > 0);
        }
        store([&](int q, int) { return sum.value(high, q); });
      }
    });
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
