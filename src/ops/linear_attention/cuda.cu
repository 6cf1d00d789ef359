// Linear attention: row by row, or by tiles of chunks. Bits depend on neither.
#include "kernels/forced_route.h"
#include "ops/linear_attention/cuda/chunks.cuh"
#include "ops/linear_attention/cuda/rows.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// Tiles pay from so many rows on. They hold one chain a product (contraction.2).
constexpr int64_t kTiledRows = 16;
bool fits_chunks(const Geometry& g) {
  return g.decays == 1 && g.d <= num::kChain &&
         device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) >= static_cast<int>(sizeof(ChunkShared));
}
bool by_chunks(const Geometry& g) {
  const int forced = variant() % 3;
  return fits_chunks(g) && (forced ? forced == 1 : g.seq >= kTiledRows);
}

void enqueue(const Call& call, Stream stream) {
  const Geometry g = linear_attention::geometry(call);
  const Rows p{.g = g,
               .q = call.in[0].as<const float>(),
               .k = call.in[1].as<const float>(),
               .v = call.in[2].as<const float>(),
               .decay = call.in[3].as<const float>(),
               .beta = g.beta ? g.beta->as<const float>() : nullptr,
               .y = call.out[0].as<float>(),
               .state = static_cast<std::byte*>(call.state),
               .slot_bytes = static_cast<int64_t>(call.slot_bytes),
               .sequences = call.sequences};
  const dim3 threads(kThreads), heads(static_cast<unsigned>(g.batch * g.value_heads));
  if (by_chunks(g)) {
    const auto slices = static_cast<unsigned>(ceil_div(g.dv, kSlice));
    const dim3 blocks(heads.x * slices);
    if (g.beta)
      launch_dependent(chunks_kernel<true>, blocks, threads, sizeof(ChunkShared), stream, p, slices);
    else
      launch_dependent(chunks_kernel<false>, blocks, threads, sizeof(ChunkShared), stream, p, slices);
    launch_dependent(append_kernel, heads, threads, 0, stream, p);
  } else if (g.decays > 1) {
    launch_dependent(rows_kernel<true>, heads, threads, SharedRow::bytes(g), stream, p);
  } else {
    launch_dependent(rows_kernel<false>, heads, threads, SharedRow::bytes(g), stream, p);
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_LINEAR_ATTENTION_ROW(name)                                              \
  extern const GpuKernel INVAR_ROW_OF(name);                                          \
  const GpuKernel INVAR_ROW_OF(name) = {.op = #name,                                  \
                                        .isa = INVAR_ISA,                             \
                                        .state_bytes = linear_attention::state_bytes, \
                                        .enqueue = INVAR_ISA_NS::enqueue};
INVAR_LINEAR_ATTENTION_ROW(gated_delta_rule)
INVAR_LINEAR_ATTENTION_ROW(gated_linear_attention)
#undef INVAR_LINEAR_ATTENTION_ROW

}  // namespace invar::ops
