// matmul_nbits_exact16 on Hopper (nbits/blocks.cuh), on other tensor cores (nbits/mma.cuh), or by
// dp2a, two products of a 16-bit integer of a and a byte of b at a time. b is held by columns, as
// signed bytes or as halves of bytes. A group's sum takes its zero point from the sum of the row's
// integers, and is exact in int32 for kPieceWords words. Times the group's t it is added in int64
// (matmul_nbits_exact16.3).
#include "kernels/forced_route.h"
#include "ops/matmul/cuda/exact16/nbits/blocks.cuh"
#include "ops/matmul/cuda/exact16/nbits/mma.cuh"
#include "ops/matmul/cuda/exact16/nbits/rounded_rows.cuh"
#include "ops/matmul/cuda/exact16/round_rows.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// Words of four k: of a tile, and of the smallest group.
constexpr int kWords = 16, kStepWords = 4;
constexpr int64_t kPieceWords = 64;  // 32639 * 255 * 256 < 2^31

// t of each group and column, [groups][n], then es of each column.
__global__ void round_scales_kernel(matmul::Nbits l, View scales, bool one, int32_t* to) {
  trigger_and_wait();
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t j = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; j < l.n; j += step) {
    auto at = [&](int64_t g) {
      const int64_t i = matmul::scale_index(l, one, j, g);
      if (scales.dtype == DType::f32) return static_cast<const float*>(scales.data)[i];
      const uint16_t h = static_cast<const uint16_t*>(scales.data)[i];
      return scales.dtype == DType::bf16 ? num::f32_from_bf16(h) : num::f32_from_f16(h);
    };
    uint32_t largest = 0;
    for (int64_t g = 0; g < l.blocks; ++g) {
      const uint32_t u = __float_as_uint(at(g)) & 0x7fffffff;
      largest = u > largest ? u : largest;
    }
    const int32_t e = num::exact16_scale_of_scales(num::exact16_scale(largest));
    const bool none = e == num::kExact16NoIntegers;
    const num::Exact16Factors by = num::exact16_factors(none ? 0 : e);
    for (int64_t g = 0; g < l.blocks; ++g)
      to[g * l.n + j] = none ? 0 : __float2int_rn(at(g) * by.first * by.second);
    to[l.blocks * l.n + j] = e;
  }
}
size_t scales_bytes(const matmul::Nbits& l) {
  return static_cast<size_t>((l.blocks + 1) * l.n) * sizeof(int32_t);
}
void enqueue_scales(const matmul::Nbits& l, const View& scales, void* to, Stream stream) {
  constexpr int kThreads = 64;
  if (l.n)
    launch_dependent(round_scales_kernel, dim3(grid_for(ceil_div(l.n, kThreads))), dim3(kThreads), 0, stream,
                     l, scales, scales.elements() == 1, static_cast<int32_t*>(to));
}

struct NbitsRounded {
  matmul::Nbits l;
  Rounded a;
  const uint8_t* b;  // columns of ld_b integers
  const int32_t* t;
  const uint8_t* zeros;  // null: l.zero
  bool one_zero;
  int64_t ld_b, rows, words_a, words;  // words: of four k
  int64_t row_blocks, column_blocks;
};

// The signed bytes of four k of a column.
template <int kBits>
__device__ uint32_t four_bytes(const NbitsRounded& in, int64_t w, int64_t j) {
  if constexpr (kBits == 8) {
    return *reinterpret_cast<const uint32_t*>(in.b + j * in.ld_b + 4 * w);
  } else {
    const uint32_t x = *reinterpret_cast<const uint16_t*>(in.b + j * (in.ld_b / 2) + 2 * w);
    return __byte_perm(x & 0x0f0f, x >> 4 & 0x0f0f, 0x5140);
  }
}

