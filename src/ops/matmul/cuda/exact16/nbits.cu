// matmul_nbits_exact16 by dp2a, two products of a 16-bit integer of a and a byte of b at a time.
// The bytes are q as in matmul_nbits' packed words, made signed; a group's sum takes its zero point
// from the sum of the row's integers, and is exact in int32 for kPieceWords words. Times the
// group's t it is added in int64 (spec.md matmul_nbits_exact16.3).
#include "ops/matmul/cuda/exact16/round_rows.cuh"
#include "ops/matmul/cuda/packed_weight_reader.cuh"

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
  const uint32_t* b;  // packed panels of words
  const int32_t* t;
  const uint8_t* zeros;  // null: l.zero
  bool one_zero;
  int64_t rows, words_a, words, rows_b;  // words: of four k; rows_b: of packed words
  int64_t row_blocks, column_blocks;
};

// The signed bytes of four k of a column.
template <int kBits>
__device__ uint32_t four_bytes(const NbitsRounded& in, int64_t w, int64_t j) {
  const PanelSlice p = panel_slice(j / kPanelColumns, in.l.n, in.rows_b);
  const uint32_t x = in.b[p.at + (kBits == 4 ? w / 2 : w) * p.width + j % kPanelColumns];
  if constexpr (kBits == 8) {
    return x ^ 0x80808080u;
  } else {
    const uint32_t even = x & 0x0f0f0f0fu, odd = x >> 4 & 0x0f0f0f0fu;
    return __byte_perm(even, odd, w % 2 ? 0x7362 : 0x5140);
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

// Rows of packed words by b's own K, which may be rounded up to whole blocks.
int64_t word_rows(const matmul::Nbits& of_b) {
  return ceil_div(of_b.k, 32 / of_b.bits);
}
size_t words_bytes(const matmul::Nbits& of_b) {
  return static_cast<size_t>(packed_words(of_b.n, word_rows(of_b))) * sizeof(uint32_t);
}
void enqueue_words(const matmul::Nbits& of_b, const View& b, void* to, Stream stream) {
  if (of_b.bits == 4)
    enqueue_pack_words(ReaderNbits<4>{of_b, b}, of_b.n, of_b.k, static_cast<uint32_t*>(to), stream);
  else
    enqueue_pack_words(ReaderNbits<8>{of_b, b}, of_b.n, of_b.k, static_cast<uint32_t*>(to), stream);
}

// Call::shared: rows of a, then what is not packed of the scales and of b.
struct NbitsParts {
  size_t scales, b, end;
};
NbitsParts parts_of(const Call& call) {
  const matmul::Nbits l = matmul::nbits(call);
  NbitsParts p{};
  p.scales = aligned(rounded_bytes(row_count(call.in[0]), ceil_div(l.k, 2)));
  p.b = p.scales + (call.in[2].packed ? 0 : aligned(scales_bytes(l)));
  p.end = p.b + (call.in[1].packed ? 0 : words_bytes(matmul::nbits(call.in[1], *call.attrs)));
  return p;
}
size_t shared_bytes_nbits_exact16(const Call& call) {
  return parts_of(call).end;
}

void enqueue_nbits_exact16(const Call& call, Stream stream) {
  if (call.out[0].elements() == 0) return;
  const matmul::Nbits l = matmul::nbits(call), of_b = matmul::nbits(call.in[1], *call.attrs);
  const int64_t rows = row_count(call.in[0]), words_a = ceil_div(l.k, 2);
  const NbitsParts at = parts_of(call);
  auto* const shared = static_cast<std::byte*>(call.shared);
  NbitsRounded in{l, rounded(shared, rows, words_a)};
  in.b = call.in[1].as<const uint32_t>(), in.t = call.in[2].as<const int32_t>();
  if (!call.in[2].packed) {
    enqueue_scales(l, call.in[2], shared + at.scales, stream);
    in.t = reinterpret_cast<const int32_t*>(shared + at.scales);
  }
  if (!call.in[1].packed) {
    enqueue_words(of_b, call.in[1], shared + at.b, stream);
    in.b = reinterpret_cast<const uint32_t*>(shared + at.b);
  }
  if (call.in.size() > 3) in.zeros = call.in[3].as<const uint8_t>(), in.one_zero = call.in[3].elements() == 1;
  in.rows = rows, in.words_a = words_a, in.words = ceil_div(l.k, 4), in.rows_b = word_rows(of_b);
  in.row_blocks = ceil_div(rows, kTile), in.column_blocks = ceil_div(l.n, kTile);
  enqueue_round<false>(RowsToRound<F32>{call.in[0].as<const float>(), l.k, words_a, rows, l.k, 1}, in.a,
                       stream);
  const dim3 grid(grid_for(in.row_blocks * in.column_blocks)), block(kTileThreads);
  auto* out = call.out[0].as<float>();
  if (l.bits == 4)
    launch_dependent(nbits_exact16_kernel<4>, grid, block, 0, stream, in, out);
  else
    launch_dependent(nbits_exact16_kernel<8>, grid, block, 0, stream, in, out);
}

size_t pack_bytes_nbits_exact16(const View& v, int i, const Attributes& attrs) {
  if (i == 1) return words_bytes(matmul::nbits(v, attrs));
  return i == 2 && v.elements() != 1 ? scales_bytes(matmul::nbits_of(v, i, attrs)) : 0;
}
void enqueue_pack_nbits_exact16(const View& v, int i, const Attributes& attrs, void* packed, Stream stream) {
  if (i == 1) return enqueue_words(matmul::nbits(v, attrs), v, packed, stream);
  enqueue_scales(matmul::nbits_of(v, i, attrs), v, packed, stream);
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
    .enqueue_pack = INVAR_ISA_NS::enqueue_pack_nbits_exact16};

}  // namespace invar::ops
