// The product of many rows on Hopper: 128 x 128 results of two warpgroups, the three sums of 32
// bits in registers.
#pragma once
#include <type_traits>

#include "ops/matmul/cuda/hopper_product.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kGemmTile = 128;
constexpr int kGemmStage = 8 * kPlane;  // h and l of a's first and second 64 rows; h of b, l of b
struct GemmTile {
  int batch, row, column, product;  // the column is one of the product
};

// scales_b: of the tile's columns. kUsual: these and those of the rows are usual_scale().
template <bool kAdds, bool kUsual>
__device__ inline void store_gemm(const ExactTogether& in, const GemmTile& tile, int group,
                                  const int32_t (&scale)[2], const int32_t* scales_b,
                                  const PlaneSums<kGemmTile>& sums) {
  const ExactTogether::One& one = in.of[tile.product];
  const int t = threadIdx.x % kWarpgroup, lane = t % kWarp;
  const int64_t row = int64_t{tile.row} * kGemmTile + group * kBlockRows + t / kWarp * 16 + lane / 4;
  const int64_t column = int64_t{tile.column} * kGemmTile + lane % 4 * 2;
  const int64_t first = (tile.batch * in.s.m + row) * one.n + column;
  float* out = one.out + first;
  const int rows_left = static_cast<int>(in.s.m - row < 16 ? in.s.m - row : 16);
  const int columns_left = static_cast<int>(one.n - column < kGemmTile ? one.n - column : kGemmTile);
  const bool pairs =
      one.n % 2 == 0 &&
      (reinterpret_cast<uintptr_t>(one.out) | reinterpret_cast<uintptr_t>(one.addend)) % 8 == 0;
  // The results of two columns in two rows: rows 8 apart.
  auto results = [&](int j, float2(&y)[2]) {
    const int2 e = *reinterpret_cast<const int2*>(scales_b + 8 * j + lane % 4 * 2);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int q = 4 * j + 2 * half;
      const int64_t x[2] = {sums.value(q), sums.value(q + 1)};
      y[half].x = kUsual ? usual_result(x[0], scale[half], e.x) : exact_result(x[0], scale[half], e.x);
      y[half].y = kUsual ? usual_result(x[1], scale[half], e.y) : exact_result(x[1], scale[half], e.y);
    }
  };
  // All loads of a step come before its stores, over which the compiler does not move them.
  constexpr int kStep = kAdds ? 4 : 1;
#pragma unroll
  for (int first_j = 0; first_j < kGemmTile / 8; first_j += kStep) {
    float2 x[kStep][2];
#pragma unroll
    for (int i = 0; kAdds && i < 2 * kStep; ++i) {
      const int j = first_j + i / 2, half = i % 2;
      const bool inside = 8 * half < rows_left && 8 * j < columns_left;
      const float* from = one.addend + first + half * 8 * one.n + 8 * j;
      x[i / 2][half] = make_float2(0, 0);
      if (pairs && inside) x[i / 2][half] = *reinterpret_cast<const float2*>(from);
      if (!pairs && inside) x[i / 2][half].x = from[0];
      if (!pairs && inside && 8 * j + 1 < columns_left) x[i / 2][half].y = from[1];
    }
#pragma unroll
    for (int j = first_j; j < first_j + kStep; ++j) {
      float2 y[2];
      results(j, y);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (kAdds) y[half].x = with_addend(y[half].x, x[j - first_j][half].x);
        if (kAdds) y[half].y = with_addend(y[half].y, x[j - first_j][half].y);
        float* to = out + half * 8 * one.n + 8 * j;
        const bool inside = 8 * half < rows_left && 8 * j < columns_left;
        if (pairs && inside) *reinterpret_cast<float2*>(to) = y[half];
        if (!pairs && inside) to[0] = y[half].x;
        if (!pairs && inside && 8 * j + 1 < columns_left) to[1] = y[half].y;
      }
    }
  }
}

