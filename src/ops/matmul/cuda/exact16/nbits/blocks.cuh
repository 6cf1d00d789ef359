// matmul_nbits_exact16 on Hopper, the host's part: weights in blocks (layout.cuh), their
// factors in tiles, and what a call's shared memory holds.
#pragma once
#include <utility>

#include "kernels/cuda/hopper.cuh"
#include "kernels/fusion/join_kernels.h"
#include "ops/matmul/cuda/exact16/nbits/layout.cuh"
#include "ops/matmul/cuda/exact16/quantize.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int64_t kPartK = 32;  // k of a row of t where groups are shorter than kBlockK

inline bool fits_blocks(int64_t block) {
  return block % kBlockK == 0 || block == 32 || block == 64;
}
inline NbitsGroups groups_of(int64_t block) {
  if (block == 0) return NbitsGroups::whole;
  return block < kBlockK ? NbitsGroups::parts : NbitsGroups::chunks;
}
// Rows of t, and of zero points, of a tile.
inline int64_t rows_of_t(int64_t block, int64_t blocks) {
  if (groups_of(block) != NbitsGroups::parts) return blocks;
  return ceil_div(blocks * block, kBlockK) * (kBlockK / kPartK);
}
__device__ inline int64_t group_of_row(int64_t block, int64_t row) {
  return block == 32 || block == 64 ? row * kPartK / block : row;
}

inline int64_t tiles_of(const matmul::Nbits& l) {
  return ceil_div(l.n, kBlockRows);
}
inline size_t blocks_bytes(const matmul::Nbits& of_b) {
  return static_cast<size_t>(tiles_of(of_b) * ceil_div(of_b.k, kBlockK) * nbits_block_bytes(of_b.bits));
}
inline void enqueue_blocks(const matmul::Nbits& l, const View& b, void* to, Stream stream) {
  const int64_t words = nbits_block_bytes(l.bits) / 4, chunks = ceil_div(l.k, kBlockK);
  auto* const out = static_cast<uint32_t*>(to);
  launch_for_each(stream, tiles_of(l) * chunks * words, [=] __device__(int64_t at) {
    const int64_t tile = at / words / chunks * kBlockRows, k0 = at / words % chunks * kBlockK;
    const int i = static_cast<int>(at % words);
    auto q = [&](int row, int64_t k) -> uint32_t {  // signed
      if (tile + row >= l.n || k >= l.k) return 0;
      const auto u = static_cast<uint32_t>(matmul::integer(l, b, tile + row, k));
      return l.bits == 8 ? u ^ 0x80 : u ^ 8;
    };
    uint32_t w = 0;
    if (l.bits == 8) {
      const int row = i / 32, group = i % 32 / 4 ^ (row & 7);
      for (int j = 0; j < 4; ++j) w |= q(row, k0 + group * 16 + i % 4 * 4 + j) << 8 * j;
    } else {
      const int step = i / 512 * 2 + i % 4 / 2, thread = i / 4 % 128;
      const int row = thread / kWarp * 16 + thread % kWarp / 4;
      const int64_t k = k0 + step * 32 + i % 2 * 16 + thread % 4 * 4;
      for (int j = 0; j < 4; ++j) w |= (q(row, k + j) << 4 | q(row + 8, k + j)) << 8 * j;
    }
    out[at] = w;
  });
}

// t of each tile, [rows][64]; then es of all tiles' columns.
__global__ void round_tiles_kernel(matmul::Nbits l, View scales, bool one, int64_t rows, int32_t* to) {
  trigger_and_wait();
  const int64_t all = ceil_div(l.n, kBlockRows) * kBlockRows;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t j = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; j < all; j += step) {
    auto at = [&](int64_t g) {
      const int64_t i = matmul::scale_index(l, one, j, g);
      if (scales.dtype == DType::f32) return static_cast<const float*>(scales.data)[i];
      const uint16_t h = static_cast<const uint16_t*>(scales.data)[i];
      return scales.dtype == DType::bf16 ? num::f32_from_bf16(h) : num::f32_from_f16(h);
    };
    uint32_t largest = 0;
    for (int64_t g = 0; j < l.n && g < l.blocks; ++g) {
      const uint32_t u = __float_as_uint(at(g)) & 0x7fffffff;
      largest = u > largest ? u : largest;
    }
    const int32_t e = num::exact16_scale_of_scales(num::exact16_scale(largest));
    const bool none = e == num::kExact16NoIntegers || j >= l.n;
    const num::Exact16Factors by = num::exact16_factors(none ? 0 : e);
    int32_t* const t = to + j / kBlockRows * rows * kBlockRows + j % kBlockRows;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t g = group_of_row(l.block, r);
      t[r * kBlockRows] = none || g >= l.blocks ? 0 : __float2int_rn(at(g) * by.first * by.second);
    }
    to[all * rows + j] = e;
  }
}
inline size_t tiles_bytes(const matmul::Nbits& l) {
  return static_cast<size_t>(tiles_of(l) * kBlockRows * (rows_of_t(l.block, l.blocks) + 1)) * sizeof(int32_t);
}
inline void enqueue_tiles_of_t(const matmul::Nbits& l, const View& scales, void* to, Stream stream) {
  constexpr int kThreads = 64;
  launch_dependent(round_tiles_kernel, dim3(grid_for(tiles_of(l))), dim3(kThreads), 0, stream, l, scales,
                   scales.elements() == 1, rows_of_t(l.block, l.blocks), static_cast<int32_t*>(to));
}

