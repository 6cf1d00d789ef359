// Linear attention: row by row, by steps of few rows, or by tiles of chunks. Bits depend on none.
#include "kernels/forced_route.h"
#include "ops/linear_attention/cuda/chunks.cuh"
#include "ops/linear_attention/cuda/rows.cuh"
#include "ops/linear_attention/cuda/steps.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

enum class Route { own, chunks, rows, steps, count };
// Tiles pay from this number of rows on. With a decay of each channel nothing is as fast for fewer.
constexpr int64_t kTiledRows = 16, kTiledRowsOfChannels = 4;
// Segments that are computed together: their weights fill the GPU, and take up to 70 MB.
constexpr int64_t kUnitsTogether = 2048, kUnitsOfChannelsTogether = 352;

bool has_channels(const Geometry& g) {
  return g.decays > 1;
}
// Whether tiles pay: with a decay of each channel the segments of a pass take 200 KB each, and few
// columns fill no tile.
bool pays(const Geometry& g) {
  if (!has_channels(g)) return g.seq >= kTiledRows;
  return g.seq >= kTiledRowsOfChannels && 2 * g.dv >= kSlice &&
         g.batch * g.value_heads <= kUnitsOfChannelsTogether;
}
// Tiles and steps hold one chain a product (contraction.2).
bool fits(const Geometry& g, size_t shared) {
  return g.d <= num::kChain &&
         device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) >= static_cast<int>(shared);
}
Route route_of(const Geometry& g) {
  const Route forced = static_cast<Route>(variant() % static_cast<int>(Route::count));
  const bool channels = has_channels(g), has_chunks = fits(g, ChunkLayout(g.d, channels).bytes()),
             has_steps = !channels && fits(g, StepLayout(g.d).bytes() + 1024);
  if (has_chunks && (forced == Route::own ? pays(g) : forced == Route::chunks)) return Route::chunks;
  return has_steps && forced != Route::rows ? Route::steps : Route::rows;
}

// Segments of a call, at most; and of a pass over them.
int64_t segments_of(const Geometry& g) {
  return ceil_div(g.seq + kChunkRows - 1, kChunkRows);
}
int64_t segments_of_pass(const Geometry& g) {
  const int64_t heads = g.batch * g.value_heads;
  const int64_t together = has_channels(g) ? kUnitsOfChannelsTogether : kUnitsTogether;
  return heads ? num::min_i64(segments_of(g), ceil_div(together, heads)) : segments_of(g);
}
size_t shared_bytes(const Call& call) {
  const Geometry g = linear_attention::geometry(call);
  const size_t rows = has_channels(g) ? static_cast<size_t>(channel_floats(g.d)) * sizeof(float) : 0;
  return route_of(g) == Route::chunks ? static_cast<size_t>(g.batch * g.value_heads * segments_of_pass(g)) *
                                            (sizeof(SegmentWeights) + rows)
                                      : 0;
}

template <bool kDelta>
void enqueue_channels(const Rows& p, void* shared, Stream stream) {
  const Geometry& g = p.g;
  const int64_t heads = g.batch * g.value_heads;
  const auto slices = static_cast<unsigned>(ceil_div(g.dv, kSlice));
  const int64_t all = segments_of(g), each = segments_of_pass(g);
  auto* const weights = static_cast<SegmentWeights*>(shared);
  float* const channels = reinterpret_cast<float*>(weights + heads * each);
  for (int64_t first = 0; first < all; first += each) {
    const auto n = static_cast<int>(num::min_i64(each, all - first));
    const auto units = static_cast<unsigned>(heads * n);
    launch_dependent(channel_rows_kernel, dim3(units), dim3(kThreads), 0, stream, p, channels, first, n);
    launch_dependent(channel_weights_kernel<kDelta>, dim3(units * kPairBlocks), dim3(kThreads), 0, stream, p,
                     weights, channels, first, n);
    launch_dependent(chunks_kernel<kDelta, true>, dim3(static_cast<unsigned>(heads) * slices),
                     dim3(kChunkThreads), ChunkLayout(g.d, true).bytes(), stream, p, weights, channels, first,
                     n, static_cast<int>(slices));
  }
}

