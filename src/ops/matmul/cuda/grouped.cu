// grouped_matmul: few rows by GEMV, each with the matrix that its index chooses; many rows by tiles
// whose rows choose one matrix, after a kernel has sorted them. The choice is free by
// grouped_matmul.3.
#include "ops/matmul/cuda/float_b.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

using matmul::GroupedShape;
using matmul::kFirstMatrix;
using matmul::kMostMatrices;

// Where the matrices begin.
struct MatrixTable {
  const void* at[kMostMatrices];
};
// A slot of the sorted rows: a row, none, or one without a matrix, whose results are NaN.
constexpr int32_t kNoRow = -1;
__host__ __device__ inline int32_t without_matrix(int32_t row) {  // its own inverse
  return -2 - row;
}

// The products of single rows, as gemv_kernel takes them.
template <class Reader>
struct IndexedGemv {
  static constexpr int count = 1;
  int passes;
  unsigned end[1];
  GemvProblem problem[1];
  Reader reader[1];
  const int64_t* index;
  int64_t share, groups;
  uint32_t* fault;
  MatrixTable matrices;
};

// The rows of a in the order of their matrices; each tile of rows has one matrix. k are contiguous.
struct SortedRows : KContiguous {
  const int32_t* row;          // of a slot
  const int32_t* tile_matrix;  // of a tile, or -1
  const void* const* matrices;
  int64_t share;
  __device__ bool is_empty(int64_t tile) const { return tile_matrix[tile] < 0; }

  template <int kTile, int kDepth, int kThreads>
  struct Loader : KContiguous::Loader<kTile, kDepth, kThreads> {
    __device__ void init(const SortedRows& s, int64_t first, int from) {
      const int i = threadIdx.x % 8, o = threadIdx.x / 8;
      this->k = s.k - i, this->to = i * (kTile + kPad) + o;
      INVAR_UNROLL
      for (int d = 0; d < this->kDown; ++d) {
        const int32_t row = s.row[first + o + d * this->kRows];
        this->in[d] = row >= 0;
        this->at[d] = s.p + (row >= 0 ? row / s.share : 0) * s.ld + from + i;
      }
    }
  };
};
template <class B, class LoaderA, class LoaderB>
__device__ __forceinline__ void init_loaders(const SortedRows& a, const B& b, const GemmProblem& job,
                                             const TileCoord& coord, int begin, LoaderA& loader_a,
                                             LoaderB& loader_b) {
  B moved = b;
  moved.move_to(a.matrices[a.tile_matrix[coord.row / (job.s.m / job.rows)]]);
  loader_a.init(a, coord.row, begin), loader_b.init(moved, coord.column, begin);
}

// Stores the rows of a tile where they belong.
struct SortedOut {
  float* to;
  const int32_t* row;
  bool aligned;  // rows of four are aligned to 16 bytes
  using Element = float;
  __device__ float* matrix(const GemmProblem&, int64_t, int64_t) const { return to; }
  __device__ void store(const GemmProblem& job, float*, int64_t i, int64_t j, const F (&y)[4]) const {
    const int32_t r = row[i];
    if (r == kNoRow) return;
    float* const at = to + int64_t{r < 0 ? without_matrix(r) : r} * job.s.n + j;
    float x[4];
    INVAR_UNROLL
    for (int e = 0; e < 4; ++e) x[e] = r < 0 ? num::f32_from_bits(0x7fc00000) : num::canonicalize(y[e].v);
    if (aligned) {
      *reinterpret_cast<float4*>(at) = {x[0], x[1], x[2], x[3]};
    } else {
      INVAR_UNROLL
      for (int e = 0; e < 4; ++e)
        if (j + e < job.s.n) at[e] = x[e];
    }
  }
};

// Call::shared: the table, the matrix of each tile, the row of each slot, kept sums.
struct Sorted {
  const void** matrices;
  int32_t *tile_matrix, *row;
  float* kept;
};
int64_t most_tiles(const GroupedShape& s, int64_t tile_rows) {
  return ceil_div(s.rows, tile_rows) + num::min_i64(s.groups, s.rows);
}
Sorted sorted_in(void* memory, const GroupedShape& s, int64_t tile_rows) {
  Sorted w{};
  w.matrices = static_cast<const void**>(memory);
  w.tile_matrix = reinterpret_cast<int32_t*>(w.matrices + kMostMatrices);
  const int64_t tiles = (most_tiles(s, tile_rows) + 15) / 16 * 16;
  w.row = w.tile_matrix + tiles;
  w.kept = reinterpret_cast<float*>(w.row + tiles * tile_rows);
  return w;
}

