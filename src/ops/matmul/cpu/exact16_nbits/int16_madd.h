// Products of matmul_nbits_exact16 in pairs of k: b is widened to pairs of (q - z) a piece at a
// time, as integer.h does. The sum of a piece within one group is an int32; times the group's
// integer t it is added in binary64, which stays exact for kNbitsJoined pairs, and then in int64
// (matmul_nbits_exact16.3). Compiled once per instruction set.
#pragma once
#include "ops/matmul/cpu/exact16_nbits/shared.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Pairs of k: of a piece, 2 * 32639 * 255 each; of pieces times t <= 130558, below 2^51.
constexpr int64_t kNbitsPairs = kPairs, kNbitsJoined = 1024;

int64_t nbits_row_words(const matmul::Nbits& l) {
  return pairs_of(l.k);
}
int64_t panel_depth(const matmul::Nbits& of_b) {
  return of_b.bits == 4 ? of_b.k / 2 : of_b.k;
}
// The bytes of columns [j, j + kByteColumns), [depth][kByteColumns].
void pack_bytes_panel(const View& b, const matmul::Nbits& l, int64_t j, uint8_t* to) {
  const auto* from = b.as<const uint8_t>();
  const int64_t depth = panel_depth(l), columns = num::min_i64(kByteColumns, l.n - j);
  for (int64_t i = 0; i < depth; ++i, to += kByteColumns)
    for (int64_t c = 0; c < kByteColumns; ++c)
      to[c] = c < columns ? from[l.trans_b ? (j + c) * l.column + i : i * l.n + j + c] : 0;
}

// The integers of a row as pairs of k; behind its end 0.
void write_nbits_row(const matmul::Nbits& l, const float* x, int32_t e, int32_t* to) {
  const int64_t k = l.k;
  alignas(64) int32_t q[2 * kW];
  const bool none = e == num::kExact16NoIntegers;
  const num::Exact16Factors by = num::exact16_factors(none ? 0 : e);
  const F first = set1(none ? 0.0f : by.first), second = set1(by.second);
  for (int64_t i = 0; i < k; i += 2 * kW) {
    const int64_t n = num::min_i64(2 * kW, k - i);
    for (int64_t j = 0; j < 2 * kW; j += kW) {
      const int64_t left = num::min_i64(kW, n - j);
      const F part = left > 0 ? get_part<F32>(x + i + j, static_cast<int>(left)) : zero();
      store_i(q + j, exact_integers(part, first, second));
    }
    for (int64_t j = 0; j < n; j += 2) *to++ = pair_of(q[j], q[j + 1]);
  }
}
struct NbitsScratch {
  double *sum, *powers;
  int64_t* total;
  int32_t *panel, *zeros;
};
NbitsScratch nbits_scratch(void* scratch) {
  NbitsScratch w{};
  w.sum = static_cast<double*>(scratch);
  w.powers = w.sum + kNbitsRows * kByteColumns;
  w.total = reinterpret_cast<int64_t*>(w.powers + kByteColumns);
  w.panel = reinterpret_cast<int32_t*>(w.total + kNbitsRows * kByteColumns);
  w.zeros = w.panel + kNbitsPairs * kByteColumns;
  return w;
}
size_t scratch_bytes_nbits_exact16(const Call&) {
  return static_cast<size_t>(reinterpret_cast<char*>(nbits_scratch(nullptr).zeros + kByteColumns) -
                             static_cast<char*>(nullptr));
}

// Zero points of a panel and group, as int32.
void zeros_of(const Call& call, const matmul::Nbits& l, int64_t panel, int64_t group, int32_t* to) {
  const bool given = call.in.size() > 3;
  for (int64_t c = 0; c < kByteColumns; ++c) {
    const int64_t j = panel * kByteColumns + c;
    if (!given)
      to[c] = matmul::zero_point(l);
    else if (call.in[3].packed)
      to[c] =
          call.in[3]
              .as<const uint8_t>()[(panel * matmul::zero_groups(l, call.in[3]) + group) * kByteColumns + c];
    else
      to[c] = j < l.n ? matmul::zero_point(l, call.in[3], j, group) : 0;
  }
}

