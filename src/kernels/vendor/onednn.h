// oneDNN, as rows of the host use it: its C functions, each call on the calling thread alone. How a product is cut over the
// threads is the row's, as for all kernels, so --threads holds and results do not depend on it.
#pragma once
#include "kernels/vendor/vendor_kernel.h"

namespace invar::ops::onednn {

extern const Library library;

// c = a b, row-major f32, a or b transposed where 'T'; ld: elements from a row to the next. To be called where version() is not
// empty.
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
