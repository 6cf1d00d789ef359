// GEMM packing, over lanes: columns of B into panels, rows of A into rows of one K block. Computes
// nothing but exact widening (spec/formats.md formats.2). Compiled once per instruction set.
#pragma once
#include "kernels/cpu/vector_io.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// A panel holds kPanel columns of B, K row by K row: one or two vectors, the width NR of a tile of
// full height.
constexpr int kPanel = kW == 16 ? 32 : kW == 1 ? 8 : 16;
constexpr int kVectorsPerPanel = kPanel / kW;

// Packing formats, In -> Out: read() makes a vector of 32-bit words from kColumns columns, write()
// stores it.
template <class W>
struct PackWidened {
  using In = typename W::T;
  using Out = float;
  static constexpr int kColumns = kW;
  INVAR_INLINE I read(const In* p, int n, const In*, int) {
    return bits(n >= kW ? W::get(p) : W::get_n(p, n));
  }
  INVAR_INLINE void write(Out* out, I x) { store(out, from_bits(x)); }
};
struct PackF16 {
  using In = uint16_t;
  using Out = uint16_t;
  static constexpr int kColumns = kW;
  INVAR_INLINE I read(const In* p, int n, const In*, int) {
    return widen_u16(n >= kW ? load_h(p) : load_h_n(p, n));
  }
  INVAR_INLINE void write(Out* out, I x) { store_h(out, narrow_u16(x)); }
};
// Interleaves columns j and j + kW: a vector of 32-bit words widens to both by a shift and a mask
// (ReadBf16Pairs).
struct PackBf16Pairs {
  using In = uint16_t;
  using Out = uint16_t;
  static constexpr int kColumns = kW == 1 ? 1 : 2 * kW;
  INVAR_INLINE I read(const In* p, int n, const In* q, int m) {
    I low = widen_u16(n >= kW ? load_h(p) : load_h_n(p, n));
    if constexpr (kW == 1) return low;
    return bit_or(low, shift_left<16>(widen_u16(m >= kW ? load_h(q) : load_h_n(q, m))));
  }
  INVAR_INLINE void write(Out* out, I x) {
    if constexpr (kW == 1)
      store_h(out, narrow_u16(x));
    else
      store(reinterpret_cast<float*>(out), from_bits(x));
  }
};
// Reads the panel format of PackBf16Pairs, two vectors of columns at a time.
struct ReadBf16Pairs {
  using T = uint16_t;
  INVAR_INLINE void get2(const T* p, F& first, F& second) {
    if constexpr (kW == 1) {
      first = load_bf16(p), second = load_bf16(p + 1);
    } else {
      I x = bits(in_register(load(reinterpret_cast<const float*>(p))));
      first = from_bits(shift_left<16>(x));
      second = from_bits(bit_and(x, set1_i(static_cast<int32_t>(0xffff0000u))));
    }
  }
};

constexpr int64_t kPrefetchRows = 8;  // rows are far apart, so the hardware prefetcher misses them

INVAR_INLINE int valid_lanes(int64_t n) {  // of a vector
  return n <= 0 ? 0 : n >= kW ? kW : static_cast<int>(n);
}

// Packs rows x columns elements of `in` (row i at in + i * ld) into `out` (row i at out + i *
// out_ld). Columns up to a multiple of kColumns are written; those beyond `columns` as zeros.
template <class C>
INVAR_INLINE void pack_rows(const typename C::In* in, int64_t ld, int64_t rows, int64_t columns,
                            typename C::Out* out, int64_t out_ld) {
  for (int64_t i = 0; i < rows; ++i, in += ld, out += out_ld)
    for (int64_t j = 0; j < columns; j += C::kColumns) {
      __builtin_prefetch(in + kPrefetchRows * ld + j);
      C::write(out + j,
               C::read(in + j, valid_lanes(columns - j), in + j + kW, valid_lanes(columns - j - kW)));
    }
}

// The same with `in` transposed: element (i, j) is in[j * ld + i].
template <class C>
INVAR_INLINE void pack_transposed(const typename C::In* in, int64_t ld, int64_t rows, int64_t columns,
                                  typename C::Out* out, int64_t out_ld) {
  for (int64_t j = 0; j < columns; j += C::kColumns) {
    for (int64_t i = 0; i < rows; i += kW) {
      F r[kW];
      for (int v = 0; v < kW; ++v) {
        const typename C::In* p = in + (j + v) * ld + i;
        __builtin_prefetch(p + C::kColumns * ld);
        int n = j + v < columns ? valid_lanes(rows - i) : 0,
            m = j + v + kW < columns ? valid_lanes(rows - i) : 0;
        r[v] = from_bits(C::read(n ? p : in, n, m ? p + kW * ld : in, m));
      }
      transpose(r);
      for (int v = 0; v < kW && i + v < rows; ++v) C::write(out + (i + v) * out_ld + j, bits(r[v]));
    }
  }
}

// Packs a panel (or a range of its K) of B: k rows of kPanel columns, of which `columns` exist,
// out_ld apart. trans: B is stored column-major.
template <class C>
INVAR_INLINE void pack_panel(const typename C::In* b, int64_t ld, bool trans, int64_t k, int64_t columns,
                             typename C::Out* out, int64_t out_ld = kPanel) {
  if (trans)
    pack_transposed<C>(b, ld, k, columns, out, out_ld);
  else
    pack_rows<C>(b, ld, k, columns, out, out_ld);
  for (int64_t j = (columns + C::kColumns - 1) / C::kColumns * C::kColumns; j < kPanel; ++j)
    for (int64_t i = 0; i < k; ++i) out[i * out_ld + j] = 0;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