template <int kBits>
__global__ void __launch_bounds__(kTileThreads) nbits_exact16_kernel(NbitsRounded in, float* out) {
  trigger_and_wait();
  __shared__ uint32_t tile_a[2 * kWords][kTile + 4], tile_b[kWords][kTile + 4];
  const matmul::Nbits& l = in.l;
  for (int64_t t = blockIdx.x; t < in.row_blocks * in.column_blocks; t += gridDim.x) {
    const int64_t i0 = t % in.row_blocks * kTile, j0 = t / in.row_blocks * kTile;
    const int ti = threadIdx.x / (kTile / kThreadTile) * kThreadTile;
    const int tj = threadIdx.x % (kTile / kThreadTile) * kThreadTile;
    int64_t sum[kThreadTile][kThreadTile] = {};
    int piece[kThreadTile][kThreadTile] = {}, of_a[kThreadTile] = {};
    auto join = [&](int64_t group) {
      for (int c = 0; c < kThreadTile && j0 + tj + c < l.n; ++c) {
        const int64_t j = j0 + tj + c;
        const int offset = kBits == 8 ? 128 : 0;
        const int z =
            (in.zeros ? matmul::zero_point(l, in.zeros, in.one_zero, j, group) : matmul::zero_point(l)) -
            offset;
        const int64_t of_group = in.t[group * l.n + j];
        for (int r = 0; r < kThreadTile; ++r) sum[r][c] += of_group * (piece[r][c] - z * of_a[r]);
      }
      for (int r = 0; r < kThreadTile; ++r) {
        of_a[r] = 0;
        for (int c = 0; c < kThreadTile; ++c) piece[r][c] = 0;
      }
    };
    for (int64_t w0 = 0; w0 < in.words; w0 += kWords) {
      __syncthreads();
      for (int p = threadIdx.x; p < kTile * 2 * kWords; p += kTileThreads) {
        const int64_t w = 2 * w0 + p % (2 * kWords), i = i0 + p / (2 * kWords);
        tile_a[p % (2 * kWords)][p / (2 * kWords)] =
            w < in.words_a && i < in.rows ? in.a.words[i * in.words_a + w] : 0;
      }
      for (int p = threadIdx.x; p < kTile * kWords; p += kTileThreads) {
        const int64_t w = w0 + p / kTile, j = j0 + p % kTile;
        tile_b[p / kTile][p % kTile] = w < in.words && j < l.n ? four_bytes<kBits>(in, w, j) : 0;
      }
      __syncthreads();
      for (int at = 0; at < kWords && w0 + at < in.words; at += kStepWords) {
        for (int w = at; w < at + kStepWords; ++w) {
          int x[kThreadTile][2], y[kThreadTile];
          for (int r = 0; r < kThreadTile; ++r) {
            x[r][0] = static_cast<int>(tile_a[2 * w][ti + r]);
            x[r][1] = static_cast<int>(tile_a[2 * w + 1][ti + r]);
            of_a[r] = __dp2a_lo(x[r][0], 0x0101, __dp2a_lo(x[r][1], 0x0101, of_a[r]));
          }
          for (int c = 0; c < kThreadTile; ++c) y[c] = static_cast<int>(tile_b[w][tj + c]);
          for (int r = 0; r < kThreadTile; ++r)
            for (int c = 0; c < kThreadTile; ++c)
              piece[r][c] = __dp2a_hi(x[r][1], y[c], __dp2a_lo(x[r][0], y[c], piece[r][c]));
        }
        const int64_t end = w0 + at + kStepWords;
        const bool ends_group = l.block && 4 * end % l.block == 0;
        if (ends_group || end % kPieceWords == 0 || end >= in.words)
          join(l.block ? (4 * (end - kStepWords)) / l.block : 0);
      }
    }
    for (int r = 0; r < kThreadTile; ++r)
      for (int c = 0; c < kThreadTile; ++c) {
        const int64_t i = i0 + ti + r, j = j0 + tj + c;
        if (i < in.rows && j < l.n)
          out[i * l.n + j] = rounded_result(sum[r][c], in.a.scales[i], in.t[l.blocks * l.n + j]);
      }
  }
}

// b by columns: K rounded up to pieces of 16, from b's own K, which may be whole blocks.
int64_t column_length(const matmul::Nbits& of_b) {
  return ceil_div(of_b.k, 16) * 16;
}
size_t columns_bytes(const matmul::Nbits& of_b) {
  return static_cast<size_t>(of_b.n * column_length(of_b) * of_b.bits / 8);
}
void enqueue_columns(const matmul::Nbits& l, const View& b, void* to, Stream stream) {
  const int64_t per_word = 32 / l.bits, words = column_length(l) / per_word;
  auto* const out = static_cast<uint32_t*>(to);
  launch_for_each(stream, l.n * words, [=] __device__(int64_t at) {
    const int64_t j = at / words, first = at % words * per_word;
    uint32_t w = 0;
    for (int64_t i = 0; i < per_word && first + i < l.k; ++i) {
      const auto q = static_cast<uint32_t>(matmul::integer(l, b, j, first + i));
      w |= (l.bits == 8 ? q ^ 0x80 : q) << l.bits * i;
    }
    out[at] = w;
  });
}

