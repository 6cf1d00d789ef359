// Selects the kernel of a grouped exact16 product: tuning, by the shape alone
// (grouped_matmul_exact16.3).
#pragma once
#include "kernels/forced_route.h"
#include "ops/matmul/cuda/exact16/grouped/product.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

enum class GroupedExactRoute { automatic, gemv, gemm, mma, plain };
constexpr int kGroupedExactRoutes = 5;

struct GroupedChoice {
  GroupedExactRoute route;
  int height;  // of tiles of rows
};

// Tiles of few rows: as high as most matrices need, since each tile reads its weights again.
int gemv_height(int64_t rows, int64_t groups) {
  if (rows <= 2 * groups) return 8;
  if (rows <= 8 * groups) return 16;
  return rows <= 20 * groups ? 32 : 64;
}
// hopper, mma: what the calling thread's device and this build have.
GroupedChoice select_grouped(int64_t rows, int64_t groups, int64_t k, bool hopper, bool mma, int forced) {
  hopper = hopper && k <= kBlocksToJoin * kBlockK;
  auto route = static_cast<GroupedExactRoute>(forced % kGroupedExactRoutes);
  const bool of_hopper = route == GroupedExactRoute::gemv || route == GroupedExactRoute::gemm;
  if ((of_hopper && !hopper) || (route == GroupedExactRoute::mma && !mma))
    route = GroupedExactRoute::automatic;
  if (route == GroupedExactRoute::automatic) {
    if (hopper)
      route = rows > 2 * groups ? GroupedExactRoute::gemm : GroupedExactRoute::gemv;
    else
      route = mma ? GroupedExactRoute::mma : GroupedExactRoute::plain;
  }
  if (route == GroupedExactRoute::gemm) return {route, kTallestTile};
  return {route, route == GroupedExactRoute::gemv ? gemv_height(rows, groups) : kBlockRows};
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
