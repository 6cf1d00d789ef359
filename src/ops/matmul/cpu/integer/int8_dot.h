// Products of bytes in quads of k, by instructions that multiply four bytes and add them: B signed,
// A unsigned on x86 and signed on NEON, both moved by 128 where their type is the other one. With
// the zero points x and z of a row and a column, in those terms, a result is
// sum a b - x sum b - z (sum a - K x). Included by integer.h only.
#pragma once
#include "kernels/cpu/exact16/products.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int64_t kQuads = 64;  // of k of a panel that stay in the L1 cache: 16 KiB
constexpr int kDotRows = kMaxRows, kDotVectors = kW == 4 ? 4 : 2, kDotRowVectors = kByteColumns / kW;
constexpr bool kSignedA = kW == 4;

#if INVAR_ISA_NEON
INVAR_INLINE I add_bytes(I sum, I a, I b) {  // in assembly, in this order: see add_row_products
  __asm__ volatile("sdot %0.4s, %1.16b, %2.16b" : "+w"(sum.v) : "w"(a.v), "w"(b.v));
  return sum;
}
INVAR_INLINE I low_product(I a, I b) {
  return {vmulq_s32(a.v, b.v)};
}
#else
INVAR_INLINE I add_bytes(I sum, I a, I b) {
  return add_quad_products(sum, a, b);
}
INVAR_INLINE I low_product(I a, I b) {
#if INVAR_ISA_AVX512
  return {_mm512_mullo_epi32(a.v, b.v)};
#else
  return {_mm256_mullo_epi32(a.v, b.v)};
#endif
}
#endif

INVAR_INLINE int32_t moved_by(const View& v, bool to_signed) {
  return (v.dtype == DType::i8) != to_signed ? 0x80 : 0;
}
INVAR_INLINE int32_t moved_byte(uint8_t x, int32_t moved, bool to_signed) {
  const auto u = static_cast<uint8_t>(x ^ moved);
  return to_signed ? static_cast<int8_t>(u) : u;
}
INVAR_INLINE int32_t zero_of(const Call& call, size_t operand, int64_t at, int32_t moved, bool to_signed) {
  if (call.in.size() <= operand) return moved_byte(0, moved, to_signed);
  const View& z = call.in[operand];
  return moved_byte(z.as<const uint8_t>()[z.elements() == 1 ? 0 : at], moved, to_signed);
}
INVAR_INLINE int32_t wrap(uint32_t x) {
  return static_cast<int32_t>(x);
}

// A row of A in int32: its quads, 0 beyond the end; its zero point x; sum a - K x.
struct DotRow {
  int64_t quads;
  explicit DotRow(int64_t k) : quads((k + 3) / 4) {}
  int64_t words() const { return quads + 2; }
};
INVAR_INLINE void write_dot_row(const uint8_t* a, int64_t k, int32_t moved, int32_t zero, int32_t* to) {
  const DotRow row(k);
  if (k) to[row.quads - 1] = 0;
  auto* bytes = reinterpret_cast<uint8_t*>(to);
  uint32_t sum = 0;
  for (int64_t i = 0; i < k; ++i) {
    bytes[i] = static_cast<uint8_t>(a[i] ^ moved);
    sum += static_cast<uint32_t>(kSignedA ? static_cast<int8_t>(bytes[i]) : bytes[i]);
  }
  to[row.quads] = zero;
  to[row.quads + 1] = wrap(sum - static_cast<uint32_t>(k) * static_cast<uint32_t>(zero));
}

// Quads of a panel of B from `rows` of k, `ld` bytes apart, and their sums added to those at
// `sums`; 0 beyond the rows.
INVAR_INLINE void write_dot_panel(const uint8_t* b, int64_t ld, int64_t rows, int64_t columns, int32_t moved,
                                  int32_t* to, int32_t* sums) {
  for (int64_t k = 0; k < rows; k += 4, b += 4 * ld, to += kByteColumns) {
    const int64_t tall = num::min_i64(4, rows - k);
    const uint32_t some = 0x01010101u >> 8 * (4 - tall);
    for (int64_t j = 0; j < kByteColumns; j += kW) {
      const int64_t left = columns - j;
      auto row = [&](int64_t i) __attribute__((always_inline))->I {
        if (i >= tall || left <= 0) return set1_i(0);
        return left >= kW ? load_u8(b + i * ld + j) : load_u8_n(b + i * ld + j, static_cast<int>(left));
      };
      const I first = bit_or(row(0), shift_left<8>(row(1)));
      const I second = bit_or(shift_left<16>(row(2)), shift_left<24>(row(3)));
      const I quad = bit_xor(bit_or(first, second), set1_i(wrap(static_cast<uint32_t>(moved) * some)));
      store_i(to + j, quad);
      store_i(sums + j, add_bytes(load_i(sums + j), set1_i(0x01010101), quad));
    }
  }
}