int offset_of(const matmul::Nbits& l) {  // of q and of zero points as they are held
  return l.bits == 8 ? 128 : 0;
}
// One group for all of K, whose sums of each plane fit 32 bits.
bool is_whole(const matmul::Nbits& l) {
  return l.block == 0 && l.k <= 65536;
}
int64_t piece_of(const matmul::Nbits& l) {
  if (is_whole(l)) return l.k;
  return l.block == 0 || l.block > kLongestPiece ? kLongestPiece : l.block;
}
// 0: any; 1: by dp2a; 2: tensor cores that Ampere has; 3, 4: Hopper, as few rows, as many.
int forced() {
  return variant() % 5;
}
// Decided without the rows of a, from b alone.
bool takes_blocks(const matmul::Nbits& of_b) {
  return of_b.k > 0 && fits_blocks(of_b.block) && forced() != 1 && forced() != 2 && has_hopper();
}
bool takes_mma(const matmul::Nbits& l) {
  if (forced() == 1 || l.k == 0) return false;
  const int64_t piece = piece_of(l);
  return has_tensor_cores() && (is_whole(l) || (piece % 32 == 0 && l.block % piece == 0));
}
bool has_zeros(const Call& call, const matmul::Nbits& l) {
  return call.in.size() > 3 || matmul::zero_point(l) != offset_of(l);
}

// Few rows: K may be split where parts of two steps are whole pieces.
constexpr int64_t kSplitRows = 128;
bool may_split(const matmul::Nbits& l, int64_t rows) {
  return !is_whole(l) && rows <= kSplitRows && 2 * kStepK % piece_of(l) == 0;
}
// Call::shared: rows of a, as words or planes, and their scales; sums of pieces and a table of zero
// points for tensor cores, sums of the planes; then what is not packed of the scales and of b.
struct NbitsParts {
  size_t scales_a, sums, zeros, planes, scales, b, end;
};
// Rows whose sums of both planes are held at a time.
int64_t rows_at_once(int64_t rows, int64_t n) {
  constexpr int64_t kElements = int64_t{1} << 24, kFewest = 256;
  const int64_t fit = kElements / (n < 1 ? 1 : n) / kFewest * kFewest;
  return num::min_i64(rows, fit < kFewest ? kFewest : fit);
}
NbitsParts parts_of(const Call& call) {
  const matmul::Nbits l = matmul::nbits(call);
  const int64_t rows = row_count(call.in[0]);
  const bool mma = takes_mma(l);
  NbitsParts p{};
  auto size = [](int64_t count) { return aligned(static_cast<size_t>(count) * sizeof(int32_t)); };
  p.scales_a = mma ? aligned(static_cast<size_t>(2 * rows * ceil_div(l.k, 16) * 16)) : 0;
  p.sums = p.scales_a + (mma ? size(rows) : aligned(rounded_bytes(rows, ceil_div(l.k, 2))));
  p.zeros = p.sums + (mma && has_zeros(call, l) ? size(rows * ceil_div(l.k, piece_of(l))) : 0);
  p.planes = p.zeros + (mma && has_zeros(call, l) ? size((call.in.size() > 3 ? l.blocks : 1) * l.n) : 0);
  p.scales = p.planes + (mma && is_whole(l)          ? size(2 * rows_at_once(rows, l.n) * l.n)
                         : mma && may_split(l, rows) ? size(2 * rows * l.n)
                                                     : 0);
  p.b = p.scales + (call.in[2].packed ? 0 : aligned(scales_bytes(l)));
  p.end = p.b + (call.in[1].packed ? 0 : columns_bytes(matmul::nbits(call.in[1], *call.attrs)));
  return p;
}
// Rows of a that a producer rounds for the kernels that do not read blocks.
Planes produced_rows(const Call& call, int64_t k) {
  return planes(call.shared, 1, row_count(call.in[0]), k, kBlockRows);
}
size_t produced_bytes(const Call& call, int64_t k) {
  return aligned(planes_bytes(1, row_count(call.in[0]), k, kBlockRows));
}
bool takes_blocks(const Call& call) {
  return matmul::nbits(call).k > 0 && takes_blocks(matmul::nbits(call.in[1], *call.attrs));
}
size_t count_together(std::span<const Call* const> calls) {
  return takes_blocks(*calls[0]) ? count_nbits_together(calls, forced()) : 1;
}
size_t shared_bytes_nbits_exact16(const Call& call) {
  if (!takes_blocks(call)) return parts_of(call).end;
  const Call* const one = &call;
  return call.out[0].elements() ? blocks_of({&one, 1}, forced()).end : 0;
}
size_t shared_bytes_nbits_exact16_batch(std::span<const Call* const> calls) {
  size_t most = 0, bytes;
  for (size_t at = 0, count; at<calls.size(); at += count, most = bytes> most ? bytes : most) {
    const Call& first = *calls[at];
    count = count_together(calls.subspan(at)), bytes = shared_bytes_nbits_exact16(first);
    if (!takes_blocks(first))
      bytes += produced_bytes(first, matmul::nbits(first).k);
    else if (count > 1)
      bytes = blocks_of(calls.subspan(at, count), forced()).end;
  }
  return most;
}

