// Which kernel a GPU runs for a product, and how K is parted: tuning, decided by the shape alone (matmul.3).
#pragma once
#include "num/contract/schedule.h"
#include "ops/matmul/matmul.h"
#include "kernels/forced_route.h"

namespace invar::ops::matmul {

enum class Route { automatic, few_rows, large, small, large_segments, small_segments, small_chains, largest };
constexpr int kRoutes = 8;

struct Choice {
  Route route;
  int64_t parts, blocks;  // of K, and the chains of each part
};

// Tiles: rows, columns, how many a processor holds at once.
constexpr int64_t kLargestTile[3] = {128, 128, 2}, kLargeTile[3] = {64, 128, 2}, kSmallTile[3] = {32, 64, 4};
constexpr int64_t kFewRows = 32;

inline int64_t tiles_of(const Shape& s, const int64_t (&tile)[3]) {
  return (s.m + tile[0] - 1) / tile[0] * ((s.n + tile[1] - 1) / tile[1]) * s.batches;
}

// few: whether the kernel of few rows can take it.
inline Choice choose(const Shape& s, bool few, int64_t processors, int forced) {
  const int64_t nb = num::contraction_blocks(s.k), segments = num::segments_in_use(s.k);
  auto route = static_cast<Route>(forced % kRoutes);
  if (route == Route::few_rows && !few) route = Route::automatic;
  if (route == Route::automatic) {
    const int64_t large = tiles_of(s, kLargeTile), small = tiles_of(s, kSmallTile);
    const int64_t room = kSmallTile[2] * processors;
    // Turns of all processors. The largest tiles take 15/16 of twice the time of large ones.
    auto turns = [&](const int64_t(&tile)[3]) {
      return (tiles_of(s, tile) + tile[2] * processors - 1) / (tile[2] * processors);
    };
    // Where a last turn of large tiles leaves each alone on its processor and there are few turns, the kernel of few rows takes
    // 0.83 to 0.97 of their time (64 rows of 6144 and 14336 x 4096, H200).
    auto ends_lonely = [&](int64_t tiles) {
      const int64_t rest = tiles % (kLargeTile[2] * processors);
      return few && s.m <= kLargeTile[0] && tiles < 2 * kLargeTile[2] * processors && rest > 0 &&
             rest <= processors;
    };
    if (few && s.m <= kFewRows)
      route = Route::few_rows;
    else if (s.m > kLargeTile[0] && 30 * turns(kLargestTile) <= 16 * turns(kLargeTile))
      route = Route::largest;
    else if (4 * large >=
             3 * processors)  // one on most processors beats small ones on all (1024^3: 1.2 times)
      route = ends_lonely(large) ? Route::few_rows : Route::large;
    else if (small >= room || nb < 4)
      route = Route::small;
    else if (8 * large * segments >= 7 * kLargeTile[2] * processors && s.m > kSmallTile[0])
      route = ends_lonely(large * segments) ? Route::few_rows : Route::large_segments;
    else if (small * segments >= room || nb == segments || small * nb > 16 * room)
      route = Route::small_segments;
    else
      route = Route::small_chains;
  }
  Choice c{route, 1, nb};
  if (route == Route::large_segments || route == Route::small_segments)
    c.parts = segments, c.blocks = num::blocks_per_segment(s.k);
  if (route == Route::small_chains) c.parts = nb, c.blocks = 1;
  if (c.parts < 2) c.parts = 1, c.blocks = nb;
  return c;
}

}  // namespace invar::ops::matmul
