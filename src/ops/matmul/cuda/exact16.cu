// matmul_exact16 by dp2a, two products of a 16-bit and an 8-bit integer at a time: rows of a as
// pairs of 16-bit integers, columns of b as pairs of both planes (spec/exact16.md). The sums are
// exact, so their order is free.
#include "kernels/cuda/launch.h"
#include "num/exact16/quantize.h"
#include "ops/matmul/matmul.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int kQuantizeThreads = 128;
constexpr int kTile = 64, kThreadTile = 4, kTileThreads = 256, kWords = 16;
constexpr int kWordsToJoin = 256;  // of both planes; their sums stay below 2^31

// A row to round: k elements `step` apart.
template <class W>
struct RowsOf {
  const typename W::T* p;
  int64_t k, words, count, matrix_rows, matrix, row, step;
  __device__ const typename W::T* begin(int64_t i) const {
    return p + i / matrix_rows * matrix + i % matrix_rows * row;
  }
};

// One block for each row: its scale, then words of two k. kPlanes: bytes h0 h1 l0 l1, else q0 q1.
template <class W, bool kPlanes>
__global__ void __launch_bounds__(kQuantizeThreads)
    quantize_rows_kernel(RowsOf<W> rows, uint32_t* words, int32_t* scales) {
  trigger_and_wait();
  __shared__ uint32_t warp_largest[kQuantizeThreads / kWarp];
  for (int64_t i = blockIdx.x; i < rows.count; i += gridDim.x) {
    const typename W::T* x = rows.begin(i);
    uint32_t largest = 0;
    for (int64_t k = threadIdx.x; k < rows.k; k += kQuantizeThreads) {
      const uint32_t u = __float_as_uint(W::one(x[k * rows.step])) & 0x7fffffff;
      largest = u > largest ? u : largest;
    }
    for (int step = kWarp / 2; step > 0; step /= 2) {
      const uint32_t u = __shfl_xor_sync(kFullWarp, largest, step);
      largest = u > largest ? u : largest;
    }
    __syncthreads();
    if (threadIdx.x % kWarp == 0) warp_largest[threadIdx.x / kWarp] = largest;
    __syncthreads();
    for (const uint32_t u : warp_largest) largest = u > largest ? u : largest;
    const int32_t e = num::exact16_scale(largest);
    if (threadIdx.x == 0) scales[i] = e;
    const bool none = e == num::kExact16NoIntegers;
    const num::Exact16Factors by = num::exact16_factors(none ? 0 : e);
    auto integer = [&](int64_t k) {
      if (none || k >= rows.k) return 0;
      return __float2int_rn(W::one(x[k * rows.step]) * by.first * by.second);
    };
    for (int64_t w = threadIdx.x; w < rows.words; w += kQuantizeThreads) {
      const int q0 = integer(2 * w), q1 = integer(2 * w + 1);
      uint32_t word = (static_cast<uint32_t>(q0) & 0xffff) | static_cast<uint32_t>(q1) << 16;
      if (kPlanes) {
        const int h0 = (q0 + 128) >> 8, h1 = (q1 + 128) >> 8;
        word = (static_cast<uint32_t>(h0) & 0xff) | (static_cast<uint32_t>(h1) & 0xff) << 8 |
               (static_cast<uint32_t>(q0) & 0xff) << 16 | static_cast<uint32_t>(q1) << 24;
      }
      words[i * rows.words + w] = word;
    }
  }
}

struct ExactOperands {
  const uint32_t *a, *b;
  const int32_t *scales_a, *scales_b;
  int64_t words, row_blocks, column_blocks;
};

__device__ float exact_result(int64_t sum, int32_t ea, int32_t eb) {
  if (ea == num::kExact16NoIntegers || eb == num::kExact16NoIntegers) return __uint_as_float(0x7fc00000);
  const double power = num::exact16_wide_power(ea) * num::exact16_wide_power(eb);
  const double y = static_cast<double>(__ll2float_rn(sum)) * power;
  if (fabs(y) < 0x1p-126) return sum < 0 ? -0.0f : 0.0f;
  return __double2float_rn(y);
}

