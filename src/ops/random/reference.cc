// spec: random.1 - random.6.
#include "kernels/reference.h"

#include "kernels/check.h"
#include "ops/random/philox.h"

namespace invar::ops {
namespace {

uint32_t word(const View& seed, const View& offset, int64_t i) {
  const uint64_t e = *offset.as<const uint64_t>() + static_cast<uint64_t>(i);
  return random::words_of(*seed.as<const uint64_t>(), e / 4).w[e % 4];
}

// Calls f(i) for the elements of units [begin, end).
template <class Fn>
void each(const Call& call, int64_t begin, int64_t end, Fn f) {
  const int64_t n = call.out[0].elements();
  for (int64_t i = begin * kChunk; i < n && i < end * kChunk; ++i) f(i);
}

void random_bits(const Call& call, int, int64_t begin, int64_t end, void*) {
  each(call, begin, end, [&](int64_t i) { call.out[0].as<uint32_t>()[i] = word(call.in[0], call.in[1], i); });
}
void random_uniform(const Call& call, int, int64_t begin, int64_t end, void*) {
  each(call, begin, end,
       [&](int64_t i) { call.out[0].as<float>()[i] = random::uniform_of(word(call.in[0], call.in[1], i)); });
}
void random_dropout(const Call& call, int, int64_t begin, int64_t end, void*) {
  const float ratio = RandomDropoutAttributes(call).ratio, scale = random::scale_of(ratio);
  each(call, begin, end, [&](int64_t i) {
    const bool kept = random::uniform_of(word(call.in[1], call.in[2], i)) >= ratio;
    store_canonical(call.out[0], i, kept ? call.in[0].as<const float>()[i] * scale : 0.0f);
  });
}

const char* check_bits(const Call& c) {
  if (const char* wrong = random::check(c)) return wrong;
  return c.out[0].dtype == DType::i32 ? nullptr : "an i32 result";
}
const char* check_uniform(const Call& c) {
  if (const char* wrong = random::check(c)) return wrong;
  return is_f32(c.out[0]) ? nullptr : "an f32 result";
}

}  // namespace

#define INVAR_ROW_IS(name, check_of)                                   \
  extern const OpContract contract_##name;                             \
  extern const CpuKernel row_##name##_reference;                       \
  const OpContract contract_##name = {.op = #name, .check = check_of}; \
  const CpuKernel row_##name##_reference = {                           \
      .op = #name, .isa = "reference", .units = chunk_units, .run = name};
INVAR_ROW_IS(random_bits, check_bits)
INVAR_ROW_IS(random_uniform, check_uniform)
INVAR_ROW_IS(random_dropout, random::dropout_check)
#undef INVAR_ROW_IS

}  // namespace invar::ops