// One block. The order of the rows of a matrix reaches no bit.
constexpr int kSortThreads = 1024;
__global__ void __launch_bounds__(kSortThreads)
    sort_kernel(GroupedShape s, int tile_rows, int tiles, const int64_t* index, uint32_t* fault, Sorted to,
                const __grid_constant__ MatrixTable table) {
  __shared__ unsigned next[kMostMatrices];
  __shared__ int first_tile[kMostMatrices + 1];
  for (int g = threadIdx.x; g < s.groups; g += kSortThreads) to.matrices[g] = table.at[g], next[g] = 0;
  for (int i = threadIdx.x; i < tiles; i += kSortThreads) to.tile_matrix[i] = -1;
  for (int64_t i = threadIdx.x; i < int64_t{tiles} * tile_rows; i += kSortThreads) to.row[i] = kNoRow;
  __syncthreads();
  auto matrix = [&](int64_t row) { return static_cast<int>(matmul::matrix_index(index[row], s.groups)); };
  for (int64_t row = threadIdx.x; row < s.rows; row += kSortThreads) {
    const int g = matrix(row);
    if (g < 0) *fault = 1;
    atomicAdd(&next[g < 0 ? 0 : g], 1u);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    first_tile[0] = 0;
    for (int g = 0; g < s.groups; ++g)
      first_tile[g + 1] = first_tile[g] + (static_cast<int>(next[g]) + tile_rows - 1) / tile_rows;
  }
  __syncthreads();
  for (int g = threadIdx.x; g < s.groups; g += kSortThreads) {
    for (int t = first_tile[g]; t < first_tile[g + 1]; ++t) to.tile_matrix[t] = g;
    next[g] = static_cast<unsigned>(first_tile[g] * tile_rows);
  }
  __syncthreads();
  for (int64_t row = threadIdx.x; row < s.rows; row += kSortThreads) {
    const int g = matrix(row);
    const auto r = static_cast<int32_t>(row);
    to.row[atomicAdd(&next[g < 0 ? 0 : g], 1u)] = g < 0 ? without_matrix(r) : r;
  }
}

// Which kernel: GEMV while most matrices meet few rows; else tiles as tall as their rows are many.
enum class GroupedRoute { gemv, small, large };
GroupedRoute route(const Call& call, const GroupedShape& s) {
  constexpr int64_t kMaxK = int64_t{1} << 30;
  const bool gemv_fits = call.in[kFirstMatrix].packed && s.k > 0 && s.k < kMaxK;
  const int forced = variant() % 4;
  if (forced == 1 && gemv_fits) return GroupedRoute::gemv;
  if (forced > 1) return forced == 2 ? GroupedRoute::small : GroupedRoute::large;
  if (gemv_fits && (s.rows <= 8 || s.rows < 4 * s.groups)) return GroupedRoute::gemv;
  return s.rows < 48 * s.groups ? GroupedRoute::small : GroupedRoute::large;
}
Shape tiles_shape(const GroupedShape& s, int64_t tile_rows) {
  Shape t{};
  t.m = most_tiles(s, tile_rows) * tile_rows, t.n = s.n, t.k = s.k, t.trans_b = s.trans_b;
  t.batches = t.matrices_b = 1;
  return t;
}
KernelChoice whole_k(const GroupedShape& s) {
  return {Route::automatic, 1, num::contraction_blocks(s.k)};
}
template <class T>
size_t shared_bytes_of(const GroupedShape& s) {
  const char* const none = nullptr;
  const Sorted w = sorted_in(nullptr, s, T::kRows);
  return static_cast<size_t>(reinterpret_cast<const char*>(w.kept) - none) +
         workspace_of<T>(tiles_shape(s, T::kRows), whole_k(s));
}
size_t shared_bytes(const Call& call) {
  const GroupedShape s = matmul::grouped_shape(call);
  switch (route(call, s)) {
    case GroupedRoute::gemv: return 0;
    case GroupedRoute::small: return shared_bytes_of<Small>(s);
    default: return shared_bytes_of<Large>(s);
  }
}

int64_t word_rows(const GroupedShape& s, DType t) {
  return t == DType::f32 ? s.k : ceil_div(s.k, 2);
}
MatrixTable table_of(const Call& call, const GroupedShape& s) {
  MatrixTable table{};
  const View& b = call.in[kFirstMatrix];
  const int64_t bytes = b.packed ? packed_words(s.n, word_rows(s, b.dtype)) * 4
                                 : s.n * s.k * static_cast<int64_t>(size_of(b.dtype));
  for (int64_t g = 0; g < s.groups; ++g)
    table.at[g] = s.stacked ? static_cast<const char*>(b.data) + g * bytes
                            : call.in[static_cast<size_t>(kFirstMatrix + g)].data;
  return table;
}