void enqueue_whole(const NbitsPlanes& in, int32_t* sums, float* out, Stream stream) {
  constexpr int kThreads = 256;
  const int64_t most = rows_at_once(in.rows, in.l.n);
  for (int64_t first = 0; first < in.rows; first += most) {
    const int64_t rows = num::min_i64(most, in.rows - first);
    ByteProducts p{};
    p.s.m = p.rows_a = rows, p.s.n = in.l.n, p.s.k = in.l.k;
    p.s.rank = 1, p.s.batches = p.s.dim[0] = 2, p.s.stride_a[0] = in.rows * in.l.k;  // h, then l
    p.a = in.a + first * in.ld, p.b = in.b, p.ld_a = in.ld, p.ld_b = in.ld_b, p.out = sums;
    p.zero_a.one = p.zero_b.one = true;
    enqueue_byte_products(p, false, variant() / 5 % 4, stream);
    launch_dependent(join_planes_kernel, dim3(grid_for(ceil_div(rows * in.l.n, kThreads))), dim3(kThreads), 0,
                     stream, in, sums, first, rows, out);
  }
}
// Parts of K for few rows, of whole pieces, until their tiles fill the machine.
int64_t splits_of(const NbitsPlanes& in) {
  const int64_t wanted = 2 * multiprocessors() / (in.row_tiles * in.column_tiles);
  const int64_t most = in.l.k / (4 * kStepK);
  const int64_t splits = wanted < most ? wanted : most;
  return may_split(in.l, in.rows) && splits > 1 ? splits : 1;
}
void enqueue_mma(const Call& call, const NbitsParts& at, const NbitsRounded& of, const Planes* rounded,
                 Stream stream) {
  const matmul::Nbits l = of.l;
  auto* const shared = static_cast<uint8_t*>(call.shared);
  NbitsPlanes in{l, of.rows, ceil_div(l.k, 16) * 16, of.ld_b, shared};
  auto* const scales = reinterpret_cast<int32_t*>(shared + at.scales_a);
  in.ea = scales, in.b = of.b, in.t = of.t;
  in.piece = piece_of(l), in.pieces = ceil_div(l.k, in.piece), in.zero_groups = 1;
  in.row_tiles = ceil_div(in.rows, NbitsTile::kRows), in.column_tiles = ceil_div(l.n, NbitsTile::kColumns);
  if (rounded)
    enqueue_planes_of(*rounded, in.rows, in.ld, shared, scales, stream);
  else
    launch_dependent(round_planes_kernel, dim3(grid_for(in.rows)), dim3(kRoundThreads), 0, stream,
                     RowsToRound<F32>{call.in[0].as<const float>(), l.k, 0, in.rows, l.k, 1}, in.ld, shared,
                     scales);
  if (has_zeros(call, l)) {
    auto* const sums = reinterpret_cast<int32_t*>(shared + at.sums);
    constexpr int kThreads = 256;
    launch_dependent(piece_sums_kernel, dim3(grid_for(ceil_div(in.rows * in.pieces, kThreads / kWarp))),
                     dim3(kThreads), 0, stream, in, sums);
    auto* const table = reinterpret_cast<int32_t*>(shared + at.zeros);
    const uint8_t* const zeros = of.zeros;
    const bool one = of.one_zero;
    const int offset = offset_of(l);
    if (zeros) in.zero_groups = l.blocks;
    launch_for_each(stream, in.zero_groups * l.n, [=] __device__(int64_t i) {
      table[i] =
          (zeros ? matmul::zero_point(l, zeros, one, i % l.n, i / l.n) : matmul::zero_point(l)) - offset;
    });
    in.of_a = sums, in.zeros = table;
  }
  if (is_whole(l))
    return enqueue_whole(in, reinterpret_cast<int32_t*>(shared + at.planes), call.out[0].as<float>(), stream);
  in.splits = splits_of(in), in.steps = ceil_div(ceil_div(l.k, kStepK), in.splits);
  if (in.splits > 1) {
    in.steps += in.steps % 2, in.splits = ceil_div(ceil_div(l.k, kStepK), in.steps);
    in.totals = reinterpret_cast<unsigned long long*>(shared + at.planes);
    auto* const totals = in.totals;
    launch_for_each(stream, in.rows * l.n, [=] __device__(int64_t i) { totals[i] = 0; });
  }
  const dim3 grid(grid_for(in.row_tiles * in.column_tiles * in.splits)), block(NbitsTile::kThreads);
  constexpr size_t kShared = NbitsTile::kStages * (2 * NbitsTile::kRows + NbitsTile::kColumns) * kStepK;
  auto* const out = call.out[0].as<float>();
  if (l.bits == 4)
    launch_dependent(nbits_mma_kernel<4>, grid, block, kShared, stream, in, out);
  else
    launch_dependent(nbits_mma_kernel<8>, grid, block, kShared, stream, in, out);
  if (in.splits > 1)
    launch_for_each(stream, in.rows * l.n, [=] __device__(int64_t i) {
      out[i] = rounded_result(static_cast<int64_t>(in.totals[i]), in.ea[i / in.l.n],
                              in.t[in.l.blocks * in.l.n + i % in.l.n]);
    });
}

