// pow_cr against MPFR: random pairs of several kinds and all of the rotary domain.
#include <mpfr.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <set>

#include "num/pow/pow.h"

namespace invar::prove {
namespace {

uint64_t state;
uint64_t next() {  // splitmix64
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}
float bits(uint32_t u) {
  return std::bit_cast<float>(u);
}
float any_positive() {
  return bits(static_cast<uint32_t>(next() % 0x7f7fffffu) + 1);
}

struct Judge {
  mpfr_t a, b, y;
  int64_t checked = 0, wrong = 0, infinite = 0, subnormal = 0, ties = 0;
  Judge() {
    mpfr_set_emin(-148);
    mpfr_set_emax(128);
    mpfr_inits2(24, a, b, y, nullptr);
  }
  void operator()(float x, float e) {
    mpfr_set_flt(a, x, MPFR_RNDN);
    mpfr_set_flt(b, e, MPFR_RNDN);
    int t = mpfr_pow(y, a, b, MPFR_RNDN);
    t = mpfr_subnormalize(y, t, MPFR_RNDN);
    float right = mpfr_get_flt(y, MPFR_RNDN), got = num::pow_cr(x, e);
    ++checked;
    infinite += std::isinf(right);
    subnormal += right < 0x1p-126f && right > 0;
    if (std::bit_cast<uint32_t>(right) != std::bit_cast<uint32_t>(got) && ++wrong <= 10)
      std::printf("pow(%a, %a) = %a, correctly rounded %a\n", x, e, got, right);
  }
  void report(const char* what) {
    std::printf("pow %s: %lld pairs, %lld wrong (%lld overflow, %lld subnormal)\n", what, (long long)checked,
                (long long)wrong, (long long)infinite, (long long)subnormal);
    checked = infinite = subnormal = 0;
  }
};

}  // namespace

int pow_campaign(int64_t count, uint64_t seed) {
  state = seed;
  Judge judge;
  for (int64_t i = 0; i < count; ++i) {  // results of every magnitude, the limits of the format included
    float x = any_positive();
    double l = std::log2(static_cast<double>(x)),
           target = (static_cast<double>(next() >> 11) * 0x1p-53 - 0.5) * 290;
    if (l != 0) judge(x, static_cast<float>((target - 11) / l));
  }
  judge.report("random x, result 2^-156 ... 2^134");
  for (int64_t i = 0; i < count; ++i) {  // x next to 1, huge y
    float x = bits(0x3f800000u + static_cast<uint32_t>(next() % 4096) - 2048);
    float y = bits(static_cast<uint32_t>(next() % (24u << 23)) + 0x47000000u);
    judge(x, next() & 1 ? y : -y);
  }
  judge.report("x next to 1");
  for (int64_t i = 0; i < count; ++i) {  // few bits and small quarters: exact results and exact ties
    float x = static_cast<float>(next() >> (40 + next() % 24));
    if (x == 0) continue;
    float y = (static_cast<float>(next() % 97) - 32) / 8;
    judge(next() & 1 ? x : x * x, y);
  }
  judge.report("integers to multiples of 1/8");
  for (int64_t i = 0; i < count; ++i)
    judge(any_positive(), bits(static_cast<uint32_t>(next()) & 0xff7fffffu));
  judge.report("any bits");

  // Rotary embedding: e = 2 i / d rounded to binary32, for every even d up to 512 and common or random bases.
  std::set<float> exponents;
  for (int d = 2; d <= 512; d += 2)
    for (int i = 0; i < d / 2; ++i) exponents.insert(static_cast<float>(2 * i) / static_cast<float>(d));
  std::set<float> bases = {1e4f, 5e5f, 1e6f,   1e7f, 1e5f, 1.5e5f, 2.5e5f, 2e4f,
                           4e4f, 8e4f, 1.6e5f, 3e5f, 5e6f, 8e6f,   1e8f,   1e9f};
  while (bases.size() < 32) bases.insert(static_cast<float>(1000 + next() % 100000000));
  for (float base : bases)
    for (float e : exponents) judge(base, e);
  judge.report("rotary: 32 bases, every 2i/d with d <= 512");
  return judge.wrong ? 1 : 0;
}

}  // namespace invar::prove
