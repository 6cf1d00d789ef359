// Launches the kernels of normalizations whose rows fit a block's shared memory
// (num/reduce/shared_row.h), for an operation Fn as row_reduction.cuh describes.
#pragma once
#include "kernels/cuda/launch.h"
#include "num/reduce/shared_row.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

template <class Fn, int kQuads>
__global__ void __launch_bounds__(kQuads == 2 ? 512 : 1024, kQuads == 2 ? 3 : 1)
    shared_rows_kernel(const __grid_constant__ Fn fn, int64_t rows, int n) {
  extern __shared__ float4 room[];
  using Row = num::INVAR_ISA_NS::SharedRow<decltype(fn.source(0)), kQuads>;
  trigger_next_grid();
  if constexpr (requires { fn.prefetch(); })
    if (blockIdx.x == 0) fn.prefetch();
  wait_for_previous_grid();
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    Row row(fn.source(r), n, reinterpret_cast<float*>(room));
    fn(row, r);
    __syncthreads();
  }
}

bool can_share_rows(int64_t n) {
  return n > num::kRowLanes && n <= 4 * num::kRowSegment;
}
template <int kQuads, class Fn>
void launch_shared_quads(const Fn& fn, int64_t rows, int64_t n, Stream stream) {
  const int64_t threads = ceil_div(n, num::kSharedQuad * kQuads * num::kRowLanes) * num::kRowLanes;
  launch_dependent(shared_rows_kernel<Fn, kQuads>, dim3(grid_for(rows)), dim3(static_cast<unsigned>(threads)),
                   num::shared_row_floats(n) * sizeof(float), stream, fn, rows, static_cast<int>(n));
}
template <class Fn>
void launch_shared_rows(const Fn& fn, int64_t rows, int64_t n, Stream stream) {
  if (rows == 0) return;
  if (n <= num::kRowSegment) return launch_shared_quads<2>(fn, rows, n, stream);
  launch_shared_quads<4>(fn, rows, n, stream);
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
