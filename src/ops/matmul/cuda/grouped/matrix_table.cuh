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

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
