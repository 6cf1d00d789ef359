// cuBLAS, as rows of a GPU use it: its C functions on the stream of the call, with memory of the caller's as its workspace.
// One stream, its own workspace and no atomics: what its documentation asks for so that runs repeat their bits.
#pragma once
#include "kernels/vendor/vendor_kernel.h"

namespace invar::ops::cublas {

extern const Library library;

constexpr size_t kWorkspace = size_t{32} << 20;  // bytes; what it recommends for the largest GPUs

enum class Type { f32, bf16 };
// c[m, n] = a[m, k] b, row-major, summed in f32. b: [n, k] where trans_b, else [k, n]; lda, ldb: elements from a row to the next.
// tf32: operands of f32 rounded to 11 bits.
struct Product {
  int64_t m, n, k;
  Type type;  // of a and b
  const void* a;
  int64_t lda;
  const void* b;
  int64_t ldb;
  bool trans_b, tf32;
  float* c;
  void* workspace;  // kWorkspace bytes, aligned to 256
};
// Queues it. The stream is one that Library::attach made ready.
void enqueue(const Product&, Stream);

}  // namespace invar::ops::cublas
