// cuBLAS for GPU kernels: its C functions on the stream of the call, with the caller's memory as
// workspace. One stream with its own workspace and no atomics, as its documentation requires for
// bitwise reproducible runs.
#pragma once
#include "kernels/vendor/vendor_kernel.h"

namespace invar::ops::cublas {

extern const Library library;

constexpr size_t kWorkspace = size_t{32} << 20;  // bytes; recommended for the largest GPUs

enum class Type { f32, bf16 };
// c[m, n] = a[m, k] b, row-major, accumulated in f32. b: [n, k] if trans_b, else [k, n]; lda, ldb:
// row strides in elements. tf32: f32 operands are rounded to 11 significant bits.
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
// Enqueues the product. Library::attach must have prepared the stream.
void enqueue(const Product&, Stream);

}  // namespace invar::ops::cublas
