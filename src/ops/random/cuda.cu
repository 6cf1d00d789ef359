// Random numbers on a GPU: a thread makes the four words of a counter, for some counters. Seed and
// offset are in device memory, so a captured graph draws what they say when it runs.
#include "kernels/cuda/vectorized_loop.h"
#include "ops/random/philox.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// out[i] = f(word of i, x[i]) for i < n; x may be null: f is then given 0.
template <bool kReads, class R, class Fn>
void launch_words(const Call& call, int seed_at, const float* x, R* out, Fn f, Stream stream) {
  const auto *seed = call.in[static_cast<size_t>(seed_at)].as<const uint64_t>(),
             *offset = call.in[static_cast<size_t>(seed_at + 1)].as<const uint64_t>();
  const int64_t n = call.out[0].elements();
  if (n == 0) return;
  constexpr int kAhead = 4;  // counters of a thread, so that loads are in flight
  constexpr int64_t kTogether = kForEachThreads * kAhead;
  const int64_t quads = (n + 3) / 4 + 1;
  const bool aligned = is_aligned<4>(out) && (!kReads || is_aligned<4>(x));
  launch_for_each(stream, ceil_div(quads, kTogether) * kForEachThreads, [=] __device__(int64_t thread) {
    const uint64_t of = *seed, first = *offset;
    const int64_t begin = thread / kForEachThreads * kTogether + thread % kForEachThreads;
    const auto lead = static_cast<int64_t>(first % 4);
    const bool even = aligned && lead == 0;
    Pack<float, 4> from[kAhead] = {};
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      const int64_t i = 4 * (begin + a * kForEachThreads) - lead;
      if (kReads && even && i + 4 <= n) from[a] = load_pack<4>(x + i);
    }
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      const int64_t quad = begin + a * kForEachThreads, i = 4 * quad - lead;
      if (i >= n) return;
      const bool whole = even && i + 4 <= n;
      const random::Words words = random::words_of(of, first / 4 + static_cast<uint64_t>(quad));
      Pack<R, 4> y;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const bool exists = i + j >= 0 && i + j < n;
        if (kReads && !whole && exists) from[a].v[j] = x[i + j];
        y.v[j] = f(words.w[j], from[a].v[j]);
        if (!whole && exists) out[i + j] = y.v[j];
      }
      if (whole) store_pack(out + i, y);
    }
  });
}

void random_bits(const Call& call, Stream stream) {
  launch_words<false>(
      call, 0, nullptr, call.out[0].as<uint32_t>(), [] __device__(uint32_t word, float) { return word; },
      stream);
}
void random_uniform(const Call& call, Stream stream) {
  launch_words<false>(
      call, 0, nullptr, call.out[0].as<float>(),
      [] __device__(uint32_t word, float) { return random::uniform_of(word); }, stream);
}
void random_dropout(const Call& call, Stream stream) {
  const float ratio = RandomDropoutAttributes(call).ratio, scale = random::scale_of(ratio);
  launch_words<true>(
      call, 1, call.in[0].as<const float>(), call.out[0].as<float>(),
      [=] __device__(uint32_t word, float x) {
        return random::uniform_of(word) < ratio ? 0.0f : canonicalize(mul(set1(x), set1(scale))).v;
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
