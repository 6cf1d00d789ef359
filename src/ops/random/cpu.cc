// Random numbers on a CPU: several counters at a time, in loops that compilers vectorize.
#include "kernels/cpu/vector_io.h"
#include "ops/random/philox.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int64_t kBatch = 256;  // elements made at a time
constexpr int64_t kQuads = kBatch / 4 + 1;

// The words of kBatch elements from number `first` on; returned is where they begin in `to`.
const uint32_t* make_words(uint64_t seed, uint64_t first, uint32_t (&to)[4 * kQuads]) {
  for (int64_t q = 0; q < kQuads; ++q) {
    const random::Words made = random::words_of(seed, first / 4 + static_cast<uint64_t>(q));
    for (int j = 0; j < 4; ++j) to[4 * q + j] = made.w[j];
  }
  return to + first % 4;
}
// Calls f(i, n, words) for batches of elements i to i + n of units [begin, end).
template <class Fn>
INVAR_INLINE void each_batch(const Call& call, int seed_at, int64_t begin, int64_t end, Fn f) {
  const uint64_t seed = *call.in[static_cast<size_t>(seed_at)].as<const uint64_t>(),
                 offset = *call.in[static_cast<size_t>(seed_at + 1)].as<const uint64_t>();
  const int64_t n = call.out[0].elements(), to = end * kChunk < n ? end * kChunk : n;
  uint32_t words[4 * kQuads];
  for (int64_t i = begin * kChunk; i < to; i += kBatch)
    f(i, to - i < kBatch ? to - i : kBatch, make_words(seed, offset + static_cast<uint64_t>(i), words));
}

void random_bits(const Call& call, int, int64_t begin, int64_t end, void*) {
  auto* out = call.out[0].as<uint32_t>();
  each_batch(call, 0, begin, end, [&](int64_t i, int64_t n, const uint32_t* words) {
    for (int64_t j = 0; j < n; ++j) out[i + j] = words[j];
  });
}
void random_uniform(const Call& call, int, int64_t begin, int64_t end, void*) {
  auto* out = call.out[0].as<float>();
  each_batch(call, 0, begin, end, [&](int64_t i, int64_t n, const uint32_t* words) {
    for (int64_t j = 0; j < n; ++j) out[i + j] = random::uniform_of(words[j]);
  });
}
void random_dropout(const Call& call, int, int64_t begin, int64_t end, void*) {
  const float ratio = RandomDropoutAttributes(call).ratio;
  const F least = set1(ratio), scale = set1(random::scale_of(ratio));
  const float* x = call.in[0].as<const float>();
  float* out = call.out[0].as<float>();
  each_batch(call, 1, begin, end, [&](int64_t i, int64_t n, const uint32_t* words) {
    float u[kBatch];
    for (int64_t j = 0; j < n; ++j) u[j] = random::uniform_of(words[j]);
    strip(
        out + i, n, [&](int64_t j, int lanes) __attribute__((always_inline)) {
          return select(lt(load_part(u + j, lanes), least), zero(), mul(load_part(x + i + j, lanes), scale));
        });
  });
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_ROW_IS(name)                   \
  extern const CpuKernel INVAR_ROW_OF(name); \
  const CpuKernel INVAR_ROW_OF(name) = {     \
      .op = #name, .isa = INVAR_ISA, .units = chunk_units, .run = INVAR_ISA_NS::name};
INVAR_ROW_IS(random_bits)
INVAR_ROW_IS(random_uniform)
INVAR_ROW_IS(random_dropout)
#undef INVAR_ROW_IS

}  // namespace invar::ops
