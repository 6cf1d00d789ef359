// Launches the kernels of operations that reduce rows (num/reduce/block.h). An operation Fn has
//   kReductions, and Join<k>: the operator of the k-th reduction
//   kStoresRow: whether it stores a row (else one value for each row)
//   source(row), or for columns source(outer, column): the row's elements
//   operator()(row, r): the operation on row r, over num's RegisterRow or ColumnRow
//   prefetch(), optional: called before the kernel waits for the previous grid
// Fn is copied to the device; n is the length of the rows.
#pragma once
#include "kernels/cuda/fold_segments.cuh"
#include "num/reduce/block_columns.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using num::INVAR_ISA_NS::kCluster, num::INVAR_ISA_NS::kWhole, num::INVAR_ISA_NS::ReductionPass;

constexpr int kTeam = 128, kMaxTeams = 8, kSteps = num::kRowSegment / num::kRowLanes;
constexpr int kWarps = 4;  // rows of a block, one for each warp

// Rows that a block or a warp holds in registers. kTeamOf: the threads of a team, which holds a
// segment; a team of one warp holds a row.
template <class Fn, int kTeamOf, int kStepsOf, int kTeams>
__global__ void __launch_bounds__(kTeamOf* kTeams)
    held_rows_kernel(const __grid_constant__ Fn fn, int64_t rows, int64_t n) {
  extern __shared__ float4 scratch[];
  using Row = num::INVAR_ISA_NS::RegisterRow<decltype(fn.source(0)), kTeamOf, kStepsOf, kWhole>;
  constexpr int kAtOnce = kTeamOf == kWarp ? kWarps : 1;
  if constexpr (requires { fn.prefetch(); })
    if (blockIdx.x == 0) fn.prefetch();
  trigger_and_wait();
  int64_t r = int64_t{blockIdx.x} * kAtOnce + (kAtOnce == 1 ? 0 : threadIdx.x / kWarp);
  for (; r < rows; r += int64_t{gridDim.x} * kAtOnce) {
    Row row(fn.source(r), n, kAtOnce == 1 ? threadIdx.x / kTeamOf : 0, reinterpret_cast<float*>(scratch), {},
            r);
    fn(row, r);
    if (kAtOnce == 1) __syncthreads();
  }
}
template <class Fn, int kPhase>
__global__ void __launch_bounds__(kTeam)
    split_rows_kernel(const __grid_constant__ Fn fn, int64_t n, int64_t segments, int64_t units,
                      ReductionPass pass) {
  extern __shared__ float4 scratch[];
  using Row = num::INVAR_ISA_NS::RegisterRow<decltype(fn.source(0)), kTeam, kSteps, kPhase>;
  trigger_and_wait();
  for (int64_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const int64_t r = unit / segments;
    Row row(fn.source(r), n, unit % segments, reinterpret_cast<float*>(scratch), pass, r);
    fn(row, r);
    __syncthreads();
  }
}
// Reduction kPhase of few long rows: a block for each row folds what the others sum. It waits for
// blocks that wait for nothing.
template <class Fn, int kPhase>
__global__ void __launch_bounds__(kTeam)
    split_and_fold_kernel(const __grid_constant__ Fn fn, int64_t n, int64_t segments, ReductionPass pass) {
  extern __shared__ float4 scratch[];
  using Row = num::INVAR_ISA_NS::RegisterRow<decltype(fn.source(0)), kTeam, kSteps, kPhase>;
  trigger_and_wait();
  if (blockIdx.x < pass.rows) {
    using Join = typename Fn::template Join<kPhase>;
    const F total = fold_segments<Join, kTeam>(pass, segments, blockIdx.x);
    if (threadIdx.x == 0) pass.total[kPhase * pass.rows + blockIdx.x] = total.v;
    return;
  }
  const int64_t unit = blockIdx.x - pass.rows, r = unit / segments;
  Row row(fn.source(r), n, unit % segments, reinterpret_cast<float*>(scratch), pass, r);
  fn(row, r);
}
template <class Fn, int kColumns, int kPhase>
__global__ void __launch_bounds__(num::INVAR_ISA_NS::column_threads(kColumns))
    columns_kernel(const __grid_constant__ Fn fn, int64_t n, int64_t inner, int64_t blocks, int64_t segments,
                   int64_t units, ReductionPass pass) {
  __shared__ float scratch[num::INVAR_ISA_NS::column_threads(kColumns)];
  using Row = num::INVAR_ISA_NS::ColumnRow<decltype(fn.source(0, 0)), kColumns, kPhase>;
  trigger_and_wait();
  for (int64_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const int64_t block = unit / segments, outer = block / blocks;
    const int64_t column = block % blocks * kColumns + threadIdx.x % kColumns;
    const bool in_range = column < inner;
    const int64_t r = outer * inner + (in_range ? column : 0);
    Row row(fn.source(outer, in_range ? column : 0), n, unit % segments, scratch, pass, r, in_range);
    fn(row, r);
  }
}

