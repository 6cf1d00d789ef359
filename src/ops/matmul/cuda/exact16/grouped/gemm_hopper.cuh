// The grouped product of many rows on Hopper: 128 columns of two warpgroups, as the operand of 64
// rows of each, by a tile's rows. A tile has as many rows as it needs, in steps of 16; the three
// sums of 32 bits are in registers.
#pragma once
#include <type_traits>

#include "ops/matmul/cuda/exact16/grouped/product.h"
#include "ops/matmul/cuda/hopper_product.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kGroupedStage = 4 * kPlane + 2 * kTallestTile * kBlockK;  // h and l of 64 columns, twice; h, l
constexpr int kRowStep = 16;

__device__ inline int rows_in_steps(int rows) {
  return (rows + kRowStep - 1) / kRowStep * kRowStep;
}
// Where an item's blocks begin. A tile of columns that does not exist is replaced by the one before
// it; its results are not stored.
struct GroupedSource {
  const uint8_t *a, *b;
  int64_t second;  // bytes from b to the second tile of columns
  uint32_t bytes;  // of a plane of a
};
__device__ inline GroupedSource grouped_source(const GroupedExact& in, const GroupedItem& item) {
  const GroupedTile tile = in.tiles[item.tile];
  const GroupedColumn of = column_at(in, in.pair_end, item.column);
  const bool two = 2 * of.column + 1 < columns_of(in, of.product);
  return {
      in.a.block(0, item.tile, 0), block_of_matrix(in, matrix_of(in, of.product, tile.matrix), 2 * of.column),
      two ? int64_t{in.chunks} * (2 * kPlane) : 0, static_cast<uint32_t>(rows_in_steps(tile.rows)) * kBlockK};
}

// The rows of a tile and their scales, for a warpgroup's epilogue.
struct GroupedRows {
  int32_t row[kTallestTile], scale[kTallestTile];
};

struct GroupedGemm : ProductFrame<2, 1, 1, 3, 3 * kGroupedStage, 40, 232, false> {
  GroupedExact in;
  __device__ static uint32_t stages() { return kStages; }
  __device__ static uint32_t stage_bytes() { return kGroupedStage; }
  template <class Fn>
  __device__ void for_items(Fn f) const {
    const int pairs = in.pair_end[in.products - 1], all = in.work->tiles * pairs;
    for (int i = blockIdx.x; i < all; i += gridDim.x) f(grouped_item(in, i, pairs));
  }

  __device__ void produce(Ring ring) const {
    for_items([&](const GroupedItem& item) {
      GroupedSource from = grouped_source(in, item);
      for (int left = in.chunks; left > 0; --left) {
        wait_barrier(ring.empty_now(), ring.phase ^ 1);
        const uint32_t to = ring.stage_now(), full = ring.full_now();
        expect_bytes(full, 4 * kPlane + 2 * from.bytes);
        copy_bulk(to, from.b, 2 * kPlane, full);
        copy_bulk(to + 2 * kPlane, from.b + from.second, 2 * kPlane, full);
        copy_bulk(to + 4 * kPlane, from.a, from.bytes, full);
        copy_bulk(to + 4 * kPlane + kTallestTile * kBlockK, from.a + kTallestTile * kBlockK, from.bytes,
                  full);
        ring.next();
        from.a += 2 * kTallestTile * kBlockK, from.b += 2 * kPlane;
      }
    });
  }

  // An item's products by one warpgroup, and their results. kRows: those of the tile, in steps.
  template <int kRows>
  __device__ void consume_item(const GroupedItem& item, const GroupedTile& tile, Ring& ring, int group,
                               GroupedRows& rows) const {
    const int t = threadIdx.x % kWarpgroup, lane = t % kWarp;
    const GroupedColumn of = column_at(in, in.pair_end, item.column);
    const int64_t n = in.n[of.product];
    const int64_t n0 = (int64_t{of.column} * 2 + group) * kBlockRows + t / kWarp * 16 + lane / 4;
    const int32_t* scales = scales_of_matrix(in, of.product, tile.matrix);
    const int32_t eb[2] = {n0 < n ? scales[n0] : 0, n0 + 8 < n ? scales[n0 + 8] : 0};
    const int64_t slot = int64_t{item.tile} * kTallestTile + t;
    const int32_t row = t < tile.rows ? in.row[slot] : 0, scale = t < tile.rows ? in.a.scales[slot] : 0;
    PlaneSums<kRows> sums;
    multiply_stages(ring, in.chunks, [&](uint32_t at, int) {
      const uint32_t w = at + group * 2 * kPlane, x = at + 4 * kPlane;
      sums.multiply(operand(w), operand(w + kPlane), operand(x), operand(x + kTallestTile * kBlockK));
    });
    sync_warpgroup(group);  // those of the item before have been read
    rows.row[t] = row, rows.scale[t] = scale;
    auto store = [&](auto usual) {
#pragma unroll
      for (int j = 0; j < kRows / 8; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int at = 8 * j + lane % 4 * 2 + i;
          if (at >= tile.rows) continue;
          const int32_t to = rows.row[at], ea = rows.scale[at];
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int64_t sum = sums.value(4 * j + 2 * half + i);
            const float y = usual() ? usual_result(sum, ea, eb[half]) : exact_result(sum, ea, eb[half]);
            if (n0 + 8 * half < n) store_grouped(in.out[of.product], n, to, n0 + 8 * half, y);
          }
        }
    };
    if (all_in_warpgroup(group, usual_scale(scale) && usual_scale(eb[0]) && usual_scale(eb[1])))
      store(std::true_type{});
    else
      store(std::false_type{});
  }
  __device__ void consume(Ring ring, int group) const {
    __shared__ GroupedRows rows[2];
    for_items([&](const GroupedItem& item) {
      const GroupedTile tile = in.tiles[item.tile];
      switch (rows_in_steps(tile.rows) / kRowStep) {
        case 1: consume_item<16>(item, tile, ring, group, rows[group]); break;
        case 2: consume_item<32>(item, tile, ring, group, rows[group]); break;
        case 3: consume_item<48>(item, tile, ring, group, rows[group]); break;
        case 4: consume_item<64>(item, tile, ring, group, rows[group]); break;
        case 5: consume_item<80>(item, tile, ring, group, rows[group]); break;
        case 6: consume_item<96>(item, tile, ring, group, rows[group]); break;
        case 7: consume_item<112>(item, tile, ring, group, rows[group]); break;
        default: consume_item<128>(item, tile, ring, group, rows[group]);
      }
    });
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