// What an operand of zero points says of them: groups of 4 bits are rounded up to an even number.
inline matmul::Nbits zeros_of(const View& zeros, const Attributes& attrs) {
  matmul::Nbits l = matmul::nbits_of(zeros, 3, attrs);
  l.block = MatmulNbitsAttributes(attrs).block;
  if (l.block == 0) l.blocks = 1;
  return l;
}
inline size_t zeros_bytes(const matmul::Nbits& l) {
  return static_cast<size_t>(tiles_of(l) * kBlockRows * rows_of_t(l.block, l.blocks)) * sizeof(int32_t);
}
// Zero points, less what the integers as they are held are less, times what these are enlarged by.
inline void enqueue_zeros(const matmul::Nbits& l, const uint8_t* zeros, bool one, int32_t* to,
                          Stream stream) {
  const int64_t rows = rows_of_t(l.block, l.blocks);
  launch_for_each(stream, tiles_of(l) * rows * kBlockRows, [=] __device__(int64_t i) {
    const int64_t j = i / (rows * kBlockRows) * kBlockRows + i % kBlockRows;
    const int64_t g = group_of_row(l.block, i / kBlockRows % rows);
    if (j >= l.n || g >= l.blocks) {
      to[i] = 0;
    } else {
      const int z = zeros ? matmul::zero_point(l, zeros, one, j, g) : matmul::zero_point(l);
      to[i] = l.bits == 8 ? z - 128 : 16 * (z - 8);
    }
  });
}
// Sums of pieces of the rows' integers: [tile of rows][piece][row].
inline void enqueue_piece_sums(const Planes& a, int64_t piece, int64_t pieces, int32_t* sums, Stream stream) {
  launch_for_each(stream, a.tiles * pieces * a.height, [=] __device__(int64_t i) {
    const int row = static_cast<int>(i % a.height);
    const int64_t tile = i / a.height / pieces, first = i / a.height % pieces * piece;
    int h = 0, l = 0;
    for (int64_t k = first; k < first + piece && k < a.chunks * kBlockK; k += kGroup) {
      const uint8_t* const at = a.block(0, tile, k / kBlockK) + row * kBlockK +
                                (static_cast<int>(k % kBlockK) / kGroup ^ (row & 7)) * kGroup;
      const uint4 of_h = *reinterpret_cast<const uint4*>(at);
      const uint4 of_l = *reinterpret_cast<const uint4*>(at + a.height * kBlockK);
      auto sum = [](const uint4& x, int s) {
        s = __dp4a(static_cast<int>(x.x), 0x01010101, s), s = __dp4a(static_cast<int>(x.y), 0x01010101, s);
        return __dp4a(static_cast<int>(x.w), 0x01010101, __dp4a(static_cast<int>(x.z), 0x01010101, s));
      };
      h = sum(of_h, h), l = sum(of_l, l);
    }
    sums[i] = 256 * h + l;
  });
}

// Few rows, or tiles of many that would leave multiprocessors without work: chunks cut evenly.
inline bool takes_gemv(const matmul::Nbits& l, int64_t rows, int forced) {
  const bool whole = groups_of(l.block) == NbitsGroups::whole;
  if (whole && l.k > kWholePiece) return true;
  if (forced) return forced == 3;
  if (rows <= kBlockRows) return true;
  const int64_t most = multiprocessors();
  const int64_t tiles =
      whole ? ceil_div(rows, 128) * ceil_div(l.n, 128) : ceil_div(rows, 64) * ceil_div(l.n, 192);
  const int64_t waves = ceil_div(tiles, most);
  return 4 * tiles < 3 * waves * most && waves <= 2;
}

// Zero points that the integers as blocks hold them do not have.
inline bool blocks_have_zeros(const Call& call, const matmul::Nbits& l) {
  return call.in.size() > 3 || matmul::zero_point(l) != (l.bits == 8 ? 128 : 8);
}
inline bool is_packed(const Call& call) {
  return call.in[1].packed && call.in[2].packed;
}

