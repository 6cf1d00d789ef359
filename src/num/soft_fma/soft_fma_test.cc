// The fused multiply-add of soft_fma.h against that of this processor or C library, which is exact.
#include "num/soft_fma/soft_fma.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "num/testing/adversarial.h"

namespace invar::num {
namespace {

using testing::SplitMix;

uint64_t id(double x) {
  return x != x ? 0x7ff8000000000000 : std::bit_cast<uint64_t>(x);
}
uint32_t id(float x) {
  return x != x ? 0x7fc00000 : std::bit_cast<uint32_t>(x);
}

// Numbers with few, many or special significand bits and all exponents.
double number(SplitMix& next, int least, int most) {
  const uint64_t r = next(), s = next();
  uint64_t significand = s & 0xfffffffffffff;
  switch (r % 5) {
    case 0: significand &= s << (s >> 58); break;  // short
    case 1: significand = ~(s << (s >> 58)) & 0xfffffffffffff; break;
    case 2: significand = uint64_t{1} << (s % 52); break;
    default: break;
  }
  const int exponent = least + static_cast<int>((r >> 8) % static_cast<uint64_t>(most - least + 1));
  const double x = std::ldexp(1 + std::ldexp(static_cast<double>(significand), -52), exponent);
  return r >> 63 ? -x : x;
}

struct Count {
  int64_t exact = 0, subnormal = 0, infinite = 0, checked = 0;
};

template <class T>
void check(T a, T b, T c, Count& count) {
  const T wanted = std::fma(a, b, c), got = soft::fma(a, b, c);
  ASSERT_EQ(id(got), id(wanted)) << std::hexfloat << a << " * " << b << " + " << c << " = " << wanted
                                 << ", not " << got;
  ++count.checked;
  count.subnormal += std::fpclassify(wanted) == FP_SUBNORMAL;
  count.infinite += std::isinf(wanted);
}

TEST(SoftFma, Special) {
  Count count;
  const auto all = [&]<class T>(std::vector<T> x) {
    for (const T value : std::vector(x)) x.push_back(-value);
    for (const T a : x)
      for (const T b : x)
        for (const T c : x) check(a, b, c, count);
  };
  using D = std::numeric_limits<double>;
  using F = std::numeric_limits<float>;
  all(std::vector<double>{0, 1, 3, D::min(), D::denorm_min(), D::max(), D::infinity(), D::quiet_NaN(),
                          0x1p-537, 0x1.8p-537, 1 + 0x1p-52, 2 - 0x1p-52, 0x1p53, D::min() - D::denorm_min(),
                          0x1p1000, 0x1p-1000});
  all(std::vector<float>{0, 1, 3, F::min(), F::denorm_min(), F::max(), F::infinity(), F::quiet_NaN(),
                         0x1p-75f, 0x1.8p-75f, 1 + 0x1p-23f, 2 - 0x1p-23f, 0x1p24f,
                         F::min() - F::denorm_min(), 0x1p100f, 0x1p-100f});
}

// Addends near the product, near its last bits, and near the rounding limit, where two roundings
// differ from one.
TEST(SoftFma, Binary32) {
  SplitMix next{1};
  Count count;
  const int64_t cases = INVAR_EMULATED ? 200'000 : 1'000'000;
  for (int64_t i = 0; i < cases; ++i) {
    const bool tiny = i % 4 == 0;  // subnormal results
    const auto a = static_cast<float>(number(next, tiny ? -100 : -140, tiny ? -40 : 120));
    const auto b = static_cast<float>(number(next, tiny ? -60 : -140, tiny ? -20 : 120));
    const double product = static_cast<double>(a) * b;
    float c = static_cast<float>(number(next, -149, 127));
    switch (i % 5) {
      case 0: c = static_cast<float>(-product); break;
      case 1: c = std::nextafter(static_cast<float>(product), c); break;
      case 2: c = static_cast<float>(std::ldexp(product, static_cast<int>(next() % 60) - 30)); break;
      case 3:
        c = static_cast<float>(std::ldexp(1.0, std::ilogb(product) + static_cast<int>(next() % 64) - 32));
        break;
      default: break;
    }
    check(a, b, c, count);
  }
  EXPECT_GT(count.subnormal, cases / 100);
}

TEST(SoftFma, Binary64) {
  SplitMix next{2};
  Count count;
  const int64_t cases = INVAR_EMULATED ? 200'000 : 1'000'000;
  for (int64_t i = 0; i < cases; ++i) {
    const int kind = static_cast<int>(i % 3);  // moderate exponents, all exponents, subnormal results
    const double a = kind == 0   ? number(next, -40, 40)
                     : kind == 1 ? number(next, -1060, 1023)
                                 : number(next, -560, -500);
    const double b = kind == 0   ? number(next, -40, 40)
                     : kind == 1 ? number(next, -1060, 1023)
                                 : number(next, -560, -500);
    const double product = a * b;
    double c = kind == 2 ? number(next, -1074, -1000) : number(next, -1074, 1023);
    switch (i % 7) {
      case 0: c = -product; break;
      case 1: c = std::nextafter(-product, c); break;
      case 2: c = std::ldexp(product, static_cast<int>(next() % 240) - 120); break;
      case 3:  // ilogb of infinity is INT_MAX
        c = std::ldexp(1.0,
                       std::clamp(std::ilogb(product), -2000, 2000) + static_cast<int>(next() % 240) - 120);
        break;
      case 4: c = 0; break;
      default: break;
    }
    check(a, b, c, count);
    const double wanted = std::fma(a, b, c);
    ASSERT_EQ(id(soft::fma_by_integers(a, b, c)), id(wanted));
  }
  EXPECT_GT(count.subnormal, cases / 100);
  EXPECT_GT(count.infinite, cases / 1000);
}

// A product whose binary64 sum is a tie of binary32 that the exact sum is not, and one that rounds
// to a subnormal number twice: what a C library gets wrong.
TEST(SoftFma, TwoRoundingsDiffer) {
  const float a = 1 + 0x1p-12f, c = 0x1p-60f;
  const double sum = static_cast<double>(a) * a + c;
  EXPECT_NE(static_cast<float>(sum), std::fma(a, a, c));
  EXPECT_EQ(id(soft::fma(a, a, c)), id(std::fma(a, a, c)));
}

}  // namespace
}  // namespace invar::num
