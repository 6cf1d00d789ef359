// How the rooms that reduce rows queue their kernels (num/reduce/block.h). An operation Fn has
//   kReductions, and Join<k>: what joins the k-th
//   kGives: whether it stores elements (else one value a row)
//   source(row), or for columns source(outer, column): the row's elements (Line)
//   operator()(row, r): the operation on row r, over num's HeldRow or ColumnRow
//   ahead(), where there is something to ask for before the kernel waits
// Fn is copied to the device; n is the length of the rows.
#pragma once
#include "num/reduce/block_columns.h"
#include "kernels/cuda/launch.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using num::INVAR_ISA_NS::kWhole, num::INVAR_ISA_NS::Pass;

constexpr int kTeam = 128, kMostTeams = 8, kSteps = num::kRowSegment / num::kRowLanes;
constexpr int kWarps = 4;  // rows of a block whose rows are one warp's

// kTeamOf: the threads of a team; a warp has a row for itself.
template <class Fn, int kTeamOf, int kStepsOf, int kTeams>
__global__ void __launch_bounds__(kTeamOf* kTeams)
    whole_rows(const __grid_constant__ Fn fn, int64_t rows, int64_t n) {
  extern __shared__ float4 room[];
  using Row = num::INVAR_ISA_NS::HeldRow<decltype(fn.source(0)), kTeamOf, kStepsOf, kWhole>;
  constexpr int kAtOnce = kTeamOf == kWarp ? kWarps : 1;
  if constexpr (requires { fn.ahead(); })
    if (blockIdx.x == 0) fn.ahead();
  follow();
  int64_t r = int64_t{blockIdx.x} * kAtOnce + (kAtOnce == 1 ? 0 : threadIdx.x / kWarp);
  for (; r < rows; r += int64_t{gridDim.x} * kAtOnce) {
    Row row(fn.source(r), n, kAtOnce == 1 ? threadIdx.x / kTeamOf : 0, reinterpret_cast<float*>(room), {}, r);
    fn(row, r);
    if (kAtOnce == 1) __syncthreads();
  }
}
template <class Fn, int kPhase>
__global__ void __launch_bounds__(kTeam)
    shared_rows(const __grid_constant__ Fn fn, int64_t n, int64_t segments, int64_t units, Pass pass) {
  extern __shared__ float4 room[];
  using Row = num::INVAR_ISA_NS::HeldRow<decltype(fn.source(0)), kTeam, kSteps, kPhase>;
  follow();
  for (int64_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const int64_t r = unit / segments;
    Row row(fn.source(r), n, unit % segments, reinterpret_cast<float*>(room), pass, r);
    fn(row, r);
    __syncthreads();
  }
}
template <class Fn, int kColumns, int kPhase>
__global__ void __launch_bounds__(num::INVAR_ISA_NS::column_threads(kColumns))
    column_rows(const __grid_constant__ Fn fn, int64_t n, int64_t inner, int64_t blocks, int64_t segments,
                int64_t units, Pass pass) {
  __shared__ float room[num::INVAR_ISA_NS::column_threads(kColumns)];
  using Row = num::INVAR_ISA_NS::ColumnRow<decltype(fn.source(0, 0)), kColumns, kPhase>;
  follow();
  for (int64_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const int64_t block = unit / segments, outer = block / blocks;
    const int64_t column = block % blocks * kColumns + threadIdx.x % kColumns;
    const bool there = column < inner;
    const int64_t r = outer * inner + (there ? column : 0);
    Row row(fn.source(outer, there ? column : 0), n, unit % segments, room, pass, r, there);
    fn(row, r);
  }
}

