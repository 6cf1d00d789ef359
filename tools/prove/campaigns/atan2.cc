// Compares atan2 with MPFR: random pairs of several kinds, pairs near rounding boundaries, and
// exact and tiny quotients whose arc tangent is just below a tie.
#include <mpfr.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "num/env.h"
#include "num/inverse_trig/atan2.h"
#include "num/testing/adversarial.h"
#include "num/testing/bits.h"
#include "probe.h"

namespace invar::prove {
namespace {

using num::f32_from_bits;
using num::testing::id;

num::testing::SplitMix next;
// Sign and fraction at random, exponent within `range` of `middle`.
float near_exponent(int middle, int range) {
  uint32_t r = static_cast<uint32_t>(next());
  int e = middle + static_cast<int>(next() % (2 * range + 1)) - range;
  return f32_from_bits((r & 0x807fffffu) | static_cast<uint32_t>(e < 0 ? 0 : e > 254 ? 254 : e) << 23);
}

struct Checker {
  const Probe& probe;
  mpfr_t y, x, r;
  std::vector<float> ys, xs;
  int64_t checked = 0, judged = 0, wrong = 0, subnormal = 0;
  explicit Checker(const Probe& p) : probe(p) {
    mpfr_set_emin(-148);
    mpfr_set_emax(128);
    mpfr_inits2(24, y, x, r, nullptr);
  }
  // The C library's binary64 result if a relative error of 2^-40 cannot change its rounding
  // (oracle.cc). Otherwise, and for every 101st pair, the result of MPFR.
  uint32_t expected(float a, float b) {
    double d = std::atan2(static_cast<double>(a), static_cast<double>(b));
    uint32_t low = id(static_cast<float>(d * (1 - 0x1p-40))),
             high = id(static_cast<float>(d * (1 + 0x1p-40)));
    if (low == high && checked % 101) return low;
    ++judged;
    mpfr_set_flt(y, a, MPFR_RNDN);
    mpfr_set_flt(x, b, MPFR_RNDN);
    int t = mpfr_atan2(r, y, x, MPFR_RNDN);
    mpfr_subnormalize(r, t, MPFR_RNDN);
    return id(mpfr_get_flt(r, MPFR_RNDN));
  }
  void operator()(float a, float b) {
    ys.push_back(a), xs.push_back(b);
    if (ys.size() == 4096) flush();
  }
  void flush() {
    std::vector<float> got(ys.size());
    probe.atan2(ys.data(), xs.data(), got.data(), static_cast<int>(ys.size()));
    for (size_t i = 0; i < ys.size(); ++i, ++checked) {
      uint32_t e = expected(ys[i], xs[i]);
      subnormal += (e & 0x7fffffffu) < 0x00800000u;
      if (e != id(got[i]) && ++wrong <= 10)
        std::printf("atan2(%a, %a) = %a, correctly rounded %a\n", ys[i], xs[i], got[i], f32_from_bits(e));
    }
    ys.clear(), xs.clear();
  }
  void report(const char* what) {
    flush();
    std::printf("atan2 %s %s: %lld pairs, %lld decided by MPFR, %lld wrong so far (%lld subnormal or zero)\n",
                probe.isa, what, (long long)checked, (long long)judged, (long long)wrong,
                (long long)subnormal);
    checked = judged = subnormal = 0;
  }
};

}  // namespace

int atan2_campaign(int64_t count, uint64_t seed, const Probe& probe) {
  num::ArithmeticEnv env;
  next = {seed};
  Checker checker(probe);
  const uint32_t special[] = {0,          1,          0x007fffff, 0x00800000, 0x00800001, 0x1f800000,
                              0x33800000, 0x3ed413cd, 0x3f7fffff, 0x3f800000, 0x3f800001, 0x401a827a,
                              0x4b000001, 0x7f7fffff, 0x7f800000, 0x7fc00000};
  for (uint32_t a : special)
    for (uint32_t b : special)
      for (uint32_t s = 0; s < 4; ++s) checker(f32_from_bits(a | s << 31), f32_from_bits(b | (s >> 1) << 31));
  checker.report("special values");
  for (int64_t i = 0; i < count; ++i) checker(near_exponent(127, 3), near_exponent(127, 3));
  checker.report("of like size");
  for (int64_t i = 0; i < count; ++i) checker(near_exponent(127, 24), near_exponent(127, 24));
  checker.report("quotient 2^-48 ... 2^48");
  for (int64_t i = 0; i < count; ++i)
    checker(f32_from_bits(static_cast<uint32_t>(next())), f32_from_bits(static_cast<uint32_t>(next())));
  checker.report("any bits");
  for (int64_t i = 0; i < count; ++i) {  // subnormal and smallest normal results
    int e = static_cast<int>(next() % 100) + 128;
    checker(near_exponent(e - 127, 26),
            f32_from_bits(0x3f800000u | (static_cast<uint32_t>(next()) & 0x807fffffu)) *
                std::ldexp(1.0f, e - 127));
  }
  checker.report("results about 2^-126");
  for (int64_t i = 0; i < count; ++i) {  // small exact quotients: the arc is a hair below a short number
    uint64_t c = (next() & 0xff) | 1, a = (next() & 0xffff) | 0x8001;
    checker(std::ldexp(static_cast<float>(a * c), -static_cast<int>(next() % 100)), static_cast<float>(c));
  }
  checker.report("exact quotients");
  for (int64_t i = 0; i < count;
       ++i) {  // tiny results whose last places are subnormal: exact ties of y / 2^k
    float y = f32_from_bits(0x00800000u + static_cast<uint32_t>(next() % (20u << 23)));
    checker(y, std::ldexp(1.0f, static_cast<int>(next() % 30)));
  }
  checker.report("ties of subnormals");
  // The convergents of tan(m) for ties m: quotients within about 2^-48 of it, which the lanes leave
  // to double-double.
  int64_t hard = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t u = 0x3a000000u + static_cast<uint32_t>(next() % (0x3fc90fdbu - 0x3a000000u));
    double tie = (static_cast<double>(f32_from_bits(u)) + static_cast<double>(f32_from_bits(u + 1))) / 2;
    long double t = std::tan(static_cast<long double>(tie)), rest = t;
    uint64_t p0 = 1, q0 = 0, p1 = static_cast<uint64_t>(t), q1 = 1;
    while (rest != std::floor(rest)) {
      rest = 1 / (rest - std::floor(rest));
      long double whole = std::floor(rest);
      if (whole > 0x1p24L) break;
      uint64_t c = static_cast<uint64_t>(whole), p = c * p1 + p0, q = c * q1 + q0;
      if (p >= 1u << 24 || q >= 1u << 24) break;
      p0 = p1, q0 = q1, p1 = p, q1 = q;
    }
    double v = std::atan2(static_cast<double>(p1), static_cast<double>(q1));
    hard += std::abs(v - tie) < 0x1p-49 * v;
    checker(next() & 1 ? static_cast<float>(p1) : -static_cast<float>(p1), static_cast<float>(q1));
  }
  std::printf("atan2: %lld of the next within 2^-49 of a tie\n", (long long)hard);
  checker.report("convergents of tangents of ties");
  for (int64_t i = 0; i < count; ++i) {  // the double-double route on pairs that the lanes decide
    float a = near_exponent(127, 12), b = near_exponent(127, 12);
    float lanes;
    probe.atan2(&a, &b, &lanes, 1);
    if (id(lanes) != id(num::portable::atan2_hard(a, b)) && ++checker.wrong <= 10)
      std::printf("atan2(%a, %a): lanes and double-double differ\n", a, b);
    ++checker.checked;
  }
  checker.report("lanes against double-double");
  return checker.wrong ? 1 : 0;
}

}  // namespace invar::prove
