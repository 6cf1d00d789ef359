// Every instruction set of this machine against scalar C++, byte by byte.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "num/contract/reference.h"
#include "num/reduce/reference.h"
#include "num/reference.h"
#include "num/testing/adversarial.h"
#include "num/testing/bits.h"
#include "probe.h"

namespace invar::prove {
namespace {

using num::f32_bits;
using num::f32_from_bits;
using num::testing::adversarial;
using num::testing::id;
using num::testing::Kind;
using num::testing::kKinds;

class Lanes : public ::testing::TestWithParam<std::string> {
 protected:
  const Probe& probe() { return *find_probe(GetParam()); }
};

std::vector<std::string> isas() {
  std::vector<std::string> names;
  for (const Probe* p : probes()) names.push_back(p->isa);
  return names;
}

// Values at every boundary of the formats and a sweep over all exponents.
std::vector<float> interesting() {
  std::vector<float> x;
  for (uint32_t u :
       {0x00000000u, 0x00000001u, 0x007fffffu, 0x00800000u, 0x33000000u, 0x33000001u, 0x337fffffu,
        0x33800000u, 0x387fc000u, 0x387fe000u, 0x387fffffu, 0x38800000u, 0x3f800000u, 0x3f808000u,
        0x3f818000u, 0x477fe000u, 0x477fefffu, 0x477ff000u, 0x7f7f7fffu, 0x7f7f8000u, 0x7f7fffffu,
        0x7f800000u, 0x7f800001u, 0x7fc00000u, 0x7fffffffu})
    for (uint32_t sign : {0u, 0x80000000u}) x.push_back(f32_from_bits(u | sign));
  for (uint64_t u = 0; u < 0x100000000; u += 20011) x.push_back(f32_from_bits(static_cast<uint32_t>(u)));
  return x;
}

TEST_P(Lanes, IsTheOneAskedFor) {
  const std::string isa = GetParam();
  EXPECT_EQ(probe().isa, isa);
  EXPECT_EQ(probe().lanes, isa == "avx512" ? 16 : isa == "avx2" ? 8 : isa == "neon" ? 4 : 1);
}

TEST_P(Lanes, StoreRuleAndNarrowing) {
  auto x = interesting();
  int n = static_cast<int>(x.size());
  std::vector<float> y(x.size());
  std::vector<uint16_t> h(x.size());
  probe().canonicalize(x.data(), y.data(), n);
  for (int i = 0; i < n; ++i)
    ASSERT_EQ(f32_bits(y[i]), f32_bits(num::canonicalize(x[i]))) << std::hex << f32_bits(x[i]);
  probe().to_bf16(x.data(), h.data(), n);
  for (int i = 0; i < n; ++i) ASSERT_EQ(h[i], num::bf16_from_f32(x[i])) << std::hex << f32_bits(x[i]);
  probe().to_f16(x.data(), h.data(), n);
  for (int i = 0; i < n; ++i)
    ASSERT_EQ(h[i], num::f16_from_f32(num::canonicalize(x[i]))) << std::hex << f32_bits(x[i]);
}

TEST_P(Lanes, WideningOfEveryPattern) {
  std::vector<uint16_t> h(65536);
  std::vector<float> y(65536);
  for (int i = 0; i < 65536; ++i) h[i] = static_cast<uint16_t>(i);
  probe().from_bf16(h.data(), y.data(), 65536);
  for (int i = 0; i < 65536; ++i) ASSERT_EQ(id(y[i]), id(num::f32_from_bf16(h[i]))) << std::hex << i;
  probe().from_f16(h.data(), y.data(), 65536);
  for (int i = 0; i < 65536; ++i) ASSERT_EQ(id(y[i]), id(num::f32_from_f16(h[i]))) << std::hex << i;
}

TEST_P(Lanes, PartialVectorsTouchNothingElse) {
  for (int n = 0; n <= probe().lanes; ++n) {
    float x[16], y[18];
    for (int i = 0; i < 16; ++i) x[i] = static_cast<float>(i + 1);
    for (float& v : y) v = -5.0f;
    probe().put_n(y + 1, x, n);
    for (int i = -1; i <= 16; ++i) EXPECT_EQ(y[i + 1], i >= 0 && i < n ? x[i] : -5.0f) << n << ' ' << i;
    uint16_t h[16], g[18];
    for (int i = 0; i < 16; ++i) h[i] = static_cast<uint16_t>(0x3f80 + i);
    for (auto& v : g) v = 0xabcd;
    float w[16];
    if (n == 0) continue;
    probe().from_bf16(h, w, n);
    probe().to_bf16(w, g + 1, n);
    for (int i = -1; i <= 16; ++i) EXPECT_EQ(g[i + 1], i >= 0 && i < n ? h[i] : 0xabcd) << n << ' ' << i;
  }
}

TEST_P(Lanes, ArithmeticIsIeee) {
  for (auto kind : kKinds) {
    constexpr int n = 10007;
    auto a = adversarial(kind, n, 1), b = adversarial(kind, n, 2), c = adversarial(kind, n, 3);
    std::vector<float> y(6 * n);
    probe().arithmetic(a.data(), b.data(), c.data(), y.data(), n);
    for (int i = 0; i < n; ++i) {
      const float right[] = {std::fma(a[i], b[i], c[i]), a[i] + b[i], a[i] - b[i], a[i] * b[i], a[i] / b[i],
                             std::sqrt(std::abs(a[i]))};
      for (int op = 0; op < 6; ++op) ASSERT_EQ(id(y[op * n + i]), id(right[op])) << op << ' ' << i;
    }
  }
}

TEST_P(Lanes, MaximumAndMinimum) {  // formats.7
  const float inf = INFINITY, values[] = {-inf, -1.0f, -0x1p-149f, -0.0f, 0.0f, 0x1p-149f, 1.0f, inf};
  std::vector<float> a, b, larger, smaller;
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) {
      a.push_back(values[i]), b.push_back(values[j]);
      larger.push_back(values[i > j ? i : j]), smaller.push_back(values[i > j ? j : i]);
    }
  for (float v : values)
    for (uint32_t nan : {0x7fc00000u, 0xff800001u})
      for (bool first : {false, true}) {
        a.push_back(first ? f32_from_bits(nan) : v), b.push_back(first ? v : f32_from_bits(nan));
        larger.push_back(f32_from_bits(0x7fc00000)), smaller.push_back(f32_from_bits(0x7fc00000));
      }
  std::vector<float> y(a.size());
  probe().maximum(a.data(), b.data(), y.data(), static_cast<int>(a.size()));
  EXPECT_EQ(std::memcmp(y.data(), larger.data(), y.size() * 4), 0);
  probe().minimum(a.data(), b.data(), y.data(), static_cast<int>(a.size()));
  EXPECT_EQ(std::memcmp(y.data(), smaller.data(), y.size() * 4), 0);
}

TEST_P(Lanes, Functions) {
  auto x = interesting();
  x.resize(x.size() / 2 * 2 - 1);
  int n = static_cast<int>(x.size());
  std::vector<float> y(x.size());
  constexpr float (*kReference[])(float) = {
#define INVAR_ROW(f) num::reference::f,
      INVAR_FUNCTIONS(INVAR_ROW) INVAR_FUNCTIONS(INVAR_ROW)
#undef INVAR_ROW
  };
  for (size_t f = 0; f < probe().functions.size(); ++f) {
    probe().functions[f].map(x.data(), y.data(), n);
    for (int i = 0; i < n; ++i)
      ASSERT_EQ(id(y[i]), id(kReference[f](x[i])))
          << probe().functions[f].name << ' ' << std::hex << f32_bits(x[i]);
  }
}

// All of [-88, -87], where results become subnormal, and a sweep of the other x <= 0 and NaN.
TEST_P(Lanes, ExpStored) {
  std::vector<float> x;
  for (uint32_t u = 0xc2ae0000u; u <= 0xc2b00000u; ++u) x.push_back(f32_from_bits(u));
  for (uint64_t u = 0x80000000u; u < 0x100000000; u += 4099)
    x.push_back(f32_from_bits(static_cast<uint32_t>(u)));
  x.push_back(0.0f), x.push_back(-INFINITY);
  std::vector<float> y(x.size());
  probe().exp_stored(x.data(), y.data(), static_cast<int>(x.size()));
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(id(y[i]), id(num::canonicalize(num::reference::exp(x[i])))) << std::hex << f32_bits(x[i]);
}

// Pairs that take the fallback (exact ties) stand beside others, so that vectors are mixed; the
// last one is partial.
TEST_P(Lanes, Pow) {
  std::vector<float> x, y, out;
  auto values = interesting();
  for (size_t i = 0; i + 13 < values.size(); ++i)
    x.push_back(values[i]), y.push_back(values[(i * 7919 + 13) % values.size()]);
  for (int i = 1; i < 4000; ++i)
    x.push_back(static_cast<float>(i % 3 ? 4096 + i : -i)), y.push_back(static_cast<float>(i % 5));
  if (x.size() % 2 == 0) x.pop_back(), y.pop_back();
  out.resize(x.size());
  probe().pow(x.data(), y.data(), out.data(), static_cast<int>(x.size()));
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(id(out[i]), id(num::reference::pow(x[i], y[i])))
        << std::hex << f32_bits(x[i]) << ' ' << f32_bits(y[i]);
}

TEST_P(Lanes, Atan2) {  // every kind of pair, and single lanes that need the double-double route
  auto x = interesting();
  size_t n = x.size() - 3;
  for (size_t shift : {size_t{0}, size_t{1}, size_t{7}, n / 3}) {
    std::vector<float> a(x.begin(), x.begin() + static_cast<long>(n)), b(n), y(n);
    for (size_t i = 0; i < n; ++i) b[i] = x[(i + shift) % n];
    probe().atan2(a.data(), b.data(), y.data(), static_cast<int>(n));
    for (size_t i = 0; i < n; ++i)
      ASSERT_EQ(id(y[i]), id(num::reference::atan2(a[i], b[i])))
          << std::hex << f32_bits(a[i]) << ' ' << f32_bits(b[i]);
  }
}

TEST_P(Lanes, Reductions) {
  for (auto kind : kKinds)
    for (int64_t n : {0, 1, 7, 15, 16, 17, 127, 128, 255, 256, 257, 320, 4095, 4096, 4097, 10007}) {
      auto x = adversarial(kind, static_cast<size_t>(n), static_cast<uint64_t>(n) + 99);
      EXPECT_EQ(id(probe().row_sum(x.data(), n)), id(num::reference::row_sum(x.data(), n))) << n;
      EXPECT_EQ(id(probe().row_sum_squares(x.data(), n)), id(num::reference::row_sum_squares(x.data(), n)))
          << n;
      int m = static_cast<int>(n < 128 ? n : 128);
      EXPECT_EQ(id(probe().block_sum(x.data(), m)), id(num::reference::block_sum(x.data(), m))) << m;
    }
}

TEST_P(Lanes, Contraction) {
  for (auto kind : kKinds)
    for (int64_t k : {0, 1, 255, 256, 257, 512, 769, 2048, 2049, 2560, 4097, 5000}) {
      int columns = 2 * probe().lanes;
      auto a = adversarial(kind, static_cast<size_t>(k), 5);
      auto b = adversarial(kind, static_cast<size_t>(k * columns), 6);
      std::vector<float> y(static_cast<size_t>(columns));
      probe().contract(a.data(), b.data(), k, y.data());
      for (int j = 0; j < columns; ++j) {
        float right = num::reference::contract(
            k, [&](int64_t i) { return a[i]; }, [&](int64_t i) { return b[i * columns + j]; });
        ASSERT_EQ(id(y[j]), id(right)) << k << ' ' << j;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Isa, Lanes, ::testing::ValuesIn(isas()), [](const auto& i) { return i.param; });

}  // namespace
}  // namespace invar::prove