struct ExactGemm : ProductFrame<2, 1, 1, 3, 3 * kGemmStage, 40, 232, false> {
  ExactTogether in;
  ProductTiles tiles;  // of all products
  __device__ static uint32_t stages() { return kStages; }
  __device__ static uint32_t stage_bytes() { return kGemmStage; }
  template <class Fn>
  __device__ void for_tiles(Fn f) const {
    tiles.for_tiles<true>([&](int batch, const TileInRuns& at) {
      const int product = product_of(in, at.column);
      f(GemmTile{batch, at.row, at.column - in.of[product].first, product}, matrices_of(in.s, batch));
    });
  }

  // A tile of 64 rows that does not exist is replaced by the one before it; its results are not
  // stored.
  __device__ void produce(Ring ring) const {
    for_tiles([&](const GemmTile& tile, const MatrixPair& of) {
      const ExactTogether::One& one = in.of[tile.product];
      const int64_t a0 = 2 * int64_t{tile.row}, b0 = 2 * int64_t{tile.column};
      const uint8_t *a = in.a.block(of.a, a0, 0), *b = one.b.block(of.b, b0, 0);
      const int64_t second_a = a0 + 1 < in.a.tiles ? in.a.chunks * 2 * kPlane : 0;
      const int64_t second_b = b0 + 1 < one.b.tiles ? in.a.chunks * 2 * kPlane : 0;
      for (int left = static_cast<int>(in.a.chunks); left > 0; --left, a += 2 * kPlane, b += 2 * kPlane) {
        wait_barrier(ring.empty_now(), ring.phase ^ 1);
        const uint32_t to = ring.stage_now(), full = ring.full_now();
        expect_bytes(full, kGemmStage);
        copy_bulk(to, a, 2 * kPlane, full);
        copy_bulk(to + 2 * kPlane, a + second_a, 2 * kPlane, full);
        copy_bulk(to + 4 * kPlane, b, kPlane, full);
        copy_bulk(to + 5 * kPlane, b + second_b, kPlane, full);
        copy_bulk(to + 6 * kPlane, b + kPlane, kPlane, full);
        copy_bulk(to + 7 * kPlane, b + second_b + kPlane, kPlane, full);
        ring.next();
      }
    });
  }
  __device__ void consume(Ring ring, int group) const {
    __shared__ int32_t scales_b[2][kGemmTile];
    const int t = threadIdx.x % kWarpgroup;
    for_tiles([&](const GemmTile& tile, const MatrixPair& of) {
      const int64_t row = int64_t{tile.row} * kGemmTile + group * kBlockRows + t / kWarp * 16 + t % kWarp / 4;
      const int64_t column = int64_t{tile.column} * kGemmTile + t;
      const ExactTogether::One& one = in.of[tile.product];
      const int32_t *ea = in.a.scales_of(of.a), *eb = one.b.scales_of(of.b);
      const int32_t scale[2] = {row < in.s.m ? ea[row] : 0, row + 8 < in.s.m ? ea[row + 8] : 0};
      const int32_t scale_b = column < one.n ? eb[column] : 0;
      PlaneSums<kGemmTile> sums;
      multiply_stages(ring, static_cast<int>(in.a.chunks), [&](uint32_t at, int) {
        const uint32_t a = at + group * 2 * kPlane;
        sums.multiply(operand(a), operand(a + kPlane), operand(at + 4 * kPlane), operand(at + 6 * kPlane));
      });
      sync_warpgroup(group);  // the scales of the tile before have been read
      scales_b[group][t] = scale_b;
      const bool usual =
          all_in_warpgroup(group, usual_scale(scale_b) && usual_scale(scale[0]) && usual_scale(scale[1]));
      auto store = [&](auto adds, auto usual) {
        store_gemm<adds(), usual()>(in, tile, group, scale, scales_b[group], sums);
      };
      if (one.addend)
        usual ? store(std::true_type{}, std::true_type{}) : store(std::true_type{}, std::false_type{});
      else
        usual ? store(std::false_type{}, std::true_type{}) : store(std::false_type{}, std::false_type{});
    });
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