// By the kernels that do not read blocks. rounded: the rows of a; null: they are to be rounded.
void enqueue_by_columns(const Call& call, const Planes* rounded_rows, Stream stream) {
  const matmul::Nbits l = matmul::nbits(call), of_b = matmul::nbits(call.in[1], *call.attrs);
  const int64_t rows = row_count(call.in[0]), words_a = ceil_div(l.k, 2);
  const NbitsParts at = parts_of(call);
  auto* const shared = static_cast<std::byte*>(call.shared);
  NbitsRounded in{l, rounded(shared, rows, words_a)};
  in.b = call.in[1].as<const uint8_t>(), in.t = call.in[2].as<const int32_t>(), in.ld_b = column_length(of_b);
  if (l.k == 0 && call.in[2].packed && l.block == 0 && takes_blocks({.k = 1}))
    in.t += tiles_of(l) * kBlockRows - l.n;  // packed as tiles are: es alone is read, behind them
  if (!call.in[2].packed) {
    enqueue_scales(l, call.in[2], shared + at.scales, stream);
    in.t = reinterpret_cast<const int32_t*>(shared + at.scales);
  }
  if (!call.in[1].packed) {
    enqueue_columns(of_b, call.in[1], shared + at.b, stream);
    in.b = reinterpret_cast<const uint8_t*>(shared + at.b);
  }
  if (call.in.size() > 3) in.zeros = call.in[3].as<const uint8_t>(), in.one_zero = call.in[3].elements() == 1;
  in.rows = rows, in.words_a = words_a, in.words = ceil_div(l.k, 4);
  in.row_blocks = ceil_div(rows, kTile), in.column_blocks = ceil_div(l.n, kTile);
  if (takes_mma(l)) return enqueue_mma(call, at, in, rounded_rows, stream);
  if (rounded_rows)
    enqueue_words_of(*rounded_rows, rows, words_a, in.a, stream);
  else
    enqueue_round<false>(RowsToRound<F32>{call.in[0].as<const float>(), l.k, words_a, rows, l.k, 1}, in.a,
                         stream);
  const dim3 grid(grid_for(in.row_blocks * in.column_blocks)), block(kTileThreads);
  auto* out = call.out[0].as<float>();
  if (l.bits == 4)
    launch_dependent(nbits_exact16_kernel<4>, grid, block, 0, stream, in, out);
  else
    launch_dependent(nbits_exact16_kernel<8>, grid, block, 0, stream, in, out);
}

