// Products of matmul_nbits_exact16 in quads of k, by instructions that multiply four bytes: b as it
// is, unsigned; rows of a as two planes of bytes. A piece of k within one group has the sums H and
// L of both planes with q - z, so its sum is 256 H + L, an int32; times the group's integer t it is
// added in binary64, exact over kNbitsChunk k, and then in int64 (matmul_nbits_exact16.3).
// Compiled once per instruction set.
#pragma once
#include "ops/matmul/cpu/exact16_nbits/shared.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int64_t kNbitsPiece = 128;  // k whose bytes of a have a sum of 15 bits
constexpr int64_t kNbitsChunk = 512;  // k of a panel that stay in the L1 cache
constexpr int kNbitsTileRows = kW == 16 ? 4 : 2, kNbitsVectors = 2, kNbitsRowVectors = 4;

// k of a piece: groups have a multiple of 16.
INVAR_INLINE int64_t piece_of(const matmul::Nbits& l) {
  if (l.block % kNbitsPiece == 0) return kNbitsPiece;
  return l.block < kNbitsPiece ? l.block : 16;
}
// A row: the high and low bytes of each quad of k; of each piece their sums, negative. Of eight k,
// halves of bytes have the even ones first.
struct NbitsRow {
  int64_t quads, pieces;
  explicit NbitsRow(const matmul::Nbits& l)
      : quads((l.k + 7) / 8 * 2), pieces((l.k + piece_of(l) - 1) / piece_of(l)) {}
};
int64_t nbits_row_words(const matmul::Nbits& l) {
  const NbitsRow row(l);
  return 2 * (row.quads + row.pieces);
}
void write_nbits_row(const matmul::Nbits& l, const float* x, int32_t e, int32_t* to) {
  const NbitsRow row(l);
  const int64_t piece = piece_of(l);
  int32_t* const sums = to + 2 * row.quads;
  for (int64_t i = 0; i < 2 * row.pieces; ++i) sums[i] = 0;
  static_assert(kWideStep % 8 == 0);
  for_each_part(
      F32{}, x, l.k, e, [&](const int32_t* q, int64_t begin, int64_t n) __attribute__((always_inline)) {
        int32_t h[8], low[8];
        auto quad = [](const int32_t* v, int i, int step) {
          return quad_of(v[i], v[i + 2 * step], v[i + step], v[i + 3 * step]);
        };
        for (int64_t i = 0; i < n; i += 8) {
          for (int64_t j = 0; j < 8; ++j) {
            const int32_t v = i + j < n ? q[i + j] : 0;
            h[j] = (v + 128) >> 8, low[j] = v - h[j] * 256;
            int32_t* const sum = sums + (begin + i) / piece * 2;
            sum[0] -= h[j], sum[1] -= low[j];
          }
          int32_t* const at = to + (begin + i) / 2;
          const int second = l.bits == 4 ? 1 : 4, step = l.bits == 4 ? 2 : 1;
          at[0] = quad(h, 0, step), at[1] = quad(low, 0, step);
          at[2] = quad(h, second, step), at[3] = quad(low, second, step);
        }
      });
}

int64_t panel_depth(const matmul::Nbits& of_b) {
  return of_b.bits == 4 ? (of_b.k + 7) / 8 * 4 : (of_b.k + 7) / 8 * 8;
}
// The bytes of columns [j, j + kByteColumns), [depth / 4][kByteColumns][4], signed ones moved.
void pack_bytes_panel(const View& b, const matmul::Nbits& l, int64_t j, uint8_t* to) {
  const auto* from = b.as<const uint8_t>();
  const int64_t depth = panel_depth(l), bytes = l.bits == 4 ? l.k / 2 : l.k;
  const int64_t columns = num::min_i64(kByteColumns, l.n - j);
  const uint8_t moved = l.is_signed ? 0x80 : 0;
  for (int64_t i = 0; i < depth; ++i)
    for (int64_t c = 0; c < kByteColumns; ++c) {
      const uint8_t x =
          i < bytes && c < columns ? from[l.trans_b ? (j + c) * l.column + i : i * l.n + j + c] ^ moved : 0;
      to[(i / 4 * kByteColumns + c) * 4 + i % 4] = x;
    }
}