template <bool kDelta>
void enqueue_chunks(const Rows& p, void* shared, Stream stream) {
  const Geometry& g = p.g;
  const int64_t heads = g.batch * g.value_heads, keys = g.batch * g.key_heads * ceil_div(g.group, kHeads);
  const auto slices = static_cast<unsigned>(ceil_div(g.dv, kSlice));
  const int64_t all = segments_of(g), each = segments_of_pass(g);
  auto* const weights = static_cast<SegmentWeights*>(shared);
  for (int64_t first = 0; first < all; first += each) {
    const auto n = static_cast<int>(num::min_i64(each, all - first));
    launch_dependent(weights_kernel<kDelta>, dim3(static_cast<unsigned>(keys * n)), dim3(kThreads), 0, stream,
                     p, weights, first, n);
    launch_dependent(chunks_kernel<kDelta, false>, dim3(static_cast<unsigned>(heads) * slices),
                     dim3(kChunkThreads), ChunkLayout(g.d, false).bytes(), stream, p, weights, nullptr, first,
                     n, static_cast<int>(slices));
  }
}

void enqueue(const Call& call, Stream stream) {
  const Geometry g = linear_attention::geometry(call);
  const auto is_aligned = [](const View& v) {
    return reinterpret_cast<uintptr_t>(v.data) % sizeof(float4) == 0;
  };
  const Rows p{.g = g,
               .q = call.in[0].as<const float>(),
               .k = call.in[1].as<const float>(),
               .v = call.in[2].as<const float>(),
               .decay = call.in[3].as<const float>(),
               .beta = g.beta ? g.beta->as<const float>() : nullptr,
               .y = call.out[0].as<float>(),
               .state = static_cast<std::byte*>(call.state),
               .slot_bytes = static_cast<int64_t>(call.slot_bytes),
               .sequences = call.sequences,
               .vectors = g.d % kVector == 0 && is_aligned(call.in[0]) && is_aligned(call.in[1])};
  const dim3 threads(kThreads), heads(static_cast<unsigned>(g.batch * g.value_heads));
  const Route route = route_of(g);
  if (route == Route::chunks && has_channels(g)) {
    (g.beta ? enqueue_channels<true> : enqueue_channels<false>)(p, call.shared, stream);
  } else if (route == Route::chunks) {
    (g.beta ? enqueue_chunks<true> : enqueue_chunks<false>)(p, call.shared, stream);
  } else if (route == Route::steps) {
    const auto slices = static_cast<unsigned>(ceil_div(g.dv, kStepColumns));
    launch_dependent(steps_kernel, dim3(heads.x * slices), threads, StepLayout(g.d).bytes(), stream, p,
                     static_cast<int>(slices));
  } else if (g.decays > 1) {
    launch_dependent(rows_kernel<true>, heads, threads, SharedRow::bytes(g), stream, p);
  } else {
    launch_dependent(rows_kernel<false>, heads, threads, SharedRow::bytes(g), stream, p);
  }
  if (route == Route::chunks || (route == Route::steps && g.seq > 1))
    launch_dependent(append_kernel, heads, threads, 0, stream, p);
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_LINEAR_ATTENTION_ROW(name)                                              \
  extern const GpuKernel INVAR_ROW_OF(name);                                          \
  const GpuKernel INVAR_ROW_OF(name) = {.op = #name,                                  \
                                        .isa = INVAR_ISA,                             \
                                        .shared_bytes = INVAR_ISA_NS::shared_bytes,   \
                                        .state_bytes = linear_attention::state_bytes, \
                                        .enqueue = INVAR_ISA_NS::enqueue};
INVAR_LINEAR_ATTENTION_ROW(gated_delta_rule)
INVAR_LINEAR_ATTENTION_ROW(gated_linear_attention)
#undef INVAR_LINEAR_ATTENTION_ROW

}  // namespace invar::ops
