// The rows of a grouped product that choose one matrix. Compiled once per instruction set.
#pragma once
#include "kernels/call.h"
#include "ops/matmul/matmul.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using matmul::GroupedShape;
using matmul::kFirstMatrix;

// Calls compute() when `rows` lists `most` rows that choose matrix `group`, and for the rest.
template <int64_t most, class Compute>
void for_each_rows(const Call& call, const GroupedShape& s, int64_t group, int64_t* rows, Compute compute) {
  const auto* index = call.in[1].as<const int64_t>();
  int64_t count = 0;
  for (int64_t row = 0; row < s.rows; ++row) {
    if (matmul::matrix_index(index[row], s.groups) != group) continue;
    rows[count++] = row;
    if (count == most) compute(count), count = 0;
  }
  if (count) compute(count);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
