// Reductions of binary64: a block takes a row, a thread one lane of its segments (reduction.14).
#pragma once
#include "ops/reduce/cpu/binary64.h"
#include "ops/reduce/cuda/unordered.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

template <class Op>
__global__ void __launch_bounds__(num::kRowLanes)
    binary64_kernel(const __grid_constant__ Reduction r, const double* x, double* out) {
  using Join = typename Op::Join;
  __shared__ double lane[num::kRowLanes];
  const int j = threadIdx.x;
  for (int64_t row = blockIdx.x; row < r.outputs; row += gridDim.x) {
    const int64_t outer = r.columnwise ? row / r.inner : row, column = r.columnwise ? row % r.inner : 0;
    const StridedElements<double> row_at{x + StridedDims::offset(r.kept, outer) + column, &r.reduced,
                                         r.n <= INT32_MAX};
    double total = Join::kStart;
    for (int64_t begin = 0; begin < r.n; begin += num::kRowSegment) {
      const int64_t end = begin + num::kRowSegment < r.n ? begin + num::kRowSegment : r.n;
      double own = Join::kStart;
      for (int64_t i = begin + j; i < end; i += num::kRowLanes) own = Op::step(own, *row_at.at(i));
      lane[j] = own;
      __syncthreads();
      for (int stride = num::kRowLanes / 2; stride >= 1; stride /= 2) {
        if (j < stride) lane[j] = Join::join(lane[j], lane[j + stride]);
        __syncthreads();
      }
      total = Join::join(total, lane[0]);
      __syncthreads();
    }
    if (j == 0) out[row] = num::canonicalize64(Op::finish(total, r.n));
  }
}
template <class Op>
void enqueue_binary64(const Call& call, Stream stream) {
  const Reduction r = reduction_of(call);
  launch(binary64_kernel<Op>, dim3(grid_for(r.outputs)), dim3(num::kRowLanes), 0, stream, r,
         call.in[0].as<const double>(), call.out[0].as<double>());
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