// A tile of 64 x 64 results, 4 x 4 of each thread.
__global__ void __launch_bounds__(kTileThreads)
    exact16_kernel(matmul::Shape s, ExactOperands in, float* out) {
  trigger_and_wait();
  __shared__ uint32_t tile_a[kWords][kTile + 4], tile_b[kWords][kTile + 4];
  const int64_t per_product = in.row_blocks * in.column_blocks;
  for (int64_t t = blockIdx.x; t < s.batches * per_product; t += gridDim.x) {
    const int64_t batch = t / per_product;
    const int64_t i0 = t % per_product % in.row_blocks * kTile, j0 = t % per_product / in.row_blocks * kTile;
    const matmul::Offsets at = matmul::offsets(s, batch);
    const int64_t row = at.a / s.k, column = at.b_matrix * s.n;
    const int ti = threadIdx.x / (kTile / kThreadTile) * kThreadTile;
    const int tj = threadIdx.x % (kTile / kThreadTile) * kThreadTile;
    int64_t sum[kThreadTile][kThreadTile] = {};
    int high[kThreadTile][kThreadTile] = {}, low[kThreadTile][kThreadTile] = {};
    for (int64_t w0 = 0; w0 < in.words; w0 += kWords) {
      __syncthreads();
      for (int p = threadIdx.x; p < kTile * kWords; p += kTileThreads) {
        const int64_t w = w0 + p % kWords;
        const int r = p / kWords;
        const bool inside = w < in.words;
        tile_a[p % kWords][r] = inside && i0 + r < s.m ? in.a[(row + i0 + r) * in.words + w] : 0;
        tile_b[p % kWords][r] = inside && j0 + r < s.n ? in.b[(column + j0 + r) * in.words + w] : 0;
      }
      __syncthreads();
      for (int w = 0; w < kWords; ++w) {
        int x[kThreadTile], y[kThreadTile];
        for (int r = 0; r < kThreadTile; ++r) x[r] = static_cast<int>(tile_a[w][ti + r]);
        for (int c = 0; c < kThreadTile; ++c) y[c] = static_cast<int>(tile_b[w][tj + c]);
        for (int r = 0; r < kThreadTile; ++r)
          for (int c = 0; c < kThreadTile; ++c) {
            high[r][c] = __dp2a_lo(x[r], y[c], high[r][c]);
            low[r][c] = __dp2a_hi(x[r], y[c], low[r][c]);
          }
      }
      if ((w0 / kWords + 1) % (kWordsToJoin / kWords) && w0 + kWords < in.words) continue;
      for (int r = 0; r < kThreadTile; ++r)
        for (int c = 0; c < kThreadTile; ++c) {
          sum[r][c] += int64_t{256} * high[r][c] + low[r][c];
          high[r][c] = low[r][c] = 0;
        }
    }
    for (int r = 0; r < kThreadTile; ++r)
      for (int c = 0; c < kThreadTile; ++c) {
        const int64_t i = i0 + ti + r, j = j0 + tj + c;
        if (i < s.m && j < s.n)
          out[(batch * s.m + i) * s.n + j] =
              exact_result(sum[r][c], in.scales_a[row + i], in.scales_b[column + j]);
      }
  }
}

