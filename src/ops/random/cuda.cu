// Random numbers on a GPU: a thread makes the four words of one counter. Seed and offset are in
// device memory, so a captured graph draws what they say when it runs.
#include "kernels/cuda/vectorized_loop.h"
#include "ops/random/philox.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// out[i] = f(i, word of i) for i < n.
template <class R, class Fn>
void launch_words(const Call& call, int seed_at, R* out, Fn f, Stream stream) {
  const auto *seed = call.in[static_cast<size_t>(seed_at)].as<const uint64_t>(),
             *offset = call.in[static_cast<size_t>(seed_at + 1)].as<const uint64_t>();
  const int64_t n = call.out[0].elements();
  if (n == 0) return;
  const bool aligned = is_aligned<4>(out);
  launch_for_each(stream, (n + 3) / 4 + 1, [=] __device__(int64_t quad) {
    const uint64_t first = *offset;
    const int64_t i = 4 * quad - static_cast<int64_t>(first % 4);
    if (i >= n) return;
    const random::Words words = random::words_of(*seed, first / 4 + static_cast<uint64_t>(quad));
    if (aligned && first % 4 == 0 && i + 4 <= n) {
      Pack<R, 4> y;
#pragma unroll
      for (int j = 0; j < 4; ++j) y.v[j] = f(i + j, words.w[j]);
      store_pack(out + i, y);
      return;
    }
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (i + j >= 0 && i + j < n) out[i + j] = f(i + j, words.w[j]);
  });
}

void random_bits(const Call& call, Stream stream) {
  launch_words(
      call, 0, call.out[0].as<uint32_t>(), [] __device__(int64_t, uint32_t word) { return word; }, stream);
}
void random_uniform(const Call& call, Stream stream) {
  launch_words(
      call, 0, call.out[0].as<float>(),
      [] __device__(int64_t, uint32_t word) { return random::uniform_of(word); }, stream);
}
void random_dropout(const Call& call, Stream stream) {
  const float ratio = attr_f(call, "ratio", 0.5f), scale = random::scale_of(ratio);
  const float* x = call.in[0].as<const float>();
  launch_words(
      call, 1, call.out[0].as<float>(),
      [=] __device__(int64_t i, uint32_t word) {
        if (random::uniform_of(word) < ratio) return 0.0f;
        return canonicalize(mul(load(x + i), set1(scale))).v;
      },
      stream);
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_ROW_IS(name)                   \
  extern const GpuKernel INVAR_ROW_OF(name); \
  const GpuKernel INVAR_ROW_OF(name) = {.op = #name, .isa = INVAR_ISA, .enqueue = INVAR_ISA_NS::name};
INVAR_ROW_IS(random_bits)
INVAR_ROW_IS(random_uniform)
INVAR_ROW_IS(random_dropout)
#undef INVAR_ROW_IS

}  // namespace invar::ops