struct NbitsScratch {
  double* powers;
  int64_t* total;
  uint8_t* zeros;
};
NbitsScratch nbits_scratch(void* scratch) {
  NbitsScratch w{};
  w.powers = static_cast<double*>(scratch);
  w.total = reinterpret_cast<int64_t*>(w.powers + kByteColumns);
  w.zeros = reinterpret_cast<uint8_t*>(w.total + kNbitsRows * kByteColumns);
  return w;
}
size_t scratch_bytes_nbits_exact16(const Call&) {
  return static_cast<size_t>(reinterpret_cast<char*>(nbits_scratch(nullptr).zeros) -
                             static_cast<char*>(nullptr)) +
         (kNbitsChunk / 16 + 1) * kByteColumns;
}

// The pieces of a chunk of k for a panel: t and zero points of its first group, how many k of that
// group come before, and the bytes.
struct NbitsPieces {
  int64_t k, piece, block, before;
  const float* t;
  const uint8_t* zeros;
  int64_t next_zeros;  // bytes from a group to the next, 0 if all groups have the same
  const int32_t* b;
};

// sum + (256 high + low) t
INVAR_INLINE D add_piece(D sum, I high, I low, D t) {
  return fma(to_double(add(shift_left<8>(high), low)), t, sum);
}
// Adds the sums of R rows at `a`, with their sums of pieces at `starts`, and V vectors.
template <int R, int V, bool kHalves>
INVAR_INLINE void nbits_tile(const int32_t* a, const int32_t* starts, int64_t lda, NbitsPieces p,
                             int64_t* total) {
  D sum[R * V];
#pragma GCC unroll 32
  for (int i = 0; i < R * V; ++i) sum[i] = set1_d(0);
  while (p.k > 0) {
    I high[R * V], low[R * V];
#pragma GCC unroll 32
    for (int v = 0; v < V; ++v) {
      const I z = load_u8(p.zeros + v * kW);
#pragma GCC unroll 32
      for (int r = 0; r < R; ++r) {
        high[r * V + v] = pair_products(set1_i(starts[r * lda]), z);
        low[r * V + v] = pair_products(set1_i(starts[r * lda + 1]), z);
      }
    }
    auto quad = [&](const I(&w)[V], const int32_t* x) __attribute__((always_inline)) {
#pragma GCC unroll 32
      for (int r = 0; r < R; ++r) {
        const I h = set1_i(x[r * lda]), l = set1_i(x[r * lda + 1]);
#pragma GCC unroll 32
        for (int v = 0; v < V; ++v) {
          high[r * V + v] = add_quad_products(high[r * V + v], w[v], h);
          low[r * V + v] = add_quad_products(low[r * V + v], w[v], l);
        }
      }
    };
    const int64_t n = num::min_i64(p.piece, p.k), words = kHalves ? (n + 7) / 8 : (n + 3) / 4;
    for (int64_t i = 0; i < words; ++i) {
      I w[V];
#pragma GCC unroll 32
      for (int v = 0; v < V; ++v) w[v] = load_i(p.b + i * kByteColumns + v * kW);
      if constexpr (kHalves) {
        const I half = set1_i(0x0f0f0f0f);
        I even[V], odd[V];
#pragma GCC unroll 32
        for (int v = 0; v < V; ++v)
          even[v] = bit_and(w[v], half), odd[v] = bit_and(shift_right<4>(w[v]), half);
        quad(even, a + 4 * i);
        quad(odd, a + 4 * i + 2);
      } else {
        quad(w, a + 2 * i);
      }
    }
#pragma GCC unroll 32
    for (int v = 0; v < V; ++v) {
      const D t = to_double(load(p.t + v * kW));
#pragma GCC unroll 32
      for (int r = 0; r < R; ++r) {
        const int i = r * V + v;
        sum[i] = add_piece(sum[i], high[i], low[i], t);
      }
    }
    a += p.piece / 2, starts += 2, p.k -= p.piece;
    p.b += (kHalves ? p.piece / 8 : p.piece / 4) * kByteColumns;
    p.before += p.piece;
    if (p.before == p.block) p.before = 0, p.t += kByteColumns, p.zeros += p.next_zeros;
  }
#pragma GCC unroll 32
  for (int i = 0; i < R * V; ++i) {
    int64_t* const at = total + i / V * kByteColumns + i % V * kW;
    store_l(at, add(load_l(at), whole_sum(sum[i])));
  }
}

