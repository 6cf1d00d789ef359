// formats.8: reading a bf16 or f16 weight is bit-equal to cast followed by the same operation on f32, and trans_b to
// the transposed operand. contraction.1: a row does not depend on the rows beside it.
#include <gtest/gtest.h>

#include <cstring>

#include "ops/testing.h"

namespace invar::ops {
namespace {

constexpr int64_t kM = 5, kK = 513, kN = 37;

std::vector<uint16_t> bits(int64_t n) {  // every bit pattern that is finite in either format, subnormals too
  std::vector<uint16_t> v;
  for (int64_t i = 0; i < n; ++i) {
    auto u = static_cast<uint16_t>(static_cast<uint64_t>(i) * 40503 >> 3);
    v.push_back((u & 0x7c00) == 0x7c00 ? u & 0x83ff : u);
  }
  return v;
}

class Matmul : public ::testing::Test {
 protected:
  Matmul() : a(kM * kK) {
    for (int64_t i = 0; i < kM * kK; ++i) a[i] = static_cast<float>(i * 7919 % 2003 - 1001) / 64;
  }
  std::vector<float> product(const Kernel& k, View b, int64_t trans, int64_t from = 0, int64_t rows = kM) {
    std::vector<float> y(rows * kN);
    View in[] = {testing::view(a, DType::f32, {rows, kK}), b}, out = testing::view(y, DType::f32, {rows, kN});
    in[0].data = a.data() + from * kK;
    testing::run(k, in, {&out, 1}, Attrs{{"trans_b", trans}});
    return y;
  }
  static bool same(const std::vector<float>& x, const std::vector<float>& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  }
  std::vector<float> a;
};

TEST_F(Matmul, WidensAsCastDoes) {
  auto stored = bits(kK * kN);
  for (std::string_view isa : isas())
    for (DType dtype : {DType::bf16, DType::f16}) {
      const Kernel *matmul = find("matmul", isa), *cast = find("cast", isa);
      ASSERT_TRUE(matmul && cast) << isa;
      std::vector<float> wide(kK * kN);
      View b = testing::view(stored, dtype, {kK, kN}), w = testing::view(wide, DType::f32, {kK, kN});
      testing::run(*cast, {&b, 1}, {&w, 1});
      EXPECT_TRUE(same(product(*matmul, b, 0), product(*matmul, w, 0))) << isa << ' ' << name_of(dtype);
    }
}

TEST_F(Matmul, TransposesAsData) {
  auto stored = bits(kK * kN);
  std::vector<uint16_t> turned(kK * kN);
  for (int64_t k = 0; k < kK; ++k)
    for (int64_t n = 0; n < kN; ++n) turned[n * kK + k] = stored[k * kN + n];
  for (std::string_view isa : isas()) {
    const Kernel* matmul = find("matmul", isa);
    View b = testing::view(stored, DType::bf16, {kK, kN}), t = testing::view(turned, DType::bf16, {kN, kK});
    EXPECT_TRUE(same(product(*matmul, b, 0), product(*matmul, t, 1))) << isa;
  }
}

TEST_F(Matmul, RowsAreIndependent) {
  auto stored = bits(kK * kN);
  View b = testing::view(stored, DType::bf16, {kK, kN});
  for (std::string_view isa : isas()) {
    const Kernel* matmul = find("matmul", isa);
    std::vector<float> all = product(*matmul, b, 0), one_by_one;
    for (int64_t r = 0; r < kM; ++r)
      for (float y : product(*matmul, b, 0, r, 1)) one_by_one.push_back(y);
    EXPECT_TRUE(same(all, one_by_one)) << isa;
  }
}

}  // namespace
}  // namespace invar::ops
