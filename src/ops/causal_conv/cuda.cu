// Causal convolution: a thread has an element of the result. A call of several positions leaves its
// last inputs to a kernel of its own, because elements read the state that it overwrites.
#include "kernels/cuda/fast_divide.h"
#include "kernels/cuda/normalization.cuh"
#include "num/contract/schedule.h"
#include "ops/causal_conv/causal_conv.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

using causal_conv::Geometry;
static_assert(causal_conv::kWidest <= num::kChain);  // one chain an element

// The parameters of a call. `state` is null if it has none.
struct Taps {
  Geometry g;
  const float* x;
  WeightVector weight, bias;
  float* y;
  std::byte* state;
  int64_t slot_bytes;
  const Sequence* sequences;
  FastDivmod by_channels, by_seq;
};

// Input c of a position of an earlier call.
__device__ inline float* kept(const Taps& p, const Sequence& of, int64_t position, int64_t c) {
  return reinterpret_cast<float*>(p.state + of.slot * p.slot_bytes) + position % p.g.width * p.g.channels + c;
}

__device__ inline void convolve(const Taps& p, int64_t at) {
  const Geometry& g = p.g;
  int64_t row = at;
  const int64_t c = p.by_channels.remainder(row);
  int64_t batch = row;
  const int64_t i = p.by_seq.remainder(batch);
  const Sequence of = p.sequences ? p.sequences[batch] : Sequence{};
  const int64_t before = g.width - 1;
  F sum = zero();
  for (int64_t r = 0; r < g.width; ++r) {  // causal_conv.2
    const int64_t from = i - before + r;   // in rows of this call
    if (of.past + from < 0) continue;
    const F x = load(from < 0 ? kept(p, of, of.past + from, c) : p.x + at + (r - before) * g.channels);
    sum = fma(x, weight(p.weight, c * g.width + r), sum);  // contraction.2
  }
  F y = canonicalize(add(zero(), sum));                       // contraction.3
  if (p.bias.p) y = canonicalize(add(y, weight(p.bias, c)));  // causal_conv.3
  store(p.y + at, y);
  if (p.state && g.seq == 1) *kept(p, of, of.past, c) = p.x[at];  // causal_conv.4
}

// One position of each sequence. The state is of earlier calls, which have ended, so it is read
// ahead of the wait.
template <int kWidth>
__global__ void __launch_bounds__(kForEachThreads) step_kernel(Taps p) {
  trigger_next_grid();
  const Geometry& g = p.g;
  const int64_t own = int64_t{blockIdx.x} * kForEachThreads + threadIdx.x, all = g.batch * g.channels;
  const int64_t at = own < all ? own : all - 1;
  int64_t batch = at;
  const int64_t c = p.by_channels.remainder(batch);
  const Sequence of = p.sequences[batch];
  constexpr int kBefore = kWidth - 1;
  float* const state = reinterpret_cast<float*>(p.state + of.slot * p.slot_bytes) + c;
  F x[kWidth];
#pragma unroll
  for (int r = 0; r < kBefore; ++r)
    if (const int64_t position = of.past - kBefore + r; position >= 0)
      x[r] = load(state + position % kWidth * g.channels);
  wait_for_previous_grid();
  if (own >= all) return;
  x[kBefore] = load(p.x + at);
  F sum = zero();
#pragma unroll
  for (int r = 0; r < kWidth; ++r) {  // causal_conv.2
    const F w = weight(p.weight, c * kWidth + r);
    if (of.past - kBefore + r >= 0) sum = fma(x[r], w, sum);  // contraction.2
  }
  F y = canonicalize(add(zero(), sum));                       // contraction.3
  if (p.bias.p) y = canonicalize(add(y, weight(p.bias, c)));  // causal_conv.3
  store(p.y + at, y);
  store(state + of.past % kWidth * g.channels, x[kBefore]);  // causal_conv.4
}

template <int kWidth>
void launch_step(const Taps& p, Stream stream) {
  launch_dependent(step_kernel<kWidth>,
                   dim3(static_cast<unsigned>(ceil_div(p.g.batch * p.g.channels, int64_t{kForEachThreads}))),
                   dim3(kForEachThreads), 0, stream, p);
}

void enqueue(const Call& call, Stream stream) {
  const Geometry g = causal_conv::geometry(call);
  const Taps p{.g = g,
               .x = call.in[0].as<const float>(),
               .weight = weight_vector(call.in[1]),
               .bias = call.in.size() > 2 ? weight_vector(call.in[2]) : WeightVector{},
               .y = call.out[0].as<float>(),
               .state = g.width > 1 ? static_cast<std::byte*>(call.state) : nullptr,
               .slot_bytes = static_cast<int64_t>(call.slot_bytes),
               .sequences = call.sequences,
               .by_channels = FastDivmod(g.channels),
               .by_seq = FastDivmod(g.seq)};
  if (p.state && g.seq == 1 && g.width <= 4)
    return (g.width == 4 ? launch_step<4> : g.width == 3 ? launch_step<3> : launch_step<2>)(p, stream);
  launch_for_each(stream, call.out[0].elements(), [=] __device__(int64_t at) { convolve(p, at); });
  if (!p.state || g.seq <= 1) return;
  const int64_t rows = g.seq < g.width ? g.seq : g.width;
  launch_for_each(stream, g.batch * rows * g.channels, [=] __device__(int64_t at) {
    int64_t row = at;
    const int64_t c = p.by_channels.remainder(row), batch = row / rows;
    const int64_t i = g.seq - rows + row % rows;
    const Sequence of = p.sequences[batch];
    *kept(p, of, of.past + i, c) = p.x[(batch * g.seq + i) * g.channels + c];
  });
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(causal_conv);
const GpuKernel INVAR_ROW_OF(causal_conv) = {.op = "causal_conv",
                                             .isa = INVAR_ISA,
                                             .state_bytes = causal_conv::state_bytes,
                                             .enqueue = INVAR_ISA_NS::enqueue};

}  // namespace invar::ops
