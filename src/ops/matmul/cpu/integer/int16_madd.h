// Products of bytes in pairs of k: both factors as pairs of int16 along k, minus their zero points,
// so that one instruction multiplies and adds two k. Included by integer.h only.
#pragma once
#include "ops/matmul/cpu/byte_pairs.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// The byte of a zero point, offset as those of its tensor are (i8 to u8); 0 without one.
INVAR_INLINE int32_t moved_zero(const Call& call, size_t operand, int64_t at) {
  const int32_t moved = call.in[operand - 2].dtype == DType::i8 ? 0x80 : 0;
  if (call.in.size() <= operand) return moved;
  const View& z = call.in[operand];
  return z.as<const uint8_t>()[z.elements() == 1 ? 0 : at] ^ moved;
}

// Widens a row of A to pairs; beyond its end 0, so whatever B holds there does not matter.
INVAR_INLINE void widen_row(const uint8_t* a, int64_t k, int32_t moved, int32_t zero, int32_t* out) {
  for (int64_t i = 0; i < k / 2; ++i) {
    const int32_t low = (a[2 * i] ^ moved) - zero, high = (a[2 * i + 1] ^ moved) - zero;
    out[i] = static_cast<int32_t>((static_cast<uint32_t>(low) & 0xffff) | static_cast<uint32_t>(high) << 16);
  }
  if (k % 2) out[k / 2] = ((a[k - 1] ^ moved) - zero) & 0xffff;
}

// Stores the sums in rows of out, or adds them there for all but the first pairs.
template <int R>
INVAR_INLINE void byte_tile(const int32_t* a, int64_t lda, const int32_t* b, int64_t pairs, int32_t* out,
                            int64_t n, int64_t columns, bool first) {
  I sum[R * kTileVectors];
  byte_sums<R>(a, lda, b, pairs, sum);
#pragma GCC unroll 32
  for (int i = 0; i < R * kTileVectors; ++i) {
    const int64_t at = i % kTileVectors * kW, left = columns - at;
    if (left <= 0) continue;
    auto* y = reinterpret_cast<float*>(out + i / kTileVectors * n + at);
    const int lanes = left < kW ? static_cast<int>(left) : kW;
    const I before = first ? set1_i(0) : bits(load_part(y, lanes));
    store_part(y, from_bits(add(before, sum[i])), lanes);
  }
}

size_t pack_bytes_integer(const View& v, int i, const Attributes&) {
  if (i != 1) return 0;
  const int64_t n = last_dim(v), rows = n ? v.elements() / n : 0;
  return static_cast<size_t>(rows * ((n + kByteColumns - 1) / kByteColumns) * kByteColumns);
}
void pack_integer(const View& v, int, const Attributes&, void* packed) {
  const int64_t n = last_dim(v), k = v.dim[v.rank - 2], matrices = n && k ? v.elements() / n / k : 0;
  const auto* b = v.as<const uint8_t>();
  auto* to = static_cast<uint8_t*>(packed);
  for (int64_t m = 0; m < matrices; ++m, b += k * n)
    for (int64_t j = 0; j < n; j += kByteColumns)
      for (int64_t i = 0; i < k; ++i)
        for (int64_t c = j; c < j + kByteColumns; ++c) *to++ = c < n ? b[i * n + c] : 0;
}

size_t shared_bytes_integer(const Call& call) {
  const View& a = call.in[0];
  return static_cast<size_t>(row_count(a) * pairs_of(last_dim(a))) * sizeof(int32_t);
}
size_t scratch_bytes_integer(const Call&) {
  return (kPairs + 1) * kByteColumns * sizeof(int32_t);
}
void run_integer(const Call& call, int phase, int64_t begin, int64_t end, void* scratch) {
  const View &a = call.in[0], &b = call.in[1];
  const ByteProduct p = byte_product(call);
  const int64_t k = p.s.k, n = p.s.n, lda = pairs_of(k), m = a.rank < 2 ? 1 : a.dim[a.rank - 2];
  auto* wide = static_cast<int32_t*>(call.shared);
  const int32_t moved_a = a.dtype == DType::i8 ? 0x80 : 0, moved_b = b.dtype == DType::i8 ? 0x80 : 0;
  if (phase == 0) {
    for (int64_t i = begin; i < end; ++i)
      widen_row(a.as<const uint8_t>() + i * k, k, moved_a, moved_zero(call, 2, i % m), wide + i * lda);
    return;
  }
  auto* panel = static_cast<int32_t*>(scratch);
  int32_t* zeros = panel + kPairs * kByteColumns;
  for (int64_t u = begin; u < end; ++u) {
    const int64_t j = u % p.panels * kByteColumns, columns = num::min_i64(kByteColumns, n - j);
    const int64_t row = u / p.panels % p.row_blocks * kByteRows, rows = num::min_i64(kByteRows, p.s.m - row);
    const int64_t batch = u / p.panels / p.row_blocks;
    const matmul::Offsets at = matmul::offsets(p.s, batch);
    const auto* bytes = b.as<const uint8_t>();
    bytes += b.packed ? (at.b_matrix * p.panels * kByteColumns + j) * k : at.b + j;
    const int64_t ld = b.packed ? kByteColumns : n;
    for (int64_t c = 0; c < kByteColumns; ++c) zeros[c] = moved_zero(call, 3, c < columns ? j + c : 0);
    auto* out = call.out[0].as<int32_t>() + (batch * p.s.m + row) * n + j;
    const int32_t* left = wide + (k ? at.a / k + row : 0) * lda;
    for (int64_t first = 0; first == 0 || first < lda; first += kPairs) {
      const int64_t pairs = num::min_i64(kPairs, lda - first);
      widen_panel(bytes + 2 * first * ld, ld, num::min_i64(2 * kPairs, k - 2 * first), columns, moved_b,
                  zeros, panel);
      for (int64_t r = 0; r < rows; r += kTileRows) {
        auto tiles = [&](auto tall) __attribute__((always_inline)) {
          for (int64_t c = 0; c < columns; c += kTileVectors * kW)
            byte_tile<decltype(tall)::value>(left + r * lda + first, lda, panel + c, pairs, out + r * n + c,
                                             n, columns - c, first == 0);
        };
        dispatch_tile_rows<kTileRows>(static_cast<int>(num::min_i64(kTileRows, rows - r)), tiles);
      }
    }
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
