// Selects the kernel of an exact16 product: tuning, by the shape alone (matmul_exact16.3).
#pragma once
#include "kernels/forced_route.h"
#include "ops/matmul/cuda/exact16/layout.cuh"

namespace invar::ops::INVAR_ISA_NS {

enum class ExactRoute { automatic, gemv, gemm, mma, plain };
constexpr int kExactRoutes = 5;

// The work of the kernels of few rows. Units: chunks of k, in tiles of `height` rows of weights and
// of the rows of all warpgroups.
struct GemvWork : EvenShares {
  int row_blocks, chunks, units;
  uint32_t* counters;  // of a block and warpgroup: finished parts of the tile that begins last there
  int64_t* sums;       // of a block and warpgroup: what it has of its first and of its last tile
  int rows, groups;    // of a warpgroup; warpgroups
  int height, grid;
  int units_ahead;  // to bring into the L2 cache behind those in the ring
};

namespace {

void set_grid(GemvWork& w, int64_t tiles, int64_t grid) {
  w.units = static_cast<int>(tiles * w.chunks), w.grid = static_cast<int>(grid);
  w.each = w.units / w.grid, w.longer = w.units % w.grid;
}
// Cuts tiles evenly over at most `most` blocks.
void cut_evenly(GemvWork& w, int64_t tiles, int64_t most) {
  const int64_t units = tiles * w.chunks;
  int64_t grid = most < units ? most : units;
  // Whole tiles, or whole parts of each, where that leaves few multiprocessors without work.
  for (int64_t g = grid; 20 * g >= 17 * most; --g)
    if (tiles % g == 0 || g % tiles == 0) {
      grid = g;
      break;
    }
  set_grid(w, tiles, grid);
}
GemvWork gemv_work(const matmul::Shape& s, int64_t multiprocessors) {
  GemvWork w{};
  w.groups = s.m > kBlockRows ? 2 : 1;
  w.height = kBlockRows;
  w.rows = 8;
  while (w.rows < kBlockRows && w.rows < s.m) w.rows *= 2;
  const int64_t row_blocks = ceil_div(s.m, int64_t{w.rows} * w.groups), chunks = ceil_div(s.k, kBlockK);
  const int64_t tiles = ceil_div(s.n, kBlockRows) * row_blocks;
  if (tiles * chunks > INT32_MAX) return w;  // units = 0: it does not fit
  w.row_blocks = static_cast<int>(row_blocks), w.chunks = static_cast<int>(chunks);
  cut_evenly(w, tiles, multiprocessors);
  return w;
}
// What a launch of few rows brings into the L2 cache while kernels ahead of it run.
constexpr int64_t kBytesAhead = 16 << 20;

// The same in the highest tiles of which nearly all multiprocessors have a whole number: no block
// waits for the sums of others. Each tile reads all activations, and each of its chunks takes a
// while: tiles of 32 rows lose to parts of K on an H200, and of 48 where there are 64 rows.
GemvWork gemv_work_in_strips(const matmul::Shape& s, int64_t multiprocessors) {
  const GemvWork in_blocks = gemv_work(s, multiprocessors);
  GemvWork best = in_blocks;
  if (best.units == 0 || best.rows > 32) return best;
  int64_t best_grid = multiprocessors * 9 / 10;
  for (int height = kBlockRows; height >= (best.rows <= 16 ? 40 : 48); height -= 8) {
    const int64_t tiles = ceil_div(ceil_div(s.n, kBlockRows) * kBlockRows, height);
    if (tiles * best.chunks > INT32_MAX) break;
    for (int64_t grid = multiprocessors; grid > best_grid; --grid) {
      if (tiles % grid != 0) continue;
      best_grid = grid;
      best = in_blocks, best.height = height;
      set_grid(best, tiles, grid);
    }
  }
  const int64_t bytes = int64_t{best.grid} * best.height * 2 * kBlockK;  // of a unit of each block
  best.units_ahead = static_cast<int>(kBytesAhead / bytes);
  return best;
}
int64_t gemv_counters(const GemvWork& w) {
  return ceil_div(int64_t{w.grid} * w.groups, 64) * 64;
}
// Of its sums.
size_t gemv_bytes(const GemvWork& w) {
  const int64_t sums = int64_t{w.grid} * w.groups * 2 * (w.rows / 2) * 128;
  return static_cast<size_t>(sums) * sizeof(int64_t);
}

// What the calling thread's device and this build have.
struct ExactKernels {
  bool hopper, mma;
  int64_t multiprocessors;
};

ExactRoute select_exact(const matmul::Shape& s, const ExactKernels& has, int forced) {
  const int64_t tiles = ceil_div(s.m, 128) * ceil_div(s.n, 128);
  const bool hopper = has.hopper && s.k <= kBlocksToJoin * kBlockK && tiles * s.batches <= INT32_MAX;
  const auto fits = [&](ExactRoute r) {
    if (r == ExactRoute::gemv) return hopper && s.batches == 1 && gemv_work(s, has.multiprocessors).units > 0;
    if (r == ExactRoute::gemm) return hopper;
    return r == ExactRoute::plain || (r == ExactRoute::mma && has.mma);
  };
  const auto route = static_cast<ExactRoute>(forced % kExactRoutes);
  if (route != ExactRoute::automatic && fits(route)) return route;
  // Tiles of 128 x 128 that leave multiprocessors without work lose to evenly cut chunks.
  const int64_t waves = ceil_div(tiles, has.multiprocessors);
  const bool narrow = 4 * tiles < 3 * waves * has.multiprocessors && waves <= 2;
  if ((s.m <= 2 * kBlockRows || narrow) && fits(ExactRoute::gemv)) return ExactRoute::gemv;
  if (hopper) return ExactRoute::gemm;
  return has.mma ? ExactRoute::mma : ExactRoute::plain;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
