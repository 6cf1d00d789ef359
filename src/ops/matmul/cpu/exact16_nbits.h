// matmul_nbits_exact16: rows of a as pairs of 16-bit integers, b as bytes or halves of bytes,
// widened to pairs of (q - z) a piece at a time, as integer.h does. The sum of a piece within one
// group is an int32; times the group's integer t it is added in binary64, which stays exact for
// kExactJoined pairs, and then in int64 (spec.md matmul_nbits_exact16.3). Compiled once per
// instruction set.
#pragma once
#include "ops/matmul/cpu/exact16.h"
#include "ops/matmul/cpu/integer.h"
#include "ops/matmul/nbits.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Pairs of k: of a piece, 2 * 32639 * 255 each; of pieces times t <= 130558, below 2^51.
constexpr int64_t kNbitsPairs = kPairs, kNbitsJoined = 1024;
constexpr int64_t kNbitsRows = 48;  // rows of a that use one widened panel

struct NbitsExact {
  matmul::Nbits l;
  int64_t rows, pairs, panels, row_blocks;
  int64_t depth;  // rows of bytes of a packed panel of b, and of a whole panel of scales
  int64_t row() const { return pairs + 1; }                         // int32: the pairs, the scale
  int64_t panel() const { return depth * kByteColumns; }            // bytes
  int64_t scales() const { return (l.blocks + 1) * kByteColumns; }  // floats: t of each group, es
};
int64_t panel_depth(const matmul::Nbits& of_b) {
  return of_b.bits == 4 ? of_b.k / 2 : of_b.k;
}
NbitsExact nbits_exact(const Call& call) {
  NbitsExact p{matmul::nbits(call), row_count(call.in[0]), 0, 0, 0, 0};
  p.pairs = pairs_of(p.l.k);
  p.panels = (p.l.n + kByteColumns - 1) / kByteColumns;
  p.row_blocks = (p.rows + kNbitsRows - 1) / kNbitsRows;
  p.depth = panel_depth(matmul::nbits(call.in[1], *call.attrs));
  return p;
}

// The bytes of columns [j, j + kByteColumns), [depth][kByteColumns].
void pack_bytes_panel(const View& b, const matmul::Nbits& l, int64_t j, uint8_t* to) {
  const auto* from = b.as<const uint8_t>();
  const int64_t depth = panel_depth(l), columns = num::min_i64(kByteColumns, l.n - j);
  for (int64_t i = 0; i < depth; ++i, to += kByteColumns)
    for (int64_t c = 0; c < kByteColumns; ++c)
      to[c] = c < columns ? from[l.trans_b ? (j + c) * l.column + i : i * l.n + j + c] : 0;
}
// t of each group, then es, of columns [j, j + kByteColumns).
void pack_scales_panel(const View& v, const matmul::Nbits& l, int64_t j, float* to) {
  const int64_t columns = num::min_i64(kByteColumns, l.n - j);
  with_format(v.dtype, [&](auto format) {
    using W = decltype(format);
    const auto* s = v.as<const typename W::T>();
    for (int64_t c = 0; c < kByteColumns; ++c) {
      auto at = [&](int64_t g) { return W::one(s[matmul::scale_index(l, v.elements() == 1, j + c, g)]); };
      uint32_t largest = 0;
      for (int64_t g = 0; c < columns && g < l.blocks; ++g) {
        const uint32_t u = num::f32_bits(at(g)) & 0x7fffffff;
        largest = u > largest ? u : largest;
      }
      const int32_t e = num::exact16_scale_of_scales(num::exact16_scale(largest));
      const bool none = e == num::kExact16NoIntegers;
      const num::Exact16Factors by = num::exact16_factors(none ? 0 : e);
      for (int64_t g = 0; g < l.blocks; ++g)
        to[g * kByteColumns + c] =
            none || c >= columns ? 0.0f : __builtin_rintf(at(g) * by.first * by.second);
      to[l.blocks * kByteColumns + c] = static_cast<float>(e);
    }
  });
}

size_t pack_bytes_nbits_exact16(const View& v, int i, const Attributes& attrs) {
  if (i == 0) return 0;
  if (i == 3) return matmul::small_bytes(v, i, attrs, kByteColumns);
  if (i == 2 && v.elements() == 1) return 0;
  const matmul::Nbits l = i == 1 ? matmul::nbits(v, attrs) : matmul::nbits_of(v, i, attrs);
  const int64_t panels = (l.n + kByteColumns - 1) / kByteColumns * kByteColumns;
  return static_cast<size_t>(panels * (i == 1 ? panel_depth(l) : (l.blocks + 1) * 4));
}
void pack_nbits_exact16(const View& v, int i, const Attributes& attrs, void* packed) {
  if (i == 3) return matmul::pack_small(v, i, attrs, kByteColumns, packed);
  const matmul::Nbits l = i == 1 ? matmul::nbits(v, attrs) : matmul::nbits_of(v, i, attrs);
  for (int64_t j = 0; j < l.n; j += kByteColumns) {
    if (i == 1)
      pack_bytes_panel(v, l, j, static_cast<uint8_t*>(packed) + j * panel_depth(l));
    else
      pack_scales_panel(v, l, j, static_cast<float*>(packed) + j * (l.blocks + 1));
  }
}