template <class T, class B>
void enqueue_sorted_tiles(const Call& call, const GroupedShape& s, const B& b, Stream stream) {
  const Shape t = tiles_shape(s, T::kRows);
  const KernelChoice whole = whole_k(s);
  const Sorted w = sorted_in(call.shared, s, T::kRows);
  const auto* const index = call.in[1].as<const int64_t>();
  auto* const out = call.out[0].as<float>();
  GroupedGemm<B, SortedOut, 1> products{};
  products.count = 1, products.problem[0] = problem_of<T>(t, whole), products.b[0] = b;
  products.columns = products.problem[0].columns;
  products.out[0] = {out, w.row, s.n % 4 == 0 && reinterpret_cast<uintptr_t>(out) % 16 == 0};
  launch(sort_kernel, dim3(1), dim3(kSortThreads), 0, stream, s, static_cast<int>(T::kRows),
         static_cast<int>(most_tiles(s, T::kRows)), index, call.gpu.fault, w, table_of(call, s));
  const SortedRows a{
      {call.in[0].as<const float>(), s.k, t.m, s.k}, w.row, w.tile_matrix, w.matrices, s.share};
  const int in_shared = num::segments_in_use(s.k) < 2 ? 0 : shared_levels<T>();
  const size_t bytes = T::kStageBytes + static_cast<size_t>(in_shared) * T::kArea * sizeof(float);
  launch(gemm_kernel<T, Fp32SumsOf<T>, SortedRows, B, SortedOut, 1>,
         dim3(static_cast<unsigned>(blocks_of<T>(products.items()))), dim3(T::kThreads), bytes, stream,
         products, a, w.kept, in_shared);
}

template <class Reader>
void enqueue_rows(const Call& call, const GroupedShape& s, const Reader& reader, Stream stream) {
  IndexedGemv<Reader> products{};
  products.problem[0] = {call.in[0].as<const float>(),
                         nullptr,
                         call.out[0].as<float>(),
                         s.rows,
                         s.n,
                         s.k,
                         word_rows(s, call.in[kFirstMatrix].dtype)};
  products.reader[0] = reader, products.index = call.in[1].as<const int64_t>();
  products.share = s.share, products.groups = s.groups, products.fault = call.gpu.fault;
  products.matrices = table_of(call, s);
  if (Reader::kPerWord == 2 && s.rows * ceil_div(s.n, kPanelColumns) > 2 * multiprocessors())
    return enqueue_gemv_shape<GemvShape<Reader, 1, 1, 1, 16, 3, 8>, Reader>(products, stream);
  enqueue_gemv_shape<GemvShape<Reader, 1, 1, 1, 8, 8, 8>, Reader>(products, stream);
}

void enqueue(const Call& call, Stream stream) {
  const GroupedShape s = matmul::grouped_shape(call);
  const View& b = call.in[kFirstMatrix];
  if (s.rows == 0 || s.n == 0) return;
  const GroupedRoute chosen = route(call, s);
  with_reader(b.dtype, b.data, s.trans_b ? Strides{1, s.k} : Strides{s.n, 1}, [&](auto reader) {
    using Reader = decltype(reader);
    if (chosen == GroupedRoute::gemv) return enqueue_rows(call, s, reader, stream);
    auto tiles = [&](const auto& columns) {
      if (chosen == GroupedRoute::small)
        enqueue_sorted_tiles<Small>(call, s, columns, stream);
      else
        enqueue_sorted_tiles<Large>(call, s, columns, stream);
    };
    const int64_t rows = word_rows(s, b.dtype);
    if (b.packed)
      tiles(WeightColumns<Reader, true>{reader, nullptr, s.n, s.k, rows});
    else
      tiles(WeightColumns<Reader, false>{reader, nullptr, s.n, s.k, rows});
  });
}

size_t pack_bytes(const View& b, int i, const Attributes& attrs) {
  if (i < kFirstMatrix) return 0;
  const bool trans_b = attr_i(attrs, "trans_b", 0) != 0;
  const int64_t k = b.dim[b.rank - (trans_b ? 1 : 2)], n = b.dim[b.rank - (trans_b ? 2 : 1)];
  const int64_t rows = b.dtype == DType::f32 ? k : ceil_div(k, 2);
  return static_cast<size_t>((b.rank == 3 ? b.dim[0] : 1) * packed_words(n, rows)) * sizeof(uint32_t);
}
void enqueue_pack(const View& b, int, const Attributes& attrs, void* packed, Stream stream) {
  const bool trans_b = attr_i(attrs, "trans_b", 0) != 0;
  const int64_t k = b.dim[b.rank - (trans_b ? 1 : 2)], n = b.dim[b.rank - (trans_b ? 2 : 1)];
  const int64_t rows = b.dtype == DType::f32 ? k : ceil_div(k, 2), matrices = b.rank == 3 ? b.dim[0] : 1;
  auto* to = static_cast<uint32_t*>(packed);
  with_reader(b.dtype, b.data, trans_b ? Strides{1, k} : Strides{n, 1}, [&](auto reader) {
    for (int64_t i = 0; i < matrices; ++i, reader.advance(k * n))
      enqueue_pack_words(reader, n, k, to + i * packed_words(n, rows), stream);
  });
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(grouped_matmul);
const GpuKernel INVAR_ROW_OF(grouped_matmul) = {.op = "grouped_matmul",
                                                .isa = INVAR_ISA,
                                                .shared_bytes = INVAR_ISA_NS::shared_bytes,
                                                .pack_bytes = INVAR_ISA_NS::pack_bytes,
                                                .enqueue = INVAR_ISA_NS::enqueue,
                                                .enqueue_pack = INVAR_ISA_NS::enqueue_pack};

}  // namespace invar::ops