// Rows that a cluster of blocks holds in registers: those that one block cannot hold.
constexpr int kMostClusterThreads = 1024;  // of a block
template <class Fn, int kTeamOf>
__global__ void __launch_bounds__(kMostClusterThreads)
    cluster_rows_kernel(const __grid_constant__ Fn fn, int64_t n) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  extern __shared__ float4 scratch[];
  using Row = num::INVAR_ISA_NS::RegisterRow<decltype(fn.source(0)), kTeamOf, kSteps, kCluster>;
  trigger_and_wait();
  const int64_t r = blockIdx.x / num::INVAR_ISA_NS::cluster_size();
  const int team = num::INVAR_ISA_NS::cluster_rank() * (blockDim.x / kTeamOf) + threadIdx.x / kTeamOf;
  Row row(fn.source(r), n, team, reinterpret_cast<float*>(scratch), {}, r);
  fn(row, r);
#endif
}

// reduction.5 of rows that are split among blocks: a warp combines the segments of a row, loading
// the next ones ahead.
template <class Join>
__global__ void __launch_bounds__(kWarp* kWarps)
    combine_segments_kernel(ReductionPass pass, int64_t segments, int reduction) {
  constexpr int kPerLane = 8, kAtOnce = kPerLane * kWarp;
  constexpr int kAhead = 8;  // sums that are loaded ahead from shared memory
  __shared__ float sums[kWarps][kAtOnce + kAhead];
  const int lane = threadIdx.x % kWarp;
  float* warp_sums = sums[threadIdx.x / kWarp];
  const int64_t step = int64_t{gridDim.x} * kWarps;
  trigger_and_wait();
  for (int64_t r = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp; r < pass.rows; r += step) {
    float next[kPerLane];
    auto load = [&](int64_t from) {
#pragma unroll
      for (int k = 0; k < kPerLane; ++k) {
        const int64_t g = from + k * kWarp + lane;
        next[k] = g < segments ? pass.partial[g * pass.rows + r] : Join::kStart;  // the neutral element
      }
    };
    F total = set1(Join::kStart);
    load(0);
    for (int64_t from = 0; from < segments; from += kAtOnce) {
      __syncwarp();
#pragma unroll
      for (int k = 0; k < kPerLane; ++k) warp_sums[k * kWarp + lane] = next[k];
      __syncwarp();
      load(from + kAtOnce);
      const int count = segments - from < kAtOnce ? static_cast<int>(segments - from) : kAtOnce;
      float now[kAhead], then[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) now[k] = warp_sums[k];
      for (int g = 0; g < count; g += kAhead) {
#pragma unroll
        for (int k = 0; k < kAhead; ++k) then[k] = warp_sums[g + kAhead + k];
#pragma unroll
        for (int k = 0; k < kAhead; ++k) total = Join::join(total, F{now[k]});
#pragma unroll
        for (int k = 0; k < kAhead; ++k) now[k] = then[k];
      }
    }
    if (lane == 0) pass.total[reduction * pass.rows + r] = total.v;
  }
}

template <class Fn, int k>
void launch_combine(const ReductionPass& pass, int64_t segments, Stream stream) {
  launch_dependent(combine_segments_kernel<typename Fn::template Join<k>>,
                   dim3(grid_for(ceil_div(pass.rows, kWarps))), dim3(kWarp * kWarps), 0, stream, pass,
                   segments, k);
}

size_t scratch_bytes(int threads, int team) {
  return 2 * num::INVAR_ISA_NS::room_floats(threads, team) * sizeof(float);
}
int64_t segments_of(int64_t n) {
  return n ? ceil_div(n, num::kRowSegment) : 1;
}
// Bytes of Call::shared for `rows` rows that are split among blocks.
size_t pass_bytes(int64_t rows, int64_t n, int reductions) {
  return static_cast<size_t>((segments_of(n) + reductions) * rows) * sizeof(float);
}
ReductionPass pass_of(void* shared, int64_t rows, int64_t n) {
  float* partial = static_cast<float*>(shared);
  return {partial, partial + segments_of(n) * rows, rows};
}

