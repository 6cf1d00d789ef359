// grouped_matmul_exact16 by dp2a, two products of a 16-bit and an 8-bit integer at a time. Rows are
// sorted by the matrices that they choose (sorted_rows.cuh), in tiles of one matrix each.
#include "ops/matmul/cuda/exact16/round_rows.cuh"
#include "ops/matmul/cuda/sorted_rows.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int kWords = 16;
constexpr int kWordsToJoin = 256;  // of both planes; their sums stay below 2^31

struct GroupedRounded {
  GroupedShape s;
  Sorted sorted;
  Rounded a;
  int64_t words, tiles, column_blocks;
};

// A tile of 64 sorted rows x 64 columns of their matrix, 4 x 4 of each thread.
__global__ void __launch_bounds__(kTileThreads) grouped_exact16_kernel(GroupedRounded in, float* out) {
  trigger_and_wait();
  __shared__ uint32_t tile_a[kWords][kTile + 4], tile_b[kWords][kTile + 4];
  for (int64_t t = blockIdx.x; t < in.tiles * in.column_blocks; t += gridDim.x) {
    const int64_t tile = t / in.column_blocks, j0 = t % in.column_blocks * kTile;
    const int g = in.sorted.tile_matrix[tile];
    if (g < 0) continue;
    const int32_t* row = in.sorted.row + tile * kTile;
    const auto* b = static_cast<const uint32_t*>(in.sorted.matrices[g]);
    const auto* scales_b = reinterpret_cast<const int32_t*>(b + in.s.n * in.words);
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
        tile_a[p % kWords][r] = inside && row[r] >= 0 ? in.a.words[row[r] / in.s.share * in.words + w] : 0;
        tile_b[p % kWords][r] = inside && j0 + r < in.s.n ? b[(j0 + r) * in.words + w] : 0;
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
    for (int r = 0; r < kThreadTile; ++r) {
      const int32_t from = row[ti + r], to = from < 0 ? without_matrix(from) : from;
      if (from == kNoRow) continue;
      for (int c = 0; c < kThreadTile && j0 + tj + c < in.s.n; ++c) {
        const int64_t j = j0 + tj + c;
        out[to * in.s.n + j] = from < 0
                                   ? __uint_as_float(0x7fc00000)
                                   : rounded_result(sum[r][c], in.a.scales[from / in.s.share], scales_b[j]);
      }
    }
  }
}

int64_t words_of(int64_t k) {
  return (k + 1) / 2;
}
struct MatrixShape {
  int64_t count, k, n;
  bool trans_b;
};
MatrixShape matrices(const View& b, const Attributes& attrs) {
  const bool trans = attr_i(attrs, "trans_b", 0) != 0;
  return {b.rank == 3 ? b.dim[0] : 1, b.dim[b.rank - (trans ? 1 : 2)], b.dim[b.rank - (trans ? 2 : 1)],
          trans};
}
// Bytes of a matrix: the words of its columns, then their scales.
int64_t matrix_bytes(int64_t n, int64_t k) {
  return static_cast<int64_t>(aligned(rounded_bytes(n, words_of(k))));
}
void enqueue_matrices(const View& b, const Attributes& attrs, void* memory, Stream stream) {
  const MatrixShape m = matrices(b, attrs);
  if (m.k == 0 || m.n == 0) return;
  with_format(b.dtype, [&](auto format) {
    using W = decltype(format);
    for (int64_t g = 0; g < m.count; ++g)
      enqueue_round<true>(
          RowsToRound<W>{b.as<const typename W::T>() + g * m.k * m.n, m.k, words_of(m.k), m.n,
                         m.trans_b ? m.k : 1, m.trans_b ? 1 : m.n},
          rounded(static_cast<std::byte*>(memory) + g * matrix_bytes(m.n, m.k), m.n, words_of(m.k)), stream);
  });
}

bool all_packed(const Call& call) {
  for (const View& b : call.in.subspan(kFirstMatrix))
    if (!b.packed) return false;
  return true;
}
size_t shared_bytes_grouped_exact16(const Call& call) {
  const GroupedShape s = matmul::grouped_shape(call);
  return aligned(sorted_bytes(s, kTile)) + aligned(rounded_bytes(row_count(call.in[0]), words_of(s.k))) +
         (all_packed(call) ? 0 : static_cast<size_t>(s.groups * matrix_bytes(s.n, s.k)));
}

void enqueue_grouped_exact16(const Call& call, Stream stream) {
  const GroupedShape s = matmul::grouped_shape(call);
  if (s.rows == 0 || s.n == 0) return;
  const int64_t rows = row_count(call.in[0]);
  auto* const shared = static_cast<std::byte*>(call.shared);
  std::byte* const a = shared + aligned(sorted_bytes(s, kTile));
  std::byte* own = a + aligned(rounded_bytes(rows, words_of(s.k)));
  GroupedRounded in{s,
                    sorted_in(shared, s, kTile),
                    rounded(a, rows, words_of(s.k)),
                    words_of(s.k),
                    most_tiles(s, kTile),
                    ceil_div(s.n, kTile)};
  MatrixTable table{};
  for (int64_t g = 0; g < s.groups; ++g) {
    const View& b = call.in[static_cast<size_t>(kFirstMatrix + (s.stacked ? 0 : g))];
    std::byte* const first = b.packed ? static_cast<std::byte*>(b.data) : own;
    table.at[g] = first + (s.stacked || !b.packed ? g * matrix_bytes(s.n, s.k) : 0);
    if (!b.packed && (g == 0 || !s.stacked))
      enqueue_matrices(b, *call.attrs, first + g * matrix_bytes(s.n, s.k), stream);
  }
  enqueue_round<false>(RowsToRound<F32>{call.in[0].as<const float>(), s.k, words_of(s.k), rows, s.k, 1}, in.a,
                       stream);
  launch_dependent(sort_kernel, dim3(1), dim3(kSortThreads), 0, stream, s, 1, static_cast<int>(kTile),
                   static_cast<int>(in.tiles), call.in[1].as<const int64_t>(), call.gpu.fault, in.sorted,
                   table);
  launch_dependent(grouped_exact16_kernel, dim3(grid_for(in.tiles * in.column_blocks)), dim3(kTileThreads), 0,
                   stream, in, call.out[0].as<float>());
}

size_t pack_bytes_grouped_exact16(const View& b, int i, const Attributes& attrs) {
  if (i < kFirstMatrix) return 0;
  const MatrixShape m = matrices(b, attrs);
  return m.k && m.n ? static_cast<size_t>(m.count * matrix_bytes(m.n, m.k)) : 0;
}
void enqueue_pack_grouped_exact16(const View& b, int, const Attributes& attrs, void* packed, Stream stream) {
  enqueue_matrices(b, attrs, packed, stream);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(grouped_matmul_exact16);
const GpuKernel INVAR_ROW_OF(grouped_matmul_exact16) = {
    .op = "grouped_matmul_exact16",
    .isa = INVAR_ISA,
    .shared_bytes = INVAR_ISA_NS::shared_bytes_grouped_exact16,
    .pack_bytes = INVAR_ISA_NS::pack_bytes_grouped_exact16,
    .enqueue = INVAR_ISA_NS::enqueue_grouped_exact16,
    .enqueue_pack = INVAR_ISA_NS::enqueue_pack_grouped_exact16};

}  // namespace invar::ops
