// pow_cr, and pow over the lanes of every instruction set here, against MPFR: random pairs of
// several kinds, all special cases, and all of the rotary domain.
#include <mpfr.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <set>
#include <vector>

#include "num/env.h"
#include "num/pow/pow.h"
#include "num/testing/adversarial.h"
#include "num/testing/bits.h"
#include "probe.h"

namespace invar::prove {
namespace {

using num::f32_from_bits;
using num::testing::id;

num::testing::SplitMix next;
float any_positive() {
  return f32_from_bits(static_cast<uint32_t>(next() % 0x7f7fffffu) + 1);
}

struct Checker {
  mpfr_t a, b, y;
  int64_t checked = 0, wrong = 0, infinite = 0, subnormal = 0, ties = 0;
  Checker() {
    mpfr_set_emin(-148);
    mpfr_set_emax(128);
    mpfr_inits2(24, a, b, y, nullptr);
  }
  std::vector<float> x, e, right;
  // Pairs are kept until there are many: lanes take them together, as they come.
  void operator()(float base, float exponent) {
    x.push_back(base), e.push_back(exponent);
    if (x.size() == 4099) flush();
  }
  void compare(const char* who, size_t i, float got) {
    if (id(right[i]) != id(got) && ++wrong <= 10)
      std::printf("%s: pow(%a, %a) = %a, correctly rounded %a\n", who, x[i], e[i], got, right[i]);
  }
  void flush() {
    for (size_t i = 0; i < x.size(); ++i) {
      mpfr_set_flt(a, x[i], MPFR_RNDN);
      mpfr_set_flt(b, e[i], MPFR_RNDN);
      int t = mpfr_pow(y, a, b, MPFR_RNDN);
      t = mpfr_subnormalize(y, t, MPFR_RNDN);
      right.push_back(mpfr_get_flt(y, MPFR_RNDN));
      ++checked;
      infinite += std::isinf(right[i]);
      subnormal += std::fabs(right[i]) < 0x1p-126f && right[i] != 0;
      if (x[i] > 0 && std::isfinite(x[i]) && std::isfinite(e[i]))
        compare("scalar", i, num::pow_cr(x[i], e[i]));
    }
    num::ArithmeticEnv env;
    std::vector<float> got(x.size());
    for (const Probe* p : probes()) {
      p->pow(x.data(), e.data(), got.data(), static_cast<int>(x.size()));
      for (size_t i = 0; i < x.size(); ++i) compare(p->isa, i, got[i]);
    }
    x.clear(), e.clear(), right.clear();
  }
  void report(const char* what) {
    flush();
    std::printf("pow %s: %lld pairs, %lld wrong (%lld overflow, %lld subnormal)\n", what, (long long)checked,
                (long long)wrong, (long long)infinite, (long long)subnormal);
    checked = infinite = subnormal = 0;
  }
};

}  // namespace

int pow_campaign(int64_t count, uint64_t seed) {
  next = {seed};
  Checker checker;
  for (int64_t i = 0; i < count; ++i) {  // results of every magnitude, the limits of the format included
    float x = any_positive();
    double l = std::log2(static_cast<double>(x)),
           target = (static_cast<double>(next() >> 11) * 0x1p-53 - 0.5) * 290;
    if (l != 0) checker(x, static_cast<float>((target - 11) / l));
  }
  checker.report("random x, result 2^-156 ... 2^134");
  for (int64_t i = 0; i < count; ++i) {  // x next to 1, huge y
    float x = f32_from_bits(0x3f800000u + static_cast<uint32_t>(next() % 4096) - 2048);
    float y = f32_from_bits(static_cast<uint32_t>(next() % (24u << 23)) + 0x47000000u);
    checker(x, next() & 1 ? y : -y);
  }
  checker.report("x next to 1");
  for (int64_t i = 0; i < count; ++i) {  // few bits and small quarters: exact results and exact ties
    float x = static_cast<float>(next() >> (40 + next() % 24));
    if (x == 0) continue;
    float y = (static_cast<float>(next() % 97) - 32) / 8;
    checker(next() & 1 ? x : x * x, y);
  }
  checker.report("integers to multiples of 1/8");
  for (int64_t i = 0; i < count; ++i)
    checker(any_positive(), f32_from_bits(static_cast<uint32_t>(next()) & 0xff7fffffu));
  checker.report("any bits, x > 0");
  for (int64_t i = 0; i < count; ++i)  // y of few bits, so that it is an integer now and then
    checker(f32_from_bits(static_cast<uint32_t>(next())),
            f32_from_bits(static_cast<uint32_t>(next()) & (0xffffffffu << next() % 24)));
  checker.report("any bits, NaN and infinity too");
  for (int64_t i = 0; i < count; ++i) {  // negative x to integers
    float y = static_cast<float>(static_cast<int64_t>(next() % 129) - 64);
    double l = static_cast<double>(next() >> 11) * 0x1p-53 * 300 - 150;
    checker(-static_cast<float>(std::exp2(l / (y == 0 ? 1 : y))), y);
  }
  checker.report("negative x to integers");
  const float special[] = {0.0f,
                           0x1p-149f,
                           0x1.fffffcp-127f,
                           0x1p-126f,
                           0.5f,
                           0x1.fffffep-1f,
                           1.0f,
                           0x1.000002p0f,
                           1.5f,
                           2.0f,
                           3.0f,
                           2.5f,
                           16777215.0f,
                           16777216.0f,
                           8388607.5f,
                           0x1.fffffep127f,
                           INFINITY,
                           NAN};
  for (float x : special)
    for (float y : special)
      for (int s = 0; s < 4; ++s) checker(s & 1 ? -x : x, s & 2 ? -y : y);
  checker.report("special values, all signs");

  // Rotary embedding: e = 2 i / d rounded to binary32, for every even d up to 512 and common or
  // random bases.
  std::set<float> exponents;
  for (int d = 2; d <= 512; d += 2)
    for (int i = 0; i < d / 2; ++i) exponents.insert(static_cast<float>(2 * i) / static_cast<float>(d));
  std::set<float> bases = {1e4f, 5e5f, 1e6f,   1e7f, 1e5f, 1.5e5f, 2.5e5f, 2e4f,
                           4e4f, 8e4f, 1.6e5f, 3e5f, 5e6f, 8e6f,   1e8f,   1e9f};
  while (bases.size() < 32) bases.insert(static_cast<float>(1000 + next() % 100000000));
  for (float base : bases)
    for (float e : exponents) checker(base, e);
  checker.report("rotary: 32 bases, every 2i/d with d <= 512");
  return checker.wrong ? 1 : 0;
}

}  // namespace invar::prove