// Contiguous rows: longer ones than a block holds are split among blocks.
constexpr int64_t kShortRow = 4 * num::kRowLanes;
bool splits_rows(int64_t n) {
  return n > kMaxTeams * num::kRowSegment;
}
// Bytes of Call::shared for contiguous rows.
size_t row_bytes(int64_t rows, int64_t n, int reductions) {
  return splits_rows(n) ? pass_bytes(rows, n, reductions) : 0;
}
constexpr int64_t kManySegments = 1024, kFewFolds = 32;
template <class Fn, int k = 0>
void launch_split_rows(const Fn& fn, int64_t n, const ReductionPass& pass, Stream stream) {
  const int64_t segments = k < Fn::kReductions || Fn::kStoresRow ? segments_of(n) : 1;
  if constexpr (k < Fn::kReductions && !Fn::kStoresRow)
    if (segments >= kManySegments && pass.rows <= kFewFolds && pass.rows * segments < INT32_MAX / 2) {
      launch_mark_sums(pass, segments, stream);
      launch_dependent(split_and_fold_kernel<Fn, k>, dim3(grid_for(pass.rows * (segments + 1))), dim3(kTeam),
                       scratch_bytes(kTeam, kTeam), stream, fn, n, segments, pass);
      return launch_split_rows<Fn, k + 1>(fn, n, pass, stream);
    }
  launch_dependent(split_rows_kernel<Fn, k>, dim3(grid_for(pass.rows * segments)), dim3(kTeam),
                   scratch_bytes(kTeam, kTeam), stream, fn, n, segments, pass.rows * segments, pass);
  if constexpr (k < Fn::kReductions) {
    launch_combine<Fn, k>(pass, segments, stream);
    launch_split_rows<Fn, k + 1>(fn, n, pass, stream);
  }
}
// Kernels that hold rows, of at most 256, 1024 and 4096 elements, and more. If few rows are stored,
// a block has as many threads as there is work for; for a single value a row one warp is fast
// enough.
constexpr int64_t kFewRows = 1024;
template <int kTeamOf, int kStepsOf, int kTeams, class Fn>
void launch_held_rows(const Fn& fn, int64_t rows, int64_t n, Stream stream) {
  const int64_t at_once = kTeamOf == kWarp ? kWarps : 1;
  const int threads = kTeamOf * (kTeamOf == kWarp ? kWarps : static_cast<int>(segments_of(n)));
  launch_dependent(held_rows_kernel<Fn, kTeamOf, kStepsOf, kTeams>, dim3(grid_for(ceil_div(rows, at_once))),
                   dim3(static_cast<unsigned>(threads)), scratch_bytes(threads, kTeamOf), stream, fn, rows,
                   n);
}
template <class Fn>
void launch_short_rows(const Fn& fn, int64_t rows, int64_t n, Stream stream) {
  if constexpr (Fn::kStoresRow) {
    if (n <= num::kRowLanes) return launch_held_rows<kWarp, 1, kWarps>(fn, rows, n, stream);
    launch_held_rows<kTeam, 4, 1>(fn, rows, n, stream);
  } else {
    launch_held_rows<kWarp, 4, kWarps>(fn, rows, n, stream);
  }
}
// Rows for a cluster. Pairs take two registers an element, so a thread holds half as many.
template <class Fn>
constexpr bool kHoldsPairs = requires(const Fn& fn) {
  typename decltype(fn.source(0))::Element;
};
template <class Fn>
constexpr int kClusterTeam = kHoldsPairs<Fn> ? num::kRowLanes : kTeam;
// Operations that a cluster makes faster: they read their rows three times unless these are held.
// Pairs and single results take longer in one.
template <class Fn>
constexpr bool kManyPasses = Fn::kReductions > 1 && Fn::kStoresRow && !kHoldsPairs<Fn>;
template <class Fn>
bool fits_cluster(int64_t n) {
  constexpr int64_t kMost = kMostClusterThreads / kClusterTeam<Fn> * num::INVAR_ISA_NS::kMaxClusterBlocks;
  return segments_of(n) <= kMost && supports_dependent_launch();
}
// As many blocks as let two of them run on a multiprocessor.
template <class Fn>
void launch_cluster_rows(const Fn& fn, int64_t rows, int64_t n, Stream stream) {
  constexpr int kTeamOf = kClusterTeam<Fn>, kEnough = kMostClusterThreads / 2 / kTeamOf;
  const int64_t segments = segments_of(n);
  const unsigned blocks = segments <= 2 * kEnough ? 2 : segments <= 4 * kEnough ? 4 : 8;
  const int threads = static_cast<int>(ceil_div(segments, blocks)) * kTeamOf;
  launch_clusters(cluster_rows_kernel<Fn, kTeamOf>, blocks, dim3(grid_for(rows * blocks)),
                  dim3(static_cast<unsigned>(threads)),
                  scratch_bytes(threads, kTeamOf) + num::INVAR_ISA_NS::kClusterFloats * sizeof(float), stream,
                  fn, n);
}
// Rows that a block holds.
template <class Fn>
void launch_block_rows(const Fn& fn, int64_t rows, int64_t n, Stream stream) {
  if (n <= kShortRow) return launch_short_rows(fn, rows, n, stream);
  if constexpr (kHoldsPairs<Fn>) {
    if (n <= 2 * num::kRowSegment) return launch_held_rows<num::kRowLanes, kSteps, 2>(fn, rows, n, stream);
    if (n <= 4 * num::kRowSegment) return launch_held_rows<num::kRowLanes, kSteps, 4>(fn, rows, n, stream);
  }
  if constexpr (Fn::kStoresRow)
    if (n <= num::kRowSegment && rows <= kFewRows)
      return launch_held_rows<num::kRowLanes, kSteps, 1>(fn, rows, n, stream);
  launch_held_rows<kTeam, kSteps, kMaxTeams>(fn, rows, n, stream);
}
template <class Fn>
void launch_rows(const Fn& fn, int64_t rows, int64_t n, void* shared, Stream stream) {
  if (rows == 0) return;
  if (!splits_rows(n)) return launch_block_rows(fn, rows, n, stream);
  if constexpr (kManyPasses<Fn>)
    if (fits_cluster<Fn>(n)) return launch_cluster_rows(fn, rows, n, stream);
  launch_split_rows(fn, n, pass_of(shared, rows, n), stream);
}

