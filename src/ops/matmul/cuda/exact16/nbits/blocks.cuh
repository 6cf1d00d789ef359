// matmul_nbits_exact16 on Hopper, the host's part: weights in blocks (layout.cuh), their
// factors in tiles, and what a call's shared memory holds.
#pragma once
#include "kernels/cuda/hopper.cuh"
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

// Call::shared: planes of a; sums of its pieces and a table of zero points; what is not packed of
// the scales and of b; the counters and sums of few rows.
struct NbitsBlocks {
  bool gemv;
  GemvWork work;
  int64_t rows, piece, pieces;
  int height;
  size_t of_a, zeros, t, b, sums, end;
};
inline NbitsBlocks blocks_of(const Call& call, const matmul::Nbits& l, bool zeros, int forced) {
  auto whole = [](size_t bytes) { return (bytes + 255) / 256 * 256; };
  NbitsBlocks p{};
  p.rows = row_count(call.in[0]);
  p.gemv = takes_gemv(l, p.rows, forced);
  matmul::Shape s{};
  s.m = p.rows, s.n = l.n, s.k = l.k, s.batches = 1;
  if (p.gemv) p.work = gemv_work(s, multiprocessors());
  const NbitsGroups groups = groups_of(l.block);
  p.height = p.gemv ? p.work.rows : groups == NbitsGroups::whole ? 128 : 64;
  p.piece = groups == NbitsGroups::whole ? kWholePiece : groups == NbitsGroups::chunks ? kBlockK : kPartK;
  p.pieces = ceil_div(ceil_div(l.k, kBlockK) * kBlockK, p.piece);
  const int64_t padded = ceil_div(p.rows, p.height) * p.height;
  p.of_a = whole(planes_bytes(1, p.rows, l.k, p.height));
  p.zeros = p.of_a + (zeros ? whole(static_cast<size_t>(padded * p.pieces) * sizeof(int32_t)) : 0);
  p.t = p.zeros + (zeros ? whole(tiles_bytes(l)) : 0);
  p.b = p.t + (call.in[2].packed ? 0 : whole(tiles_bytes(l)));
  p.sums = p.b + (call.in[1].packed ? 0 : whole(blocks_bytes(matmul::nbits(call.in[1], *call.attrs))));
  p.end = p.sums + (p.gemv ? gemv_bytes(p.work) : 0);
  return p;
}
inline void enqueue_nbits_blocks(const Call& call, const matmul::Nbits& l, bool has_zeros, int forced,
                                 Stream stream) {
  NbitsBlocks at = blocks_of(call, l, has_zeros, forced);
  auto* const shared = static_cast<uint8_t*>(call.shared);
  int counters = 0;
  if (at.gemv) {
    counters = static_cast<int>(gemv_counters(at.work));
    at.work.counters = reinterpret_cast<uint32_t*>(shared + at.sums);
    at.work.sums = reinterpret_cast<int64_t*>(at.work.counters + counters);
  }
  NbitsProduct in{at.rows, l.n, planes(shared, 1, at.rows, l.k, at.height)};
  const View &b = call.in[1], &scales = call.in[2];
  const matmul::Nbits of_b = matmul::nbits(b, *call.attrs);
  void *blocks = b.data, *t = scales.data;
  if (!b.packed) enqueue_blocks(of_b, b, blocks = shared + at.b, stream);
  if (!scales.packed) enqueue_tiles_of_t(l, scales, t = shared + at.t, stream);
  in.b = static_cast<const uint8_t*>(blocks), in.t = static_cast<const int32_t*>(t);
  in.chunks_b = ceil_div(of_b.k, kBlockK), in.chunks = ceil_div(l.k, kBlockK);
  in.t_rows = rows_of_t(l.block, l.blocks), in.pieces = at.pieces;
  in.es = in.t + tiles_of(l) * kBlockRows * in.t_rows;
  in.chunks_per_t = static_cast<int>(l.block < kBlockK ? 1 : l.block / kBlockK);
  in.out = call.out[0].as<float>();
  enqueue_rows(RowsOf<F32>{call.in[0].as<const float>(), l.k, at.rows, 1, l.k, 1}, in.a, false,
               at.work.counters, counters, stream);
  if (has_zeros) {
    auto* const sums = reinterpret_cast<int32_t*>(shared + at.of_a);
    auto* const zeros = reinterpret_cast<int32_t*>(shared + at.zeros);
    const bool operand = call.in.size() > 3;
    enqueue_piece_sums(in.a, at.piece, at.pieces, sums, stream);
    enqueue_zeros(l, operand ? call.in[3].as<const uint8_t>() : nullptr,
                  operand && call.in[3].elements() == 1, zeros, stream);
    in.of_a = sums, in.zeros = zeros;
  }
#ifdef INVAR_SM90A
  const bool packed = b.packed;
  if (at.gemv)
    enqueue_nbits_gemv_hopper(in, static_cast<int>(l.bits), groups_of(l.block), at.work, packed, stream);
  else
    enqueue_nbits_gemm_hopper(in, static_cast<int>(l.bits), groups_of(l.block), stream);
#endif
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
