// Rotary embedding: a thread takes one pair of a head's row (rope.2, rope.3), or one element that
// is not rotated.
#include "kernels/cuda/fast_divide.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

void enqueue(const Call& call, Stream stream) {
  const View& in = call.in[0];
  const bool heads_first = attr_i(call, "heads_first", 0) != 0;  // rope.6: a row is one head's
  const bool interleaved = attr_i(call, "interleaved", 0) != 0;
  const int64_t heads = heads_first ? 1 : attr_i(call, "num_heads", 1), d = last_dim(in) / heads;
  int64_t rotary = attr_i(call, "rotary_dim", 0);
  if (rotary == 0) rotary = d;
  const int64_t half = rotary / 2, items = half + d - rotary, rows = row_count(in) * heads;
  const int64_t seq = in.dim[heads_first ? 2 : 1], of_all = heads_first ? in.dim[1] : 1;
  const bool shared = call.in[1].dim[0] == 1;  // rope.7
  const float *x = in.as<const float>(), *c = call.in[1].as<const float>(), *s = call.in[2].as<const float>();
  float* out = call.out[0].as<float>();
  const FastDivmod by_items(items), by_heads(heads), by_seq(seq), by_all(of_all);
  launch_for_each(stream, rows * items, [=] __device__(int64_t unit) {
    int64_t head = unit;
    const int64_t item = by_items.remainder(head), row = by_heads.quotient(head), at = head * d;
    if (item >= half) {
      const int64_t j = at + rotary + item - half;
      store_canonical(out + j, load(x + j));
      return;
    }
    int64_t batch = row;
    const int64_t position = by_seq.remainder(batch);
    const int64_t angle = ((shared ? 0 : by_all.quotient(batch)) * seq + position) * half + item;
    const int64_t first = at + (interleaved ? 2 * item : item), second = first + (interleaved ? 1 : half);
    const F cos = load(c + angle), sin = load(s + angle), a = load(x + first), b = load(x + second);
    store_canonical(out + first, sub(mul(a, cos), mul(b, sin)));
    store_canonical(out + second, add(mul(b, cos), mul(a, sin)));
  });
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW;
const GpuKernel INVAR_ROW = {.op = "rope", .isa = INVAR_ISA, .enqueue = INVAR_ISA_NS::enqueue};

}  // namespace invar::ops