// The zero points of groups [first, last) of a panel; those not packed are written to `to`.
INVAR_INLINE const uint8_t* nbits_zeros(const Call& call, const matmul::Nbits& l, int64_t panel,
                                        int64_t first, int64_t last, uint8_t* to) {
  const View* const given = call.in.size() > 3 ? &call.in[3] : nullptr;
  if (given && given->packed)
    return given->as<const uint8_t>() + (panel * matmul::zero_groups(l, *given) + first) * kByteColumns;
  for (int64_t g = first; g < last; ++g)
    for (int64_t c = 0; c < kByteColumns; ++c) {
      const int64_t j = panel * kByteColumns + c;
      to[(g - first) * kByteColumns + c] =
          static_cast<uint8_t>(!given    ? matmul::zero_point(l)
                               : j < l.n ? matmul::zero_point(l, *given, j, g)
                                         : 0);
    }
  return to;
}

// The products of `rows` rows at `a` with one panel, into w.total.
void multiply_nbits_exact16(const Call& call, const NbitsExact& p, const int32_t* a, int64_t panel,
                            const uint8_t* b, const float* t, int64_t rows, const NbitsScratch& w) {
  const matmul::Nbits& l = p.l;
  const NbitsRow layout(l);
  const int64_t columns = num::min_i64(kByteColumns, l.n - panel * kByteColumns);
  const int64_t piece = piece_of(l), chunk = kNbitsChunk / piece * piece;
  const bool same = call.in.size() <= 3;  // of all groups one zero point
  for (int64_t i = 0; i < rows * kByteColumns; ++i) w.total[i] = 0;
  for (int64_t first = 0; first < l.k; first += chunk) {
    const int64_t last = num::min_i64(l.k, first + chunk), g = l.block ? first / l.block : 0;
    const int64_t end = same || !l.block ? g + 1 : (last - 1) / l.block + 1;
    NbitsPieces of{last - first,
                   piece,
                   l.block ? l.block : -1,
                   l.block ? first % l.block : 0,
                   t + g * kByteColumns,
                   w.zeros,
                   same ? 0 : kByteColumns,
                   reinterpret_cast<const int32_t*>(b) + first / (l.bits == 4 ? 8 : 4) * kByteColumns};
    if (!same || first == 0) of.zeros = nbits_zeros(call, l, panel, g, end, w.zeros);
    for (int64_t r = 0; r < rows; r += kNbitsTileRows) {
      auto tiles = [&](auto tall) __attribute__((always_inline)) {
        constexpr int kRows = decltype(tall)::value, kV = kRows == 1 ? kNbitsRowVectors : kNbitsVectors;
        const int32_t* const row = a + r * p.row();
        for (int64_t c = 0; c < columns; c += kV * kW) {
          NbitsPieces here = of;
          here.t += c, here.zeros += c, here.b += c;
          const int32_t* const starts = row + 2 * (layout.quads + first / piece);
          int64_t* const total = w.total + r * kByteColumns + c;
          if (l.bits == 4)
            nbits_tile<kRows, kV, true>(row + first / 2, starts, p.row(), here, total);
          else
            nbits_tile<kRows, kV, false>(row + first / 2, starts, p.row(), here, total);
        }
      };
      dispatch_tile_rows<kNbitsTileRows>(static_cast<int>(num::min_i64(kNbitsTileRows, rows - r)), tiles);
    }
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
