// silu.2: bit-equal to mul of x and sigmoid of x, on every instruction set this CPU runs.
#include <gtest/gtest.h>

#include <cstring>

#include "num/convert/convert.h"
#include "ops/testing.h"

namespace invar::ops {
namespace {

TEST(Silu, IsMulOfSigmoid) {
  std::vector<float> x, s, expected, y;
  for (uint64_t u = 0; u < uint64_t{1} << 32; u += 8209)
    x.push_back(num::f32_from_bits(static_cast<uint32_t>(u)));
  for (uint32_t u = 0xc2a00000; u < 0xc2d80000; u += 7)
    x.push_back(num::f32_from_bits(u));  // sigmoid near 2^-126
  auto n = static_cast<int64_t>(x.size());
  s.resize(x.size()), expected.resize(x.size()), y.resize(x.size());
  View vx = testing::view(x, DType::f32, {n}), vs = testing::view(s, DType::f32, {n});
  View ve = testing::view(expected, DType::f32, {n}), vy = testing::view(y, DType::f32, {n});
  for (std::string_view isa : isas()) {
    const Kernel *silu = find("silu", isa), *sigmoid = find("sigmoid", isa), *mul = find("mul", isa);
    ASSERT_TRUE(silu && sigmoid && mul) << isa;
    View both[] = {vx, vs};
    testing::run(*sigmoid, {&vx, 1}, {&vs, 1});
    testing::run(*mul, both, {&ve, 1});
    testing::run(*silu, {&vx, 1}, {&vy, 1});
    EXPECT_EQ(0, std::memcmp(y.data(), expected.data(), x.size() * sizeof(float))) << isa;
  }
}

}  // namespace
}  // namespace invar::ops
