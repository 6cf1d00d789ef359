// Rotary embedding: a thread takes one pair of a head's row (rope.2, rope.3), or one element that
// is not rotated.
#include "kernels/cuda/fast_divide.h"
#include "ops/rope/attributes.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// The work of a call: `items` of each row of a head.
struct Rotation {
  const float *x, *cos, *sin;
  float* out;
  int64_t units, half, rotary, d;
  FastDivmod by_items, by_heads, by_seq, by_all;
  int64_t seq;
  bool interleaved, shared;  // rope.7: one row of angles for the whole batch
};
Rotation rotation_of(const Call& call) {
  const View& in = call.in[0];
  const RopeAttributes a(call);
  const bool heads_first = a.heads_first != 0;  // rope.6: a row is one head's
  const int64_t heads = heads_first ? 1 : a.num_heads, d = last_dim(in) / heads;
  int64_t rotary = a.rotary_dim;
  if (rotary == 0) rotary = d;
  const int64_t half = rotary / 2, items = half + d - rotary, seq = in.dim[heads_first ? 2 : 1];
  return {.x = in.as<const float>(),
          .cos = call.in[1].as<const float>(),
          .sin = call.in[2].as<const float>(),
          .out = call.out[0].as<float>(),
          .units = row_count(in) * heads * items,
          .half = half,
          .rotary = rotary,
          .d = d,
          .by_items = FastDivmod(items),
          .by_heads = FastDivmod(heads),
          .by_seq = FastDivmod(seq),
          .by_all = FastDivmod(heads_first ? in.dim[1] : 1),
          .seq = seq,
          .interleaved = a.interleaved != 0,
          .shared = call.in[1].dim[0] == 1};
}

__device__ inline void rotate(const Rotation& r, int64_t unit) {
  int64_t head = unit;
  const int64_t item = r.by_items.remainder(head), row = r.by_heads.quotient(head), at = head * r.d;
  if (item >= r.half) {
    const int64_t j = at + r.rotary + item - r.half;
    store_canonical(r.out + j, load(r.x + j));
    return;
  }
  int64_t batch = row;
  const int64_t position = r.by_seq.remainder(batch);
  const int64_t angle = ((r.shared ? 0 : r.by_all.quotient(batch)) * r.seq + position) * r.half + item;
  const int64_t first = at + (r.interleaved ? 2 * item : item), second = first + (r.interleaved ? 1 : r.half);
  const F cos = load(r.cos + angle), sin = load(r.sin + angle), a = load(r.x + first), b = load(r.x + second);
  store_canonical(r.out + first, sub(mul(a, cos), mul(b, sin)));
  store_canonical(r.out + second, add(mul(b, cos), mul(a, sin)));
}

// Several calls, such as those of the queries and the keys: blockIdx.y is the call.
constexpr size_t kMostTogether = 2;
struct Rotations {
  Rotation of[kMostTogether];
};
__global__ void __launch_bounds__(kForEachThreads) rope_kernel(const __grid_constant__ Rotations all) {
  trigger_and_wait();
  const Rotation& r = all.of[blockIdx.y];
  const int64_t step = int64_t{gridDim.x} * kForEachThreads;
  for (int64_t i = int64_t{blockIdx.x} * kForEachThreads + threadIdx.x; i < r.units; i += step) rotate(r, i);
}

void enqueue_batch(std::span<const Call* const> calls, Stream stream) {
  for (; !calls.empty(); calls = calls.subspan(calls.size() < kMostTogether ? calls.size() : kMostTogether)) {
    const size_t count = calls.size() < kMostTogether ? calls.size() : kMostTogether;
    const Rotation first = rotation_of(*calls[0]), last = rotation_of(*calls[count - 1]);
    const int64_t units = first.units > last.units ? first.units : last.units;
    constexpr int64_t kMaxBlocks = 1 << 20;  // beyond that threads loop
    const int64_t blocks = ceil_div(units, kForEachThreads);
    launch_dependent(
        rope_kernel,
        dim3(static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks), static_cast<unsigned>(count)),
        dim3(kForEachThreads), 0, stream, Rotations{first, last});
  }
}
void enqueue(const Call& call, Stream stream) {
  const Call* const one = &call;
  enqueue_batch({&one, 1}, stream);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW;
const GpuKernel INVAR_ROW = {.op = "rope",
                             .isa = INVAR_ISA,
                             .enqueue = INVAR_ISA_NS::enqueue,
                             .enqueue_batch = INVAR_ISA_NS::enqueue_batch};

}  // namespace invar::ops
