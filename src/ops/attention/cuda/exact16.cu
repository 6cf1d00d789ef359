// attention_exact16 of a GPU (spec/attention-exact16.md) and its choice of kernels.
#include "ops/attention/cuda/exact16/row_per_block.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

size_t state_bytes_exact16(const Call& call, int64_t capacity) {
  const Geometry g = attention::geometry(call);
  const int64_t blocks = ceil_div(capacity > g.keys ? capacity : g.keys, kBlock);
  return static_cast<size_t>(g.kv_heads * blocks * ExactLayout(g).block());
}

void enqueue_exact16(const Call& call, Stream stream) {
  const Geometry g = attention::geometry(call);
  const AttentionParams s = attention_params(call, g);
  const int64_t heads = g.batch * g.kv_heads;
  if (heads * g.keys)
    launch_dependent(exact_append_kernel,
                     dim3(grid_for(ceil_div(heads * g.keys, kExactAppendThreads / kWarp))),
                     dim3(kExactAppendThreads), 0, stream, s);
  if (heads * g.rows)
    launch_dependent(exact_rows_kernel, dim3(static_cast<unsigned>(heads * g.rows)), dim3(kExactRowThreads),
                     0, stream, s);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(attention_exact16);
const GpuKernel INVAR_ROW_OF(attention_exact16) = {.op = "attention_exact16",
                                                   .isa = INVAR_ISA,
                                                   .state_bytes = INVAR_ISA_NS::state_bytes_exact16,
                                                   .enqueue = INVAR_ISA_NS::enqueue_exact16};

}  // namespace invar::ops