// reduction.5 of rows shared among blocks: a warp for each row, so many segments at a time, the next ones on their way.
template <class Join>
__global__ void __launch_bounds__(kWarp* kWarps) fold_rows(Pass pass, int64_t segments, int reduction) {
  constexpr int kEach = 8, kAtOnce = kEach * kWarp;
  constexpr int kAhead = 8;  // sums on their way from shared memory
  __shared__ float sums[kWarps][kAtOnce + kAhead];
  const int lane = threadIdx.x % kWarp;
  float* own = sums[threadIdx.x / kWarp];
  const int64_t step = int64_t{gridDim.x} * kWarps;
  follow();
  for (int64_t r = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp; r < pass.rows; r += step) {
    float next[kEach];
    auto load = [&](int64_t from) {
#pragma unroll
      for (int k = 0; k < kEach; ++k) {
        const int64_t g = from + k * kWarp + lane;
        next[k] = g < segments ? pass.partial[g * pass.rows + r] : Join::kStart;  // which changes nothing
      }
    };
    F total = set1(Join::kStart);
    load(0);
    for (int64_t from = 0; from < segments; from += kAtOnce) {
      __syncwarp();
#pragma unroll
      for (int k = 0; k < kEach; ++k) own[k * kWarp + lane] = next[k];
      __syncwarp();
      load(from + kAtOnce);
      const int count = segments - from < kAtOnce ? static_cast<int>(segments - from) : kAtOnce;
      float now[kAhead], then[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) now[k] = own[k];
      for (int g = 0; g < count; g += kAhead) {
#pragma unroll
        for (int k = 0; k < kAhead; ++k) then[k] = own[g + kAhead + k];
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
void fold(const Pass& pass, int64_t segments, Stream stream) {
  launch_early(fold_rows<typename Fn::template Join<k>>, dim3(grid_for(ceil_div(pass.rows, kWarps))),
               dim3(kWarp * kWarps), 0, stream, pass, segments, k);
}

size_t room_bytes(int threads, int team) {
  return num::INVAR_ISA_NS::room_floats(threads, team) * sizeof(float);
}
int64_t segments_of(int64_t n) {
  return n ? ceil_div(n, num::kRowSegment) : 1;
}
// Floats of Call::shared for `rows` rows that are shared among blocks.
size_t pass_bytes(int64_t rows, int64_t n, int reductions) {
  return static_cast<size_t>((segments_of(n) + reductions) * rows) * sizeof(float);
}
Pass pass_of(void* shared, int64_t rows, int64_t n) {
  float* partial = static_cast<float*>(shared);
  return {partial, partial + segments_of(n) * rows, rows};
}

// Rows along memory: longer ones than a block holds are shared among blocks.
constexpr int64_t kShortRow = 4 * num::kRowLanes;
bool shares_rows(int64_t n) {
  return n > kMostTeams * num::kRowSegment;
}
// Of Call::shared, for them.
size_t row_bytes(int64_t rows, int64_t n, int reductions) {
  return shares_rows(n) ? pass_bytes(rows, n, reductions) : 0;
}
template <class Fn, int k = 0>
void queue_shared(const Fn& fn, int64_t n, const Pass& pass, Stream stream) {
  const int64_t segments = k < Fn::kReductions || Fn::kGives ? segments_of(n) : 1;
  launch_early(shared_rows<Fn, k>, dim3(grid_for(pass.rows * segments)), dim3(kTeam),
               room_bytes(kTeam, kTeam), stream, fn, n, segments, pass.rows * segments, pass);
  if constexpr (k < Fn::kReductions) {
    fold<Fn, k>(pass, segments, stream);
    queue_shared<Fn, k + 1>(fn, n, pass, stream);
  }
}
// The kernels for whole rows: of at most 256 and 1024 elements, 4096, and more. Where rows are given back, and few, they have
// as many threads as find something to do; a sum is soon made by one warp.
constexpr int64_t kFewRows = 1024;
template <int kTeamOf, int kStepsOf, int kTeams, class Fn>
void queue_whole(const Fn& fn, int64_t rows, int64_t n, Stream stream) {
  const int64_t at_once = kTeamOf == kWarp ? kWarps : 1;
  const int threads = kTeamOf * (kTeamOf == kWarp ? kWarps : static_cast<int>(segments_of(n)));
  launch_early(whole_rows<Fn, kTeamOf, kStepsOf, kTeams>, dim3(grid_for(ceil_div(rows, at_once))),
               dim3(static_cast<unsigned>(threads)), room_bytes(threads, kTeamOf), stream, fn, rows, n);
}
template <class Fn>
void queue_short(const Fn& fn, int64_t rows, int64_t n, Stream stream) {
  if constexpr (Fn::kGives) {
    if (n <= num::kRowLanes) return queue_whole<kWarp, 1, kWarps>(fn, rows, n, stream);
    queue_whole<kTeam, 4, 1>(fn, rows, n, stream);
  } else {
    queue_whole<kWarp, 4, kWarps>(fn, rows, n, stream);
  }
}
template <class Fn>
void queue_rows(const Fn& fn, int64_t rows, int64_t n, void* shared, Stream stream) {
  if (rows == 0) return;
  if (shares_rows(n)) return queue_shared(fn, n, pass_of(shared, rows, n), stream);
  if (n <= kShortRow) return queue_short(fn, rows, n, stream);
  if constexpr (Fn::kGives)
    if (n <= num::kRowSegment && rows <= kFewRows)
      return queue_whole<num::kRowLanes, kSteps, 1>(fn, rows, n, stream);
  queue_whole<kTeam, kSteps, kMostTeams>(fn, rows, n, stream);
}

// Rows across memory, outer * inner of them. Blocks of fewer columns where there would be few blocks; rows are shared
// among blocks where there still are.
// For all of a GPU; none is asked, so that Call::shared is as large as was foreseen.
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
void queue_columns_of(const Fn& fn, const ColumnBlocks& c, void* shared, Stream stream) {
  const int64_t blocks = ceil_div(c.inner, kColumns);
  const dim3 threads(num::INVAR_ISA_NS::column_threads(kColumns));
  if (!c.shares) {
    const int64_t units = c.outer * blocks;
    return launch_early(column_rows<Fn, kColumns, kWhole>, dim3(grid_for(units)), threads, 0, stream, fn, c.n,
                        c.inner, blocks, int64_t{1}, units, Pass{});
  }
  const Pass pass = pass_of(shared, c.outer * c.inner, c.n);
  const int64_t segments = k < Fn::kReductions || Fn::kGives ? segments_of(c.n) : 1;
  const int64_t units = c.outer * blocks * segments;
  launch_early(column_rows<Fn, kColumns, k>, dim3(grid_for(units)), threads, 0, stream, fn, c.n, c.inner,
               blocks, segments, units, pass);
  if constexpr (k < Fn::kReductions) {
    fold<Fn, k>(pass, segments, stream);
    queue_columns_of<Fn, kColumns, k + 1>(fn, c, shared, stream);
  }
}
// Rows that are not in one piece: as columns, one at a time.
template <class Fn>
void queue_scattered_rows(const Fn& fn, int64_t rows, int64_t n, void* shared, Stream stream) {
  if (rows) queue_columns_of<Fn, 1>(fn, {1, rows, n, false, shares_rows(n)}, shared, stream);
}
// Rows along memory that are not aligned.
template <class Fn>
void queue_loose_rows(const Fn& fn, int64_t rows, int64_t n, void* shared, Stream stream) {
  if (n > kShortRow) return queue_scattered_rows(fn, rows, n, shared, stream);
  if (rows) queue_short(fn, rows, n, stream);
}
template <class Fn>
void queue_columns(const Fn& fn, const ColumnBlocks& c, void* shared, Stream stream) {
  if (c.outer * c.inner == 0) return;
  if (c.wide)
    queue_columns_of<Fn, kWarp>(fn, c, shared, stream);
  else
    queue_columns_of<Fn, 8>(fn, c, shared, stream);
}

bool aligned(const void* p, size_t bytes = 16) {
  return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