// The number of the first calls that share their rounded rows: products of the same rows with
// packed matrices alike but for their columns. One kernel computes them if it is that of few rows.
inline size_t count_nbits_together(std::span<const Call* const> calls, int forced) {
  const Call& first = *calls[0];
  const matmul::Nbits l = matmul::nbits(first);
  const int64_t rows = row_count(first.in[0]), k_of_b = matmul::nbits(first.in[1], *first.attrs).k;
  const bool zeros = blocks_have_zeros(first, l);
  const auto fits = [&](const Call& call) {
    const matmul::Nbits t = matmul::nbits(call);
    return is_packed(call) && call.in[0].data == first.in[0].data && row_count(call.in[0]) == rows &&
           t.k == l.k && t.bits == l.bits && t.block == l.block && blocks_have_zeros(call, t) == zeros &&
           matmul::nbits(call.in[1], *call.attrs).k == k_of_b && call.out[0].elements() > 0;
  };
  matmul::Nbits all = l;
  bool gemm = !takes_gemv(l, rows, forced);
  size_t count = 1;
  for (; fits(first) && count < calls.size() && count < kMostTogether && fits(*calls[count]); ++count) {
    const matmul::Nbits t = matmul::nbits(*calls[count]);
    all.n = tiles_of(all) * kBlockRows + t.n;
    gemm = gemm && !takes_gemv(t, rows, forced);
    if (!gemm && !takes_gemv(all, rows, forced)) break;
  }
  return count;
}

// Call::shared of such calls: planes of a, right behind its scales the counters of few rows; sums
// of its pieces and tables of zero points; what is not packed of the scales and of b; the sums of
// few rows.
struct NbitsBlocks {
  bool gemv, has_zeros;
  GemvWork work;
  int64_t rows, piece, pieces, counters;
  int height;
  size_t counters_at, of_a, zeros, t, b, sums, end;
};
inline size_t whole_lines(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}
// Bytes of a call's table of zero points that are not packed.
inline size_t zeros_in_shared(const Call& call, const matmul::Nbits& l) {
  const bool packed = call.in.size() > 3 && call.in[3].packed;
  return blocks_have_zeros(call, l) && !packed ? whole_lines(zeros_bytes(l)) : 0;
}
inline NbitsBlocks blocks_of(std::span<const Call* const> calls, int forced) {
  const Call& call = *calls[0];
  const matmul::Nbits l = matmul::nbits(call);
  NbitsBlocks p{};
  p.rows = row_count(call.in[0]);
  p.has_zeros = blocks_have_zeros(call, l);
  matmul::Nbits all = l;
  size_t zeros = zeros_in_shared(call, l);
  for (const Call* const more : calls.subspan(1)) {
    const matmul::Nbits t = matmul::nbits(*more);
    all.n = tiles_of(all) * kBlockRows + t.n;
    zeros += zeros_in_shared(*more, t);
  }
  p.gemv = takes_gemv(all, p.rows, forced);
  matmul::Shape s{};
  s.m = p.rows, s.n = all.n, s.k = l.k, s.batches = 1;
  if (p.gemv) p.work = gemv_work(s, multiprocessors()), p.counters = gemv_counters(p.work);
  const NbitsGroups groups = groups_of(l.block);
  p.height = p.gemv ? p.work.rows : groups == NbitsGroups::whole ? 128 : 64;
  p.piece = groups == NbitsGroups::whole ? kWholePiece : groups == NbitsGroups::chunks ? kBlockK : kPartK;
  p.pieces = ceil_div(ceil_div(l.k, kBlockK) * kBlockK, p.piece);
  const int64_t padded = ceil_div(p.rows, p.height) * p.height;
  p.counters_at = planes_bytes(1, p.rows, l.k, p.height);
  p.of_a = whole_lines(p.counters_at + static_cast<size_t>(p.counters) * sizeof(uint32_t));
  p.zeros =
      p.of_a + (p.has_zeros ? whole_lines(static_cast<size_t>(padded * p.pieces) * sizeof(int32_t)) : 0);
  p.t = p.zeros + zeros;
  p.b = p.t + (call.in[2].packed ? 0 : whole_lines(tiles_bytes(l)));
  p.sums = p.b + (call.in[1].packed ? 0 : whole_lines(blocks_bytes(matmul::nbits(call.in[1], *call.attrs))));
  p.end = p.sums + (p.gemv ? gemv_bytes(p.work) : 0);
  return p;
}