// The words of a packed panel: its quads and the sums of its columns.
INVAR_INLINE int64_t dot_panel(int64_t k) {
  return (DotRow(k).quads + 1) * kByteColumns;
}
size_t pack_bytes_integer(const View& v, int i, const Attributes&) {
  if (i != 1) return 0;
  const int64_t n = last_dim(v), k = v.dim[v.rank - 2], matrices = n && k ? v.elements() / n / k : 0;
  return static_cast<size_t>(matrices * ((n + kByteColumns - 1) / kByteColumns) * dot_panel(k)) *
         sizeof(int32_t);
}
void pack_integer(const View& v, int, const Attributes&, void* packed) {
  const int64_t n = last_dim(v), k = v.dim[v.rank - 2], matrices = n && k ? v.elements() / n / k : 0;
  const auto* b = v.as<const uint8_t>();
  auto* to = static_cast<int32_t*>(packed);
  for (int64_t m = 0; m < matrices; ++m, b += k * n)
    for (int64_t j = 0; j < n; j += kByteColumns, to += dot_panel(k)) {
      int32_t* const sums = to + DotRow(k).quads * kByteColumns;
      for (int64_t c = 0; c < kByteColumns; ++c) sums[c] = 0;
      write_dot_panel(b + j, n, k, num::min_i64(kByteColumns, n - j), moved_by(v, true), to, sums);
    }
}

size_t shared_bytes_integer(const Call& call) {
  const View& a = call.in[0];
  return static_cast<size_t>(row_count(a) * DotRow(last_dim(a)).words()) * sizeof(int32_t);
}
size_t scratch_bytes_integer(const Call&) {
  return (kQuads + 2) * kByteColumns * sizeof(int32_t);
}

// Does the rest with the last quads: rows of A end at `row`.
struct DotEnd {
  const int32_t *row, *sums, *zeros;
};
// Adds the sums of a tile of rows x `vectors` to rows of out, or stores them there if they are the
// first. Out of line: it is the same for tiles of all shapes.
INVAR_INTERNAL void finish_dot_tile(const I* sum, int rows, int vectors, int64_t lda, int32_t* out, int64_t n,
                                    int64_t columns, bool first, const DotEnd* end) {
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) {
      const int64_t at = v * kW, left = columns - at;
      if (left <= 0) continue;
      auto* y = reinterpret_cast<float*>(out + r * n + at);
      const int lanes = left < kW ? static_cast<int>(left) : kW;
      I whole = sum[r * vectors + v];
      if (!first) whole = add(bits(load_part(y, lanes)), whole);
      if (end) {
        const int32_t* row = end->row + r * lda;
        const I of_a = low_product(set1_i(row[0]), load_i(end->sums + at));
        whole = sub(whole, add(of_a, low_product(set1_i(row[1]), load_i(end->zeros + at))));
      }
      store_part(y, from_bits(whole), lanes);
    }
}
// The products of R rows of A and V vectors of a panel.
template <int R, int V>
INVAR_INLINE void dot_tile(const int32_t* a, int64_t lda, const int32_t* b, int64_t quads, int32_t* out,
                           int64_t n, int64_t columns, bool first, const DotEnd* end) {
  I acc[R * V];
#pragma GCC unroll 32
  for (int i = 0; i < R * V; ++i) acc[i] = set1_i(0);
  for (int64_t k = 0; k < quads; ++k, b += kByteColumns) {
    if constexpr (R == 1) {  // one row waits for memory
#pragma GCC unroll 4
      for (int i = 0; i < kByteColumns; i += 16) __builtin_prefetch(b + kAhead + i);
    }
    constexpr int kTaken = R == 1 ? 1 : V;
#pragma GCC unroll 32
    for (int from = 0; from < V; from += kTaken) {
      I w[kTaken];
#pragma GCC unroll 32
      for (int v = 0; v < kTaken; ++v) w[v] = bits(in_register(from_bits(load_i(b + (from + v) * kW))));
#pragma GCC unroll 32
      for (int r = 0; r < R; ++r) {
        const I x = set1_i(a[r * lda + k]);
#pragma GCC unroll 32
        for (int v = 0; v < kTaken; ++v) acc[r * V + from + v] = add_bytes(acc[r * V + from + v], x, w[v]);
      }
    }
  }
  I sum[R * V];
#pragma GCC unroll 32
  for (int i = 0; i < R * V; ++i) sum[i] = acc[i];
  finish_dot_tile(sum, R, V, lda, out, n, columns, first, end);
}

