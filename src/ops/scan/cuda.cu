// Cumulative sums and products. For contiguous rows a block takes a row, 16 blocks of the scan at a
// time, and reorders them in shared memory so that neighbouring threads access neighbouring
// elements. For strided rows it takes 32 columns, one block of the scan at a time.
#include "kernels/cuda/launch.h"
#include "num/reduce/binary64.h"
#include "num/reduce/block_scan.h"
#include "ops/scan/scan.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int kColumns = kWarp, kBlocks = 16, kTile = kBlocks * num::kScanBlock,
              kThreadElements = num::kScanRun;

// Integers wrap, so their order does not matter (scan.3).
template <bool kProduct, class U>
struct Wrapping {
  static constexpr U kStart = kProduct;
  INVAR_INLINE U join(U a, U b) { return kProduct ? a * b : a + b; }
};
INVAR_DEVICE float stored(float x) {
  return canonicalize(F{x}).v;
}
INVAR_DEVICE double stored(double x) {
  return num::canonicalize64(x);
}
template <class U>
INVAR_DEVICE U stored(U x) {
  return x;
}

template <class Join, class T>
__global__ void __launch_bounds__(kTile / kThreadElements) scan_rows(ScanShape s, const T* x, T* y) {
  using Tile = num::INVAR_ISA_NS::ScanTile<T, 1, kBlocks>;
  __shared__ Tile tile;
  __shared__ T value[kTile + kTile / kThreadElements];  // padded after each run against bank conflicts
  const auto at = [](int i) { return i + i / kThreadElements; };
  const int run = threadIdx.x;
  for (int64_t row = blockIdx.x; row < s.outer; row += gridDim.x) {
    const T* from = x + row * s.n;
    T* to = y + row * s.n;
    T carry = Join::kStart;
    for (int64_t begin = 0; begin < s.n; begin += kTile) {
      const int count = s.n - begin < kTile ? static_cast<int>(s.n - begin) : kTile;
      for (int i = run; i < kTile; i += Tile::kThreads)
        value[at(i)] = i < count ? from[scan_position(s, begin + i)] : T{Join::kStart};
      __syncthreads();
      T v[kThreadElements];
#pragma unroll
      for (int k = 0; k < kThreadElements; ++k) v[k] = value[at(run * kThreadElements + k)];
      const T before = carry;
      num::INVAR_ISA_NS::scan_tile<Join>(tile, run, 0, v, carry);
#pragma unroll
      for (int k = 0; k < kThreadElements; ++k) value[at(run * kThreadElements + k)] = v[k];
      __syncthreads();
      for (int i = run; i < count; i += Tile::kThreads)
        to[scan_position(s, begin + i)] = stored(!s.exclusive ? value[at(i)] : i ? value[at(i - 1)] : before);
      __syncthreads();
    }
  }
}

template <class Join, class T>
__global__ void __launch_bounds__(kColumns* num::kScanRuns)
    scan_columns(ScanShape s, int64_t blocks, const T* x, T* y) {
  __shared__ num::INVAR_ISA_NS::ScanTile<T, kColumns, 1> tile;
  const int run = threadIdx.x / kColumns, c = threadIdx.x % kColumns;
  for (int64_t block = blockIdx.x; block < s.outer * blocks; block += gridDim.x) {
    const int64_t column = block % blocks * kColumns + c, base = block / blocks * s.n * s.inner + column;
    const int64_t end = column < s.inner ? s.n : 0;
    T carry = Join::kStart;
    for (int64_t begin = 0; begin < s.n; begin += num::kScanBlock) {
      const int64_t first = begin + run * kThreadElements;
      T v[kThreadElements];
#pragma unroll
      for (int k = 0; k < kThreadElements; ++k)
        v[k] = first + k < end ? x[base + scan_position(s, first + k) * s.inner] : T{Join::kStart};
      if (s.exclusive && first == 0 && end) y[base + scan_position(s, 0) * s.inner] = Join::kStart;
      num::INVAR_ISA_NS::scan_tile<Join>(tile, run, c, v, carry);
#pragma unroll
      for (int k = 0; k < kThreadElements; ++k) {
        const int64_t i = first + k + s.exclusive;
        if (i < end) y[base + scan_position(s, i) * s.inner] = stored(v[k]);
      }
    }
  }
}

template <class Join, class T>
void enqueue_type(const Call& call, Stream stream) {
  const ScanShape s = scan_shape(call);
  if (s.n == 0) return;
  const T* x = call.in[0].as<const T>();
  T* y = call.out[0].as<T>();
  if (s.inner == 1)
    return launch(scan_rows<Join, T>, dim3(grid_for(s.outer)), dim3(kTile / kThreadElements), 0, stream, s, x,
                  y);
  const int64_t blocks = ceil_div(s.inner, kColumns);
  launch(scan_columns<Join, T>, dim3(grid_for(s.outer * blocks)), dim3(kColumns * num::kScanRuns), 0, stream,
         s, blocks, x, y);
}
template <bool kProduct, class Join>
void enqueue(const Call& call, Stream stream) {
  if (call.in[0].dtype == DType::i64)
    return enqueue_type<Wrapping<kProduct, uint64_t>, uint64_t>(call, stream);
  if (call.in[0].dtype == DType::i32)
    return enqueue_type<Wrapping<kProduct, uint32_t>, uint32_t>(call, stream);
  if (call.in[0].dtype == DType::f64) {
    using Wide = std::conditional_t<kProduct, num::INVAR_ISA_NS::Product64, num::INVAR_ISA_NS::Sum64>;
    return enqueue_type<Wide, double>(call, stream);  // scan.5
  }
  enqueue_type<Join, float>(call, stream);
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_SCAN(name, ...)                \
  extern const GpuKernel INVAR_ROW_OF(name); \
  const GpuKernel INVAR_ROW_OF(name) = {     \
      .op = #name, .isa = INVAR_ISA, .enqueue = INVAR_ISA_NS::enqueue<__VA_ARGS__>};
INVAR_SCAN(cumsum, false, num::INVAR_ISA_NS::SumOp)
INVAR_SCAN(cumprod, true, num::INVAR_ISA_NS::ProductOp)

}  // namespace invar::ops