// The rows of a, rounded; the counters are zeroed. To a producer they are scales of whole tiles.
inline void enqueue_nbits_rounding(const Call& call, const NbitsBlocks& at, const Planes& a, int64_t k,
                                   const GpuFusion& fusion, Stream stream) {
  if (fusion.producers.empty())
    return enqueue_rows(RowsOf<F32>{call.in[0].as<const float>(), k, at.rows, 1, k, 1}, a, false,
                        at.work.counters, static_cast<int>(at.counters), stream);
  const RoundedRows rows{a.blocks, a.scales, a.tiles + at.counters / a.height, a.chunks, a.height};
  enqueue_producers(fusion, rows, stream);
}
// out = out + addend, element by element.
inline void enqueue_addend(float* out, const float* addend, int64_t count, Stream stream) {
  launch_for_each(stream, count, [=] __device__(int64_t i) { out[i] = with_addend(out[i], addend[i]); });
}

// A call's table of zero points: packed, or made in shared memory.
inline const int32_t* zeros_of_call(const Call& call, const matmul::Nbits& l, uint8_t* shared,
                                    Stream stream) {
  const View* const operand = call.in.size() > 3 ? &call.in[3] : nullptr;
  if (operand && operand->packed) return operand->as<const int32_t>();
  auto* const to = reinterpret_cast<int32_t*>(shared);
  enqueue_zeros(l, operand ? operand->as<const uint8_t>() : nullptr, operand && operand->elements() == 1, to,
                stream);
  return to;
}
inline int64_t z_rows_of(const Call& call, const matmul::Nbits& l) {
  const bool packed = call.in.size() > 3 && call.in[3].packed;
  return rows_of_t(l.block, packed ? zeros_of(call.in[3], *call.attrs).blocks : l.blocks);
}

// The products of calls that share their rounded rows.
inline void enqueue_nbits_blocks(std::span<const Call* const> calls, const GpuFusion& fusion, int forced,
                                 Stream stream) {
  const Call& first = *calls[0];
  const matmul::Nbits l = matmul::nbits(first);
  NbitsBlocks at = blocks_of(calls, forced);
  auto* const shared = static_cast<uint8_t*>(first.shared);
  at.work.counters = reinterpret_cast<uint32_t*>(shared + at.counters_at);
  at.work.sums = reinterpret_cast<int64_t*>(shared + at.sums);
  const Planes a = planes(shared, 1, at.rows, l.k, at.height);
  enqueue_nbits_rounding(first, at, a, l.k, fusion, stream);
  auto* const sums = reinterpret_cast<int32_t*>(shared + at.of_a);
  if (at.has_zeros) enqueue_piece_sums(a, at.piece, at.pieces, sums, stream);
  NbitsTogether all{static_cast<int>(calls.size()), {}, {}};
  int tiles = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    const Call& call = *calls[i];
    const matmul::Nbits c = matmul::nbits(call), of_b = matmul::nbits(call.in[1], *call.attrs);
    NbitsProduct& in = all.of[i];
    in = {at.rows, c.n, a};
    void *blocks = call.in[1].data, *t = call.in[2].data;
    if (!call.in[1].packed) enqueue_blocks(of_b, call.in[1], blocks = shared + at.b, stream);
    if (!call.in[2].packed) enqueue_tiles_of_t(c, call.in[2], t = shared + at.t, stream);
    in.b = static_cast<const uint8_t*>(blocks), in.t = static_cast<const int32_t*>(t);
    in.chunks_b = ceil_div(of_b.k, kBlockK), in.chunks = ceil_div(c.k, kBlockK);
    in.t_rows = rows_of_t(c.block, c.blocks), in.pieces = at.pieces;
    in.es = in.t + tiles_of(c) * kBlockRows * in.t_rows;
    in.chunks_per_t = static_cast<int>(c.block < kBlockK ? 1 : c.block / kBlockK);
    in.out = call.out[0].as<float>(), in.addend = fusion.addends.empty() ? nullptr : fusion.addends[i];
    if (at.has_zeros) {
      in.of_a = sums, in.zeros = zeros_of_call(call, c, shared + at.zeros, stream);
      in.z_rows = z_rows_of(call, c);
      at.zeros += zeros_in_shared(call, c);
    }
    all.first[i] = tiles, tiles += static_cast<int>(tiles_of(c));
  }
#ifdef INVAR_SM90A
  const int bits = static_cast<int>(l.bits);
  if (at.gemv)
    return enqueue_nbits_gemv_hopper(all, bits, groups_of(l.block), at.work, first.in[1].packed, stream);
  for (size_t i = 0; i < calls.size(); ++i) {
    NbitsProduct& in = all.of[i];
    const float* const addend = std::exchange(in.addend, nullptr);  // many rows' kernel adds none
    enqueue_nbits_gemm_hopper(in, bits, groups_of(l.block), stream);
    if (addend) enqueue_addend(in.out, addend, in.m * in.n, stream);
  }
#endif
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