// Strided rows (columns), outer * inner of them. Blocks take fewer columns if there would be few
// blocks; rows are split among blocks if there still are.
// Enough for any GPU. It is no property of the device, so Call::shared is as large as was planned.
constexpr int64_t kEnoughBlocks = 256;
struct ColumnBlocks {
  int64_t inner, outer, n;
  bool wide, shares;
};
ColumnBlocks column_blocks(int64_t outer, int64_t inner, int64_t n) {
  const bool wide = inner > 8 && outer * ceil_div(inner, kWarp) >= kEnoughBlocks;
  return {inner, outer, n, wide,
          segments_of(n) > 1 && outer * ceil_div(inner, wide ? kWarp : 8) < kEnoughBlocks};
}
size_t column_bytes(const ColumnBlocks& c, int reductions) {
  return c.shares ? pass_bytes(c.outer * c.inner, c.n, reductions) : 0;
}
template <class Fn, int kColumns, int k = 0>
void launch_columns_of(const Fn& fn, const ColumnBlocks& c, void* shared, Stream stream) {
  const int64_t blocks = ceil_div(c.inner, kColumns);
  const dim3 threads(num::INVAR_ISA_NS::column_threads(kColumns));
  if (!c.shares) {
    const int64_t units = c.outer * blocks;
    return launch_dependent(columns_kernel<Fn, kColumns, kWhole>, dim3(grid_for(units)), threads, 0, stream,
                            fn, c.n, c.inner, blocks, int64_t{1}, units, ReductionPass{});
  }
  const ReductionPass pass = pass_of(shared, c.outer * c.inner, c.n);
  const int64_t segments = k < Fn::kReductions || Fn::kStoresRow ? segments_of(c.n) : 1;
  const int64_t units = c.outer * blocks * segments;
  launch_dependent(columns_kernel<Fn, kColumns, k>, dim3(grid_for(units)), threads, 0, stream, fn, c.n,
                   c.inner, blocks, segments, units, pass);
  if constexpr (k < Fn::kReductions) {
    launch_combine<Fn, k>(pass, segments, stream);
    launch_columns_of<Fn, kColumns, k + 1>(fn, c, shared, stream);
  }
}
// Rows whose elements are scattered: as columns, one at a time.
template <class Fn>
void launch_scattered_rows(const Fn& fn, int64_t rows, int64_t n, void* shared, Stream stream) {
  if (rows) launch_columns_of<Fn, 1>(fn, {1, rows, n, false, splits_rows(n)}, shared, stream);
}
// Contiguous rows that are not aligned.
template <class Fn>
void launch_unaligned_rows(const Fn& fn, int64_t rows, int64_t n, void* shared, Stream stream) {
  if (rows == 0) return;
  if constexpr (kManyPasses<Fn>) {
    if (!splits_rows(n)) return launch_block_rows(fn, rows, n, stream);
    if (fits_cluster<Fn>(n)) return launch_cluster_rows(fn, rows, n, stream);
  }
  if (n > kShortRow) return launch_scattered_rows(fn, rows, n, shared, stream);
  launch_short_rows(fn, rows, n, stream);
}
template <class Fn>
void launch_columns(const Fn& fn, const ColumnBlocks& c, void* shared, Stream stream) {
  if (c.outer * c.inner == 0) return;
  if (c.wide)
    launch_columns_of<Fn, kWarp>(fn, c, shared, stream);
  else
    launch_columns_of<Fn, 8>(fn, c, shared, stream);
}

bool aligned(const void* p, size_t bytes = 16) {
  return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
