// The grouped product of few rows of each matrix on Hopper: weights are the operand of 64 rows,
// activations the other, h and l plane stacked, so each weight that is chosen is read once. The
// blocks of weights are cut evenly over the multiprocessors; the parts of a tile meet as 64-bit
// integers (exact16.6).
#pragma once
#include "ops/matmul/cuda/exact16/gemv_parts.cuh"
#include "ops/matmul/cuda/exact16/grouped/product.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int grouped_gemv_stage(int rows) {
  return 2 * kPlane + 2 * rows * kBlockK;
}

template <int kRows>
struct GroupedGemv
    : ProductFrame<1, 1, 1, gemv_stages(grouped_gemv_stage(kRows), 12),
                   gemv_stages(grouped_gemv_stage(kRows), 12) * grouped_gemv_stage(kRows), 0, 0, false> {
  static constexpr int kActivations = 2 * kRows * kBlockK;  // bytes
  static constexpr int kSums = kRows / 2;                   // of a thread
  GroupedExact in;
  __device__ static uint32_t stages() { return GroupedGemv::kStages; }
  __device__ static uint32_t stage_bytes() { return grouped_gemv_stage(kRows); }

  struct KSpan {
    GroupedItem item;
    int chunk, end, unit;  // chunks of this block; the first among those that are shared out
    __device__ bool is_whole(int chunks) const { return end - chunk == chunks; }
  };
  // Calls f(span) for the items and parts of items of this block.
  template <class Fn>
  __device__ void for_spans(const GroupedWork& w, Fn f) const {
    if (static_cast<int>(blockIdx.x) >= w.grid) return;
    const int columns = in.column_end[in.products - 1];
    for (int i = 0; i < w.rounds; ++i)
      f(KSpan{grouped_item(in, i * w.grid + static_cast<int>(blockIdx.x), columns), 0, in.chunks, 0});
    const int last = w.first_unit(blockIdx.x + 1);
    for (int unit = w.first_unit(blockIdx.x); unit < last;) {
      const int chunk = unit % in.chunks, rest = last - unit;
      const int end = rest < in.chunks - chunk ? chunk + rest : in.chunks;
      f(KSpan{grouped_item(in, w.rounds * w.grid + unit / in.chunks, columns), chunk, end, unit});
      unit += end - chunk;
    }
  }

  __device__ void produce(Ring ring) const {
    for_spans(*in.work, [&](const KSpan& span) {
      const GroupedColumn of = column_at(in, in.column_end, span.item.column);
      const uint8_t* matrix = matrix_of(in, of.product, in.tiles[span.item.tile].matrix);
      const uint8_t* b = block_of_matrix(in, matrix, of.column) + int64_t{span.chunk} * (2 * kPlane);
      const uint8_t* a = in.a.block(0, span.item.tile, span.chunk);
      for (int left = span.end - span.chunk; left > 0; --left, a += kActivations, b += 2 * kPlane) {
        wait_barrier(ring.empty_now(), ring.phase ^ 1);
        const uint32_t to = ring.stage_now(), full = ring.full_now();
        expect_bytes(full, stage_bytes());
        copy_bulk(to, b, 2 * kPlane, full);
        copy_bulk(to + 2 * kPlane, a, kActivations, full);
        ring.next();
      }
    });
  }

  __device__ bool join_parts(const GroupedWork& w, int unit, int64_t (&sum)[kSums]) const {
    const int begin = unit / in.chunks * in.chunks;
    return GemvParts<kRows, 1>::join(w.block_of(begin), w.block_of(begin + in.chunks - 1), in.sums,
                                     in.counters, 0, sum);
  }

  // The rows of a tile and their scales.
  struct Rows {
    int32_t row[kRows], scale[kRows];
  };
  // Where a thread's results are stored, and the scales of their columns.
  struct Columns {
    float* out;
    int64_t n, first;  // the thread's first column; its other one is 8 behind
    int32_t scale[2];
  };
  __device__ Columns columns(const GroupedItem& item, int matrix) const {
    const GroupedColumn of = column_at(in, in.column_end, item.column);
    const int64_t first =
        int64_t{of.column} * kBlockRows + threadIdx.x / kWarp * 16 + threadIdx.x % kWarp / 4;
    const int32_t* scales = scales_of_matrix(in, of.product, matrix) + first;  // of all columns of a tile
    return {in.out[of.product], in.n[of.product], first, {scales[0], scales[8]}};
  }
  __device__ static void store(const Columns& to, const Rows& rows, int count, const int64_t (&sum)[kSums]) {
#pragma unroll
    for (int j = 0; j < kRows / 8; ++j)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int at = 8 * j + threadIdx.x % 4 * 2 + i;
        if (at >= count) continue;
        const int32_t row = rows.row[at], ea = rows.scale[at];
#pragma unroll
        for (int half = 0; half < 2; ++half)
          if (to.first + 8 * half < to.n)
            store_grouped(to.out, to.n, row, to.first + 8 * half,
                          exact_result(sum[4 * j + 2 * half + i], ea, to.scale[half]));
      }
  }

  __device__ void consume(Ring ring, int) const {
    __shared__ Rows rows;
    const int t = threadIdx.x;
    const GroupedWork w = *in.work;
    for_spans(w, [&](const KSpan& span) {
      const GroupedTile tile = in.tiles[span.item.tile];
      const Columns to = columns(span.item, tile.matrix);
      const int slot = span.item.tile * kRows + t;
      const bool has_row = t < kRows && t < tile.rows;
      const int32_t row = has_row ? in.row[slot] : 0, scale = has_row ? in.a.scales[slot] : 0;
      StackedSums<kRows> sums;
      this->multiply_stages(ring, span.end - span.chunk, [&](uint32_t at, int) {
        sums.multiply(operand(at), operand(at + kPlane), operand(at + 2 * kPlane));
      });
      sync_warpgroup(0);  // those of the span before have been read
      if (t < kRows) rows.row[t] = row, rows.scale[t] = scale;
      sync_warpgroup(0);
      int64_t sum[kSums];
      sums.join(sum);
      if (span.is_whole(in.chunks) || join_parts(w, span.unit, sum)) store(to, rows, tile.rows, sum);
    });
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
