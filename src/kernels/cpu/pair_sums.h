// Sums of products of pairs of int16 along k, as tiles of registers add them. Compiled once per
// instruction set.
#pragma once
#include "kernels/cpu/vector_io.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

#if INVAR_EXTENSION_AVX2_VNNI
#define INVAR_VEX "%{vex%} "
#else
#define INVAR_VEX ""
#endif
// sum + pair_products(a, b).
// In assembly, in this order: GCC would move operands and products ahead until it keeps sums in
// memory.
INVAR_INLINE I add_pair_products(I sum, I a, I b) {
#if INVAR_EXTENSION_AVX512_VNNI || INVAR_EXTENSION_AVX512_AMX || INVAR_EXTENSION_AVX2_VNNI
  __asm__ volatile(INVAR_VEX "vpdpwssd %2, %1, %0" : "+v"(sum.v) : "v"(a.v), "vm"(b.v));
  return sum;
#elif INVAR_ISA_AVX2 || INVAR_ISA_AVX512
  I product;
  __asm__ volatile("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
                   : "+v"(sum.v), "=&v"(product.v)
                   : "v"(a.v), "vm"(b.v));
  return sum;
#else
  return add(sum, pair_products(a, b));
#endif
}

// sum[v] += pair_products(set1_i(x), w[v]) of a tile's row.
template <int V>
INVAR_INLINE void add_row_products(I* sum, const int32_t& x, const I (&w)[V]) {
#if INVAR_ISA_AVX2 && !INVAR_EXTENSION_AVX2_VNNI
  if constexpr (V == 2) {  // with two registers beside sums and w, all that are left
    I a, product;
    __asm__ volatile(
        "vpbroadcastd %4, %2\n\tvpmaddwd %5, %2, %3\n\tvpaddd %3, %0, %0\n\t"
        "vpmaddwd %6, %2, %2\n\tvpaddd %2, %1, %1"
        : "+x"(sum[0].v), "+x"(sum[1].v), "=&x"(a.v), "=&x"(product.v)
        : "m"(x), "x"(w[0].v), "x"(w[1].v));
    return;
  }
#endif
  const I a = set1_i(x);
#pragma GCC unroll 32
  for (int v = 0; v < V; ++v) sum[v] = add_pair_products(sum[v], a, w[v]);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