// Widens `pairs` rows of bytes with two integers of 4 bits each.
INVAR_INLINE void widen_halves(const uint8_t* b, int64_t pairs, const int32_t* zeros, int32_t* out) {
  for (int64_t k = 0; k < pairs; ++k, b += kByteColumns)
    for (int64_t j = 0; j < kByteColumns; j += kW) {
      const I x = load_u8(b + j), z = bits(load(reinterpret_cast<const float*>(zeros + j)));
      const I low = sub(bit_and(x, set1_i(15)), z), high = sub(shift_right<4>(x), z);
      store_i(out + k * kByteColumns + j, bit_or(bit_and(low, set1_i(0xffff)), shift_left<16>(high)));
    }
}

// Adds t times the sums of R rows and kTileVectors vectors over `pairs` pairs.
template <int R>
INVAR_INLINE void nbits_tile(const int32_t* a, int64_t lda, const int32_t* b, int64_t pairs, const float* t,
                             double* sum) {
  I v[R * kTileVectors];
  byte_sums<R>(a, lda, b, pairs, v);
#pragma GCC unroll 32
  for (int i = 0; i < R * kTileVectors; ++i) {
    double* at = sum + i / kTileVectors * kByteColumns + i % kTileVectors * kW;
    store_d(at, fma(to_double(v[i]), to_double(load(t + i % kTileVectors * kW)), load_d(at)));
  }
}

// Moves sums from binary64 to int64.
INVAR_INLINE void join_sums(int64_t n, double* sum, int64_t* total) {
  for (int64_t i = 0; i < n; i += kW) {
    store_l(total + i, add(load_l(total + i), whole_sum(load_d(sum + i))));
    store_d(sum + i, set1_d(0));
  }
}

// The products of `rows` rows at `a` with one panel, into w.total.
void multiply_nbits_exact16(const Call& call, const NbitsExact& p, const int32_t* a, int64_t panel,
                            const uint8_t* b, const float* t, int64_t rows, const NbitsScratch& w) {
  const matmul::Nbits& l = p.l;
  const int64_t columns = num::min_i64(kByteColumns, l.n - panel * kByteColumns);
  for (int64_t i = 0; i < rows * kByteColumns; ++i) w.sum[i] = 0, w.total[i] = 0;
  const int32_t moved = l.is_signed ? 0x80 : 0;
  for (int64_t first = 0, group = -1, joined = 0, pairs = 0; first < p.words; first += pairs) {
    const int64_t g = l.block ? 2 * first / l.block : 0;
    pairs = num::min_i64(kNbitsPairs, p.words - first);
    if (l.block) pairs = num::min_i64(pairs, (g + 1) * l.block / 2 - first);
    if (g != group) zeros_of(call, l, panel, g, w.zeros);
    group = g;
    if (l.bits == 4)
      widen_halves(b + first * kByteColumns, pairs, w.zeros, w.panel);
    else
      widen_panel(b + 2 * first * kByteColumns, kByteColumns, num::min_i64(2 * pairs, l.k - 2 * first),
                  kByteColumns, moved, w.zeros, w.panel);
    if (joined + pairs > kNbitsJoined) join_sums(rows * kByteColumns, w.sum, w.total), joined = 0;
    joined += pairs;
    for (int64_t r = 0; r < rows; r += kTileRows) {
      auto tiles = [&](auto tall) __attribute__((always_inline)) {
        for (int64_t c = 0; c < columns; c += kTileVectors * kW)
          nbits_tile<decltype(tall)::value>(a + r * p.row() + first, p.row(), w.panel + c, pairs,
                                            t + g * kByteColumns + c, w.sum + r * kByteColumns + c);
      };
      dispatch_tile_rows<kTileRows>(static_cast<int>(num::min_i64(kTileRows, rows - r)), tiles);
    }
  }
  join_sums(rows * kByteColumns, w.sum, w.total);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
