// Selects the kernel of a product and the splits of K: tuning, by the shape alone (matmul.3).
#pragma once
#include "kernels/forced_route.h"
#include "num/contract/schedule.h"
#include "ops/matmul/matmul.h"

namespace invar::ops::matmul {

enum class Route { automatic, gemv, large, small, large_segments, small_segments, small_chains, largest };
constexpr int kRoutes = 8;

struct KernelChoice {
  Route route;
  int64_t splits, chains;  // of K, and the chains of each split
};

// Tiles: rows, columns, resident CTAs per SM.
constexpr int64_t kLargestTile[3] = {128, 128, 2}, kLargeTile[3] = {64, 128, 2}, kSmallTile[3] = {32, 64, 4};
constexpr int64_t kGemvRows = 32;

inline int64_t tiles_of(const Shape& s, const int64_t (&tile)[3]) {
  return (s.m + tile[0] - 1) / tile[0] * ((s.n + tile[1] - 1) / tile[1]) * s.batches;
}

// gemv_fits: whether the GEMV kernel can take the product.
inline KernelChoice select_kernel(const Shape& s, bool gemv_fits, int64_t multiprocessors, int forced) {
  const int64_t nb = num::contraction_blocks(s.k), segments = num::segments_in_use(s.k);
  auto route = static_cast<Route>(forced % kRoutes);
  if (route == Route::gemv && !gemv_fits) route = Route::automatic;
  if (route == Route::automatic) {
    const int64_t large = tiles_of(s, kLargeTile), small = tiles_of(s, kSmallTile);
    const int64_t resident = kSmallTile[2] * multiprocessors;
    // Waves of blocks. The largest tiles take 15/16 of twice the time of large ones.
    auto waves = [&](const int64_t(&tile)[3]) {
      return (tiles_of(s, tile) + tile[2] * multiprocessors - 1) / (tile[2] * multiprocessors);
    };
    // If a last wave of large tiles leaves one on each multiprocessor and there are few waves, the
    // GEMV kernel takes 0.83 to 0.97 of their time (64 rows of 6144 and 14336 x 4096, H200).
    auto has_thin_tail = [&](int64_t tiles) {
      const int64_t rest = tiles % (kLargeTile[2] * multiprocessors);
      return gemv_fits && s.m <= kLargeTile[0] && tiles < 2 * kLargeTile[2] * multiprocessors && rest > 0 &&
             rest <= multiprocessors;
    };
    if (gemv_fits && s.m <= kGemvRows)
      route = Route::gemv;
    else if (s.m > kLargeTile[0] && 30 * waves(kLargestTile) <= 16 * waves(kLargeTile))
      route = Route::largest;
    // One large tile on most multiprocessors beats small ones on all (1024^3: 1.2 times).
    else if (4 * large >= 3 * multiprocessors)
      route = has_thin_tail(large) ? Route::gemv : Route::large;
    else if (small >= resident || nb < 4)
      route = Route::small;
    else if (8 * large * segments >= 7 * kLargeTile[2] * multiprocessors && s.m > kSmallTile[0])
      route = has_thin_tail(large * segments) ? Route::gemv : Route::large_segments;
    else if (small * segments >= resident || nb == segments || small * nb > 16 * resident)
      route = Route::small_segments;
    else
      route = Route::small_chains;
  }
  KernelChoice c{route, 1, nb};
  if (route == Route::large_segments || route == Route::small_segments)
    c.splits = segments, c.chains = num::blocks_per_segment(s.k);
  if (route == Route::small_chains) c.splits = nb, c.chains = 1;
  if (c.splits < 2) c.splits = 1, c.chains = nb;
  return c;
}

}  // namespace invar::ops::matmul
