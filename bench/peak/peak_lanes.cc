// The loops behind peak.h, over num/lane: compiled once per instruction set.
#include "bench/peak/peak.h"
#include "num/lane/lane.h"

namespace invar::bench {
namespace INVAR_ISA_NS {
namespace {

using namespace num::INVAR_ISA_NS;

// Chains in flight: latency x pipes is 8 to 10 on x86 (16 vector registers) and up to 16 on 64-bit
// Arm (32).
constexpr int kChains = kW == 4 ? 24 : 12;

float fma_chains(int64_t rounds) {
  F a = set1(0.999f), b = set1(0.001f), acc[kChains];
  for (int c = 0; c < kChains; ++c) acc[c] = set1(static_cast<float>(c));
  for (int64_t r = 0; r < rounds; ++r)
    for (int c = 0; c < kChains; ++c) acc[c] = num::INVAR_ISA_NS::fma(acc[c], a, b);
  float lane[kW], any = 0;
  for (int c = 0; c < kChains; ++c) {
    store(lane, acc[c]);
    any = lane[0] > any ? lane[0] : any;
  }
  return any;
}

uint32_t read_all(const float* x, int64_t n) {
  constexpr int kStreams = 8;
  I acc[kStreams];
  for (int s = 0; s < kStreams; ++s) acc[s] = set1_i(0);
  for (int64_t i = 0; i + kStreams * kW <= n; i += kStreams * kW)
    for (int s = 0; s < kStreams; ++s) acc[s] = bit_or(acc[s], bits(load(x + i + s * kW)));
  uint32_t any = 0;
  float lane[kW];
  for (int s = 0; s < kStreams; ++s) {
    store(lane, from_bits(acc[s]));
    any |= __builtin_bit_cast(uint32_t, lane[0]);
  }
  return any;
}

void copy_all(float* to, const float* from, int64_t n) {
  for (int64_t i = 0; i + kW <= n; i += kW) store(to + i, load(from + i));
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const PeakRow INVAR_PEAK;
const PeakRow INVAR_PEAK = {INVAR_ISA, 2 * INVAR_ISA_NS::kChains* num::INVAR_ISA_NS::kW,
                            INVAR_ISA_NS::fma_chains, INVAR_ISA_NS::read_all, INVAR_ISA_NS::copy_all};

}  // namespace invar::bench
