// matmul by cuBLAS, for many rows: tensor cores with operands of fewer bits if nothing is promised
// ("cublas_reduced"), f32 otherwise ("cublas"). Weights are packed as for the reproducible row,
// which takes few rows and all that is not one plain product; here they are unpacked into the
// call's shared memory. Library rows: kernels/vendor/vendor_kernel.h.
#include "kernels/vendor/cublas.h"
#include "ops/matmul/cuda/packed_weight_reader.cuh"

namespace invar::ops {

extern const GpuKernel INVAR_ROW;

namespace INVAR_ISA_NS {
namespace {

using matmul::Shape;

// From so many rows on the library, with unpacking, is faster than the reproducible row
// (docs/design/adr/0055).
constexpr int64_t kReducedRows = 32, kFullRows = 256;
constexpr int64_t kMostColumns = int64_t{1} << 21;  // panels are the grid's second dimension
constexpr size_t kAlign = 256;
constexpr size_t aligned_size(int64_t bytes) {
  return (static_cast<size_t>(bytes) + kAlign - 1) / kAlign * kAlign;
}

// How the library makes a product, and offsets in the call's shared memory: workspace, b by
// columns, a in b's type.
struct CublasPlan {
  Shape s;
  bool library, unpacks, bf16;  // bf16: both operands; else f32
  int64_t ldb;                  // of b as unpacked: k, rounded up to whole words
  size_t b_at, a_at, bytes;
};
template <bool reduced>
CublasPlan cublas_plan(const Call& c) {
  CublasPlan w{};
  const View& b = c.in[1];
  w.s = matmul::shape(c);
  const Shape& s = w.s;
  w.library = c.in[0].dtype == DType::f32 && s.batches == 1 && !s.trans_a && s.k > 0 && s.n > 0 &&
              s.n <= kMostColumns && s.m >= (reduced ? kReducedRows : kFullRows) &&
              (b.packed || b.dtype == DType::f32);
  if (!w.library) return w;
  w.unpacks = b.packed;
  w.bf16 = reduced && b.dtype == DType::bf16;
  w.ldb = b.dtype == DType::f32 ? s.k : ceil_div(s.k, 2) * 2;
  const int64_t size = w.bf16 ? 2 : 4;
  w.b_at = cublas::kWorkspace;
  w.a_at = w.b_at + (w.unpacks ? aligned_size(s.n * w.ldb * size) : 0);
  w.bytes = w.a_at + (w.bf16 ? aligned_size(s.m * w.ldb * 2) : 0);
  return w;
}

// Unpacks words (packed_weight_reader.cuh) to columns one after another, in their own type or
// widened. A block transposes 32 rows of words of a panel.
constexpr int kTransposeTile = 32, kTransposeRows = 8;
template <class Reader, class To>
__global__ void __launch_bounds__(kTransposeTile* kTransposeRows)
    unpack_columns_kernel(Reader reader, const uint32_t* packed, int64_t n, int64_t rows, To* to) {
  __shared__ uint32_t tile[kTransposeTile][kTransposeTile + 1];
  const PanelSlice p = panel_slice(blockIdx.y, n, rows);
  const int64_t first = int64_t{blockIdx.x} * kTransposeTile;
  for (int i = threadIdx.y; i < kTransposeTile; i += kTransposeRows)
    if (first + i < rows && static_cast<int>(threadIdx.x) < p.width)
      tile[i][threadIdx.x] = packed[p.at + (first + i) * p.width + threadIdx.x];
  __syncthreads();
  const int64_t row = first + threadIdx.x;
  for (int j = threadIdx.y; j < p.width; j += kTransposeRows) {
    const int64_t column = int64_t{blockIdx.y} * kPanelColumns + j;
    if (row >= rows || column >= n) continue;
    const uint32_t word = tile[threadIdx.x][j];
    if constexpr (sizeof(To) == sizeof(uint32_t)) {
      to[column * rows + row] = word;  // unchanged: one f32, or two halves
    } else {
      const uint4 w = {word, 0, 0, 0};
      to[column * rows + row] = {reader.dequantize(w, {}, 0).v[0], reader.dequantize(w, {}, 1).v[0]};
    }
  }
}
void enqueue_unpack(const Call& c, const CublasPlan& w, void* to, Stream stream) {
  const View& b = c.in[1];
  const auto* const packed = b.as<const uint32_t>();
  with_reader(b.dtype, b.data, Strides{}, [&](auto reader) {
    using Reader = decltype(reader);
    const int64_t rows = w.ldb / Reader::kPerWord;
    const dim3 grid(grid_for(ceil_div(rows, kTransposeTile)), grid_for(ceil_div(w.s.n, kPanelColumns)));
    const dim3 block(kTransposeTile, kTransposeRows);
    if constexpr (Reader::kPerWord == 2)
      if (!w.bf16)
        return launch(unpack_columns_kernel<Reader, float2>, grid, block, 0, stream, reader, packed, w.s.n,
                      rows, static_cast<float2*>(to));
    launch(unpack_columns_kernel<Reader, uint32_t>, grid, block, 0, stream, reader, packed, w.s.n, rows,
           static_cast<uint32_t*>(to));
  });
}

template <bool reduced>
void enqueue(const Call& c, Stream stream) {
  const CublasPlan w = cublas_plan<reduced>(c);
  if (!w.library) return INVAR_ROW.enqueue(c, stream);
  const Shape& s = w.s;
  auto* const shared = static_cast<std::byte*>(c.shared);
  cublas::Product p{};
  p.m = s.m, p.n = s.n, p.k = s.k, p.c = c.out[0].as<float>(), p.workspace = shared;
  p.a = c.in[0].data, p.lda = s.k, p.tf32 = reduced;
  p.b = c.in[1].data, p.ldb = s.trans_b ? s.k : s.n, p.trans_b = s.trans_b;
  if (w.unpacks) {
    enqueue_unpack(c, w, shared + w.b_at, stream);
    p.b = shared + w.b_at, p.ldb = w.ldb, p.trans_b = true;
  }
  if (w.bf16) {
    const auto* const from = c.in[0].as<const float>();
    auto* const to = reinterpret_cast<uint16_t*>(shared + w.a_at);
    const int64_t k = s.k, ldb = w.ldb;
    launch_for_each(stream, s.m * ldb, [=] __device__(int64_t i) {
      const int64_t at = i % ldb;
      to[i] = at < k ? num::bf16_from_f32(from[i / ldb * k + at]) : uint16_t{0};
    });
    p.a = to, p.lda = ldb, p.type = cublas::Type::bf16, p.tf32 = false;
  }
  cublas::enqueue(p, stream);
}

template <bool reduced>
size_t shared_bytes(const Call& c) {
  const CublasPlan w = cublas_plan<reduced>(c);
  return w.library ? w.bytes : INVAR_ROW.shared_bytes(c);
}

// With few rows the reproducible row makes several products at once.
template <bool reduced>
bool uses_no_library(std::span<const Call* const> calls) {
  for (const Call* c : calls)
    if (cublas_plan<reduced>(*c).library) return false;
  return true;
}
template <bool reduced>
size_t shared_bytes_batch(std::span<const Call* const> calls) {
  if (uses_no_library<reduced>(calls)) return INVAR_ROW.shared_bytes_batch(calls);
  size_t most = 0;
  for (const Call* c : calls) most = std::max(most, shared_bytes<reduced>(*c));
  return most;
}
template <bool reduced>
void enqueue_batch(std::span<const Call* const> calls, Stream stream) {
  if (uses_no_library<reduced>(calls)) return INVAR_ROW.enqueue_batch(calls, stream);
  for (const Call* c : calls) enqueue<reduced>(*c, stream);
}

size_t reproducible_pack_bytes(const View& b, int i, const Attributes& attrs) {
  return INVAR_ROW.pack_bytes(b, i, attrs);
}
void enqueue_reproducible_pack(const View& b, int i, const Attributes& attrs, void* packed, Stream stream) {
  INVAR_ROW.enqueue_pack(b, i, attrs, packed, stream);
}

bool serves(std::span<const OperandInfo> operands) {
  return operands.size() == 2 && operands[0].dtype == DType::f32;
}

template <bool reduced>
constexpr GpuKernel row(const char* isa) {
  return {.op = "matmul",
          .isa = isa,
          .shared_bytes = shared_bytes<reduced>,
          .pack_bytes = reproducible_pack_bytes,
          .enqueue = enqueue<reduced>,
          .enqueue_batch = enqueue_batch<reduced>,
          .enqueue_pack = enqueue_reproducible_pack,
          .shared_bytes_batch = shared_bytes_batch<reduced>};
}
const GpuKernel kReduced = row<true>("cublas_reduced"), kFull = row<false>("cublas");

}  // namespace
}  // namespace INVAR_ISA_NS

extern const VendorRow library_matmul_cublas_reduced, library_matmul_cublas;
const VendorRow library_matmul_cublas_reduced = {&INVAR_ISA_NS::kReduced, &cublas::library, OperationSet::any,
                                                 INVAR_ISA_NS::serves};
const VendorRow library_matmul_cublas = {&INVAR_ISA_NS::kFull, &cublas::library, OperationSet::deterministic,
                                         INVAR_ISA_NS::serves};

}  // namespace invar::ops