void enqueue_one_by_columns(const Call& call, const GpuFusion& fusion, Stream stream) {
  const int64_t k = matmul::nbits(call).k;
  if (fusion.producers.empty() || k == 0) {
    enqueue_by_columns(call, nullptr, stream);
  } else {
    const Planes a = produced_rows(call, k);
    enqueue_producers(fusion, {a.blocks, a.scales, a.tiles, a.chunks, a.height}, stream);
    Call behind = call;
    behind.shared = static_cast<std::byte*>(call.shared) + produced_bytes(call, k);
    enqueue_by_columns(behind, &a, stream);
  }
  if (!fusion.addends.empty() && fusion.addends[0])
    enqueue_addend(call.out[0].as<float>(), fusion.addends[0], call.out[0].elements(), stream);
}

void enqueue_nbits_exact16_fused(std::span<const Call* const> calls, const GpuFusion& fusion, Stream stream) {
  for (size_t at = 0, count; at < calls.size(); at += count) {
    count = count_together(calls.subspan(at));
    GpuFusion part = fusion;
    if (!part.addends.empty()) part.addends = part.addends.subspan(at, count);
    if (calls[at]->out[0].elements() == 0) continue;
    if (takes_blocks(*calls[at]))
      enqueue_nbits_blocks(calls.subspan(at, count), part, forced(), stream);
    else
      enqueue_one_by_columns(*calls[at], part, stream);
  }
}
void enqueue_nbits_exact16_batch(std::span<const Call* const> calls, Stream stream) {
  enqueue_nbits_exact16_fused(calls, {}, stream);
}
void enqueue_nbits_exact16(const Call& call, Stream stream) {
  const Call* const one = &call;
  enqueue_nbits_exact16_fused({&one, 1}, {}, stream);
}

matmul::Nbits scales_of(const View& v, const Attributes& attrs) {
  matmul::Nbits l = matmul::nbits_of(v, 2, attrs);
  l.block = MatmulNbitsAttributes(attrs).block;
  return l;
}
bool takes_tiles(const matmul::Nbits& of_scales) {
  return of_scales.blocks > 0 && takes_blocks({.k = 1, .block = of_scales.block});
}
size_t pack_bytes_nbits_exact16(const View& v, int i, const Attributes& attrs) {
  if (i == 1) {
    const matmul::Nbits of_b = matmul::nbits(v, attrs);
    return takes_blocks(of_b) ? blocks_bytes(of_b) : columns_bytes(of_b);
  }
  if ((i != 2 && i != 3) || v.elements() == 1) return 0;
  if (i == 3) {
    const matmul::Nbits l = zeros_of(v, attrs);
    return takes_tiles(l) ? zeros_bytes(l) : 0;
  }
  const matmul::Nbits l = scales_of(v, attrs);
  return takes_tiles(l) ? tiles_bytes(l) : scales_bytes(l);
}
void enqueue_pack_nbits_exact16(const View& v, int i, const Attributes& attrs, void* packed, Stream stream) {
  if (i == 1) {
    const matmul::Nbits of_b = matmul::nbits(v, attrs);
    return (takes_blocks(of_b) ? enqueue_blocks : enqueue_columns)(of_b, v, packed, stream);
  }
  if (i == 3)
    return enqueue_zeros(zeros_of(v, attrs), v.as<const uint8_t>(), false, static_cast<int32_t*>(packed),
                         stream);
  const matmul::Nbits l = scales_of(v, attrs);
  (takes_tiles(l) ? enqueue_tiles_of_t : enqueue_scales)(l, v, packed, stream);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(matmul_nbits_exact16);
const GpuKernel INVAR_ROW_OF(matmul_nbits_exact16) = {
    .op = "matmul_nbits_exact16",
    .isa = INVAR_ISA,
    .shared_bytes = INVAR_ISA_NS::shared_bytes_nbits_exact16,
    .pack_bytes = INVAR_ISA_NS::pack_bytes_nbits_exact16,
    .enqueue = INVAR_ISA_NS::enqueue_nbits_exact16,
    .enqueue_batch = INVAR_ISA_NS::enqueue_nbits_exact16_batch,
    .enqueue_pack = INVAR_ISA_NS::enqueue_pack_nbits_exact16,
    .shared_bytes_batch = INVAR_ISA_NS::shared_bytes_nbits_exact16_batch,
    .enqueue_fused = INVAR_ISA_NS::enqueue_nbits_exact16_fused};

}  // namespace invar::ops