// Words of rows, then their scales.
struct Quantized {
  uint32_t* words;
  int32_t* scales;
};
int64_t exact_words(int64_t k) {
  return (k + 1) / 2;
}
Quantized quantized(void* memory, int64_t rows, int64_t k) {
  auto* words = static_cast<uint32_t*>(memory);
  return {words, reinterpret_cast<int32_t*>(words + rows * exact_words(k))};
}
size_t quantized_bytes(int64_t rows, int64_t k) {
  return static_cast<size_t>(rows * (exact_words(k) + 1)) * sizeof(uint32_t);
}
template <bool kPlanes, class W>
void enqueue_quantize(const RowsOf<W>& rows, const Quantized& to, Stream stream) {
  launch_dependent(quantize_rows_kernel<W, kPlanes>, dim3(grid_for(rows.count)), dim3(kQuantizeThreads), 0,
                   stream, rows, to.words, to.scales);
}
// b: matrices of [K, N], or [N, K] with trans_b, by columns.
void enqueue_columns(const View& b, bool trans_b, void* memory, Stream stream) {
  const int64_t k = b.dim[b.rank - (trans_b ? 1 : 2)], n = b.dim[b.rank - (trans_b ? 2 : 1)];
  if (k == 0 || n == 0) return;
  const int64_t columns = b.elements() / k;
  with_format(b.dtype, [&](auto format) {
    using W = decltype(format);
    enqueue_quantize<true>(RowsOf<W>{b.as<const typename W::T>(), k, exact_words(k), columns, n, k * n,
                                     trans_b ? k : 1, trans_b ? 1 : n},
                           quantized(memory, columns, k), stream);
  });
}

matmul::Shape shape_exact16(const Call& c) {
  return matmul::shape(c.in[0], c.in[1], c.out[0], false, attr_i(c, "trans_b", 0) != 0);
}
int64_t aligned_words(size_t bytes) {
  return static_cast<int64_t>((bytes + 255) / 256 * 64);
}
size_t shared_bytes_exact16(const Call& call) {
  const matmul::Shape s = shape_exact16(call);
  const size_t a = quantized_bytes(row_count(call.in[0]), s.k);
  return static_cast<size_t>(aligned_words(a)) * sizeof(uint32_t) +
         (call.in[1].packed ? 0 : quantized_bytes(s.matrices_b * s.n, s.k));
}

void enqueue_exact16(const Call& call, Stream stream) {
  const matmul::Shape s = shape_exact16(call);
  auto* out = call.out[0].as<float>();
  if (s.k == 0)
    return launch_for_each(stream, call.out[0].elements(), [=] __device__(int64_t i) { out[i] = 0; });
  if (call.out[0].elements() == 0) return;
  const int64_t rows = row_count(call.in[0]), columns = s.matrices_b * s.n;
  const Quantized a = quantized(call.shared, rows, s.k);
  enqueue_quantize<false>(
      RowsOf<F32>{call.in[0].as<const float>(), s.k, exact_words(s.k), rows, rows, 0, s.k, 1}, a, stream);
  void* memory = call.in[1].data;
  if (!call.in[1].packed) {
    memory = static_cast<uint32_t*>(call.shared) + aligned_words(quantized_bytes(rows, s.k));
    enqueue_columns(call.in[1], s.trans_b, memory, stream);
  }
  const Quantized b = quantized(memory, columns, s.k);
  const ExactOperands in{
      a.words, b.words, a.scales, b.scales, exact_words(s.k), ceil_div(s.m, kTile), ceil_div(s.n, kTile)};
  launch_dependent(exact16_kernel, dim3(grid_for(s.batches * in.row_blocks * in.column_blocks)),
                   dim3(kTileThreads), 0, stream, s, in, out);
}

size_t pack_bytes_exact16(const View& v, int i, const Attributes& attrs) {
  if (i != 1) return 0;
  const int64_t k = v.dim[v.rank - (attr_i(attrs, "trans_b", 0) ? 1 : 2)];
  return k ? quantized_bytes(v.elements() / k, k) : 0;
}
void enqueue_pack_exact16(const View& v, int, const Attributes& attrs, void* packed, Stream stream) {
  enqueue_columns(v, attr_i(attrs, "trans_b", 0) != 0, packed, stream);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(matmul_exact16);
const GpuKernel INVAR_ROW_OF(matmul_exact16) = {.op = "matmul_exact16",
                                                .isa = INVAR_ISA,
                                                .shared_bytes = INVAR_ISA_NS::shared_bytes_exact16,
                                                .pack_bytes = INVAR_ISA_NS::pack_bytes_exact16,
                                                .enqueue = INVAR_ISA_NS::enqueue_exact16,
                                                .enqueue_pack = INVAR_ISA_NS::enqueue_pack_exact16};

}  // namespace invar::ops