void run_integer(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const View &a = call.in[0], &b = call.in[1];
  const ByteProduct p = byte_product(call);
  const int64_t k = p.s.k, n = p.s.n, m = a.rank < 2 ? 1 : a.dim[a.rank - 2];
  const DotRow row(k);
  const int64_t lda = row.words();
  auto* rows_of_a = static_cast<int32_t*>(call.shared);
  const int32_t moved_a = moved_by(a, kSignedA), moved_b = moved_by(b, true);
  if (phase == 0) {
    for (int64_t i = begin; i < end; ++i)
      write_dot_row(a.as<const uint8_t>() + i * k, k, moved_a, zero_of(call, 2, i % m, moved_a, kSignedA),
                    rows_of_a + i * lda);
    return;
  }
  auto* copied = static_cast<int32_t*>(scratch);
  int32_t *zeros = copied + kQuads * kByteColumns, *copied_sums = zeros + kByteColumns;
  for (int64_t u = begin; u < end; ++u) {
    const int64_t j = u % p.panels * kByteColumns, columns = num::min_i64(kByteColumns, n - j);
    const int64_t top = u / p.panels % p.row_blocks * kByteRows, rows = num::min_i64(kByteRows, p.s.m - top);
    const int64_t batch = u / p.panels / p.row_blocks;
    const matmul::Offsets at = matmul::offsets(p.s, batch);
    const auto* panel = b.as<const int32_t>() + (at.b_matrix * p.panels + u % p.panels) * dot_panel(k);
    for (int64_t c = 0; c < kByteColumns; ++c) {
      zeros[c] = zero_of(call, 3, c < columns ? j + c : 0, moved_b, true);
      copied_sums[c] = 0;
    }
    auto* out = call.out[0].as<int32_t>() + (batch * p.s.m + top) * n + j;
    const int32_t* left = rows_of_a + (k ? at.a / k + top : 0) * lda;
    for (int64_t first = 0; first == 0 || first < row.quads; first += kQuads) {
      const int64_t quads = num::min_i64(kQuads, row.quads - first);
      const int32_t* from = b.packed ? panel + first * kByteColumns : copied;
      if (!b.packed)
        write_dot_panel(b.as<const uint8_t>() + at.b + j + 4 * first * n, n,
                        num::min_i64(4 * kQuads, k - 4 * first), columns, moved_b, copied, copied_sums);
      const bool last = first + kQuads >= row.quads;
      const int32_t* sums = b.packed ? panel + row.quads * kByteColumns : copied_sums;
      for (int64_t r = 0; r < rows; r += kDotRows) {
        auto tiles = [&](auto tall) __attribute__((always_inline)) {
          constexpr int kRows = decltype(tall)::value, kV = kRows == 1 ? kDotRowVectors : kDotVectors;
          for (int64_t c = 0; c < columns; c += kV * kW) {
            const DotEnd ends{left + r * lda + row.quads, sums + c, zeros + c};
            dot_tile<kRows, kV>(left + r * lda + first, lda, from + c, quads, out + r * n + c, n, columns - c,
                                first == 0, last ? &ends : nullptr);
          }
        };
        dispatch_tile_rows<kDotRows>(static_cast<int>(num::min_i64(kDotRows, rows - r)), tiles);
      }
    }
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
