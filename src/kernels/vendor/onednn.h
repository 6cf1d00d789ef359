// oneDNN for CPU kernels: its C functions, each call on the calling thread only. The row partitions
// a product over threads, as all kernels do, so --threads holds and results do not depend on it.
#pragma once
#include "kernels/vendor/vendor_kernel.h"

namespace invar::ops::onednn {

extern const Library library;

// c = a b, row-major f32, a or b transposed if 'T'; ld: row strides in elements. Requires a
// non-empty version().
struct Product {
  char trans_a, trans_b;
  int64_t m, n, k;
  const float* a;
  int64_t lda;
  const float* b;
  int64_t ldb;
  float* c;
  int64_t ldc;
};
void product(const Product&);

}  // namespace invar::ops::onednn
