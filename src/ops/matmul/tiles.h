// Which constants of products a GPU may hold in tiles of codes (weights/tiles/code_tiles.h).
#pragma once
#include "kernels/op_contract.h"

namespace invar::ops::matmul {

// Whether operand i of matmul_exact16 is one: a matrix in blocks or parts whose rows are the
// columns of the product (kernels/blocks/block_readers.h).
bool is_columns_in_tiles(const View& b, int i, const Attributes&);

}  // namespace invar::ops::matmul