// Call::shared: rows of a, then what is not packed of the scales and of b.
struct NbitsShared {
  int32_t* a;
  float* scales;
  uint8_t* b;
};
NbitsShared nbits_shared(const NbitsExact& p, bool scales_packed, void* memory) {
  NbitsShared w{static_cast<int32_t*>(memory), nullptr, nullptr};
  w.scales = reinterpret_cast<float*>(w.a + p.rows * p.row());
  w.b = reinterpret_cast<uint8_t*>(w.scales + (scales_packed ? 0 : p.panels * p.scales()));
  return w;
}
size_t shared_bytes_nbits_exact16(const Call& call) {
  const NbitsExact p = nbits_exact(call);
  const NbitsShared w = nbits_shared(p, call.in[2].packed, nullptr);
  return static_cast<size_t>(w.b + (call.in[1].packed ? 0 : p.panels * p.panel()) -
                             static_cast<uint8_t*>(nullptr));
}
// Phase 0: rows of a, then panels of what is not packed; phase 1: panels of row blocks.
int64_t units_nbits_exact16(const Call& call, int phase) {
  if (call.out[0].elements() == 0) return 0;
  const NbitsExact p = nbits_exact(call);
  if (phase == 1) return p.panels * p.row_blocks;
  return p.rows + (call.in[1].packed && call.in[2].packed ? 0 : p.panels);
}
// The integers of a row as pairs of k; behind its end 0.
void pairs_of_row(const float* x, int64_t k, int32_t e, int32_t* to) {
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
void quantize_nbits_exact16(const Call& call, const NbitsExact& p, int64_t begin, int64_t end) {
  const NbitsShared w = nbits_shared(p, call.in[2].packed, call.shared);
  const int64_t k = p.l.k;
  for (int64_t u = begin; u < end; ++u) {
    if (u < p.rows) {
      const float* x = call.in[0].as<const float>() + u * k;
      int32_t* to = w.a + u * p.row();
      const int32_t e = scale_of_row(F32{}, x, k);
      pairs_of_row(x, k, e, to);
      to[p.pairs] = e;
      continue;
    }
    const int64_t panel = u - p.rows, j = panel * kByteColumns;
    if (!call.in[1].packed) {
      const matmul::Nbits of_b = matmul::nbits(call.in[1], *call.attrs);
      pack_bytes_panel(call.in[1], of_b, j, w.b + panel * p.panel());
    }
    if (!call.in[2].packed) pack_scales_panel(call.in[2], p.l, j, w.scales + panel * p.scales());
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

// Moves sums below 2^51 in magnitude from binary64 to int64: on 3 * 2^51 they are the low bits.
INVAR_INLINE void join_sums(int64_t n, double* sum, int64_t* total) {
  for (int64_t i = 0; i < n; i += kW) {
    const D base = set1_d(0x3p51);
    const L whole = sub(bits(add(load_d(sum + i), base)), bits(base));
    store_l(total + i, add(load_l(total + i), whole));
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
  for (int64_t first = 0, group = -1, joined = 0, pairs = 0; first < p.pairs; first += pairs) {
    const int64_t g = l.block ? 2 * first / l.block : 0;
    pairs = num::min_i64(kNbitsPairs, p.pairs - first);
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

void run_nbits_exact16(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const NbitsExact p = nbits_exact(call);
  if (phase == 0) return quantize_nbits_exact16(call, p, begin, end);
  const NbitsShared in = nbits_shared(p, call.in[2].packed, call.shared);
  const uint8_t* b = call.in[1].packed ? call.in[1].as<const uint8_t>() : in.b;
  const float* scales = call.in[2].packed ? call.in[2].as<const float>() : in.scales;
  const NbitsScratch w = nbits_scratch(scratch);
  for (int64_t u = begin; u < end; ++u) {
    const int64_t row = u % p.row_blocks * kNbitsRows, panel = u / p.row_blocks, j = panel * kByteColumns;
    const int64_t rows = num::min_i64(kNbitsRows, p.rows - row),
                  columns = num::min_i64(kByteColumns, p.l.n - j);
    const int32_t* a = in.a + row * p.row();
    const float* t = scales + panel * p.scales();
    multiply_nbits_exact16(call, p, a, panel, b + panel * p.panel(), t, rows, w);
    for (int64_t c = 0; c < kByteColumns; ++c)
      w.powers[c] = exact_power(static_cast<int32_t>(t[p.l.blocks * kByteColumns + c]));
    for (int64_t r = 0; r < rows; ++r) {
      const D power = set1_d(exact_power(a[r * p.row() + p.pairs]));
      for (int64_t c = 0; c < columns; c += kW)
        store_part(call.out[0].as<float>() + (row + r) * p.l.n + j + c,
                   exact_result(to_double(to_float(load_l(w.total + r * kByteColumns + c))),
                                mul(power, load_d(w.powers + c))),
                   static_cast<int>(num::min_i64(kW, columns - c)));
    }
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
