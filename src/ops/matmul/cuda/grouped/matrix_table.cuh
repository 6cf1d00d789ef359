// The matrices of grouped products, as their kernels are given them.
#pragma once
#include "kernels/cuda/launch.h"
#include "ops/matmul/matmul.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using matmul::GroupedShape;
using matmul::kFirstMatrix;
using matmul::kMostMatrices;

constexpr int kMostStacks = 4;  // products of one kernel
// Where the matrices of products begin: each product's `groups` separate operands, one product
// after another; or the stack of each product, which may have any number of matrices.
struct MatrixTable {
  const void* at[kMostMatrices];
  int64_t bytes[kMostStacks];  // from one matrix of a product's stack to the next
  int64_t groups;
  bool stacked;
  int count;  // of operands
  // Adds an operand: a matrix, or a stack whose matrices are `bytes_each` apart.
  void add(const void* operand, int64_t bytes_each) {
    if (stacked) checked(bytes, count) = bytes_each;
    checked(at, count++) = operand;
  }
  __device__ const void* matrix(int product, int64_t g) const {
    return stacked ? static_cast<const char*>(at[product]) + g * bytes[product] : at[product * groups + g];
  }
};
inline MatrixTable empty_table(const GroupedShape& s) {
  MatrixTable table{};
  table.groups = s.groups, table.stacked = s.stacked;
  return table;
}

// How many entries a list of all matrices has in memory, and whether what is counted of each matrix
// fits a block's shared memory.
inline int64_t matrices_listed(const GroupedShape& s) {
  return s.groups > kMostMatrices ? s.groups : kMostMatrices;
}
inline bool counts_fit_block(const GroupedShape& s) {
  return s.groups <= kMostMatrices;
}

// The first tile of each matrix, and behind them the number of all, where a tile has `height` rows;
// a warp, each lane for its run of matrices.
__device__ inline void number_tiles(const unsigned* rows, int groups, int height, int* first_tile) {
  const int lane = threadIdx.x, per = (groups + kWarp - 1) / kWarp;
  const int begin = min(lane * per, groups), end = min(begin + per, groups);
  auto tiles = [&](int g) { return (static_cast<int>(rows[g]) + height - 1) / height; };
  int own = 0;
  for (int g = begin; g < end; ++g) own += tiles(g);
  int before = own;  // up to this lane's last
  for (int step = 1; step < kWarp; step *= 2) {
    const int below = __shfl_up_sync(kFullWarp, before, step);
    if (lane >= step) before += below;
  }
  if (lane == kWarp - 1) first_tile[groups] = before;
  before -= own;
  for (int g = begin; g < end; ++g) first_tile[g] = before, before += tiles(g);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
