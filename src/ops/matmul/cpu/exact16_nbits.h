// matmul_nbits_exact16: rows of a as integers of 16 bits, b as bytes or halves of bytes. What
// multiplies them is each instruction set's own: exact16_nbits/int8_dot.h where instructions
// multiply four bytes, else exact16_nbits/int16_madd.h. Compiled once per instruction set.
#pragma once
#if INVAR_EXTENSION_AVX512_VNNI || INVAR_EXTENSION_AVX512_AMX || INVAR_EXTENSION_AVX2_VNNI
#include "ops/matmul/cpu/exact16_nbits/int8_dot.h"
#else
#include "ops/matmul/cpu/exact16_nbits/int16_madd.h"
#endif

namespace invar::ops::INVAR_ISA_NS {
namespace {

NbitsExact nbits_exact(const Call& call) {
  NbitsExact p{matmul::nbits(call), row_count(call.in[0]), 0, 0, 0, 0};
  p.words = nbits_row_words(p.l);
  p.panels = (p.l.n + kByteColumns - 1) / kByteColumns;
  p.row_blocks = (p.rows + kNbitsRows - 1) / kNbitsRows;
  p.depth = panel_depth(matmul::nbits(call.in[1], *call.attrs));
  return p;
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
void quantize_nbits_exact16(const Call& call, const NbitsExact& p, int64_t begin, int64_t end) {
  const NbitsShared w = nbits_shared(p, call.in[2].packed, call.shared);
  for (int64_t u = begin; u < end; ++u) {
    if (u < p.rows) {
      const float* x = call.in[0].as<const float>() + u * p.l.k;
      int32_t* to = w.a + u * p.row();
      to[p.words] = scale_of_row(F32{}, x, p.l.k);
      write_nbits_row(p.l, x, to[p.words], to);
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
      const D power = set1_d(exact_power(a[r * p.row() + p.words]));
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
