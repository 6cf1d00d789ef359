// Tests what the conformance harness cannot: identities between operations, every bf16 and f16
// number, refusals.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/testing.h"
#include "num/convert/convert.h"
#include "ops/elementwise/table.h"

namespace invar::ops {
namespace {

std::vector<float> run_unary(const CpuKernel& k, std::vector<float>& x, const Attributes& attrs = {}) {
  auto n = static_cast<int64_t>(x.size());
  std::vector<float> y(x.size());
  View in = testing::view(x, DType::f32, {n}), out = testing::view(y, DType::f32, {n});
  testing::run(k, {&in, 1}, {&out, 1}, attrs);
  return y;
}
bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// elementwise.10: silu is bit-equal to mul of x and sigmoid of x, on every instruction set this CPU
// runs.
TEST(Elementwise, SiluIsMulOfSigmoid) {
  std::vector<float> x;
  for (uint64_t u = 0; u < uint64_t{1} << 32; u += 8209)
    x.push_back(num::f32_from_bits(static_cast<uint32_t>(u)));
  for (uint32_t u = 0xc2a00000; u < 0xc2d80000; u += 7)
    x.push_back(num::f32_from_bits(u));  // sigmoid near 2^-126
  auto n = static_cast<int64_t>(x.size());
  for (std::string_view isa : isas()) {
    const CpuKernel *silu = find_cpu_kernel("silu", isa), *sigmoid = find_cpu_kernel("sigmoid", isa),
                    *mul = find_cpu_kernel("mul", isa);
    ASSERT_TRUE(silu && sigmoid && mul) << isa;
    std::vector<float> s = run_unary(*sigmoid, x), product(x.size());
    View both[] = {testing::view(x, DType::f32, {n}), testing::view(s, DType::f32, {n})};
    View out = testing::view(product, DType::f32, {n});
    testing::run(*mul, both, {&out, 1});
    EXPECT_TRUE(same(run_unary(*silu, x), product)) << isa;
  }
}

// One value for each attribute name in ops.toml.
Attributes some_attributes() {
  Attributes a;
  for (const char* name : {"alpha", "beta", "bias", "gamma", "lambd", "max", "min"})
    a[name] = F32Bits{0x3f200000};
  a["negative"] = int64_t{1}, a["positive"] = int64_t{1};
  return a;
}

// All 2^16 numbers of a storage format through every f32 operation of one operand, against the
// reference.
void every_number(float (*widen)(uint16_t)) {
  std::vector<float> x;
  for (uint32_t u = 0; u < 1u << 16; ++u) x.push_back(widen(static_cast<uint16_t>(u)));
  auto n = static_cast<int64_t>(x.size());
  std::vector<float> y(x.size());
  View in = testing::view(x, DType::f32, {n}), out = testing::view(y, DType::f32, {n});
  Attributes attrs = some_attributes();
  int operations = 0;
#define INVAR_EACH(how, name, ...)                                                                 \
  if (const CpuKernel* reference = find_cpu_kernel(#name, "reference");                            \
      !contract_of(#name)->check({{&in, 1}, {&out, 1}, &attrs})) {                                 \
    ++operations;                                                                                  \
    std::vector<float> truth = run_unary(*reference, x, attrs);                                    \
    for (std::string_view isa : isas())                                                            \
      EXPECT_TRUE(same(run_unary(*find_cpu_kernel(#name, isa), x, attrs), truth)) << #name << isa; \
  }
  INVAR_ELEMENTWISE(INVAR_EACH)
#undef INVAR_EACH
  EXPECT_GT(operations, 20);
}
TEST(Elementwise, EveryBf16) {
  every_number([](uint16_t h) { return num::f32_from_bf16(h); });
}
TEST(Elementwise, EveryF16) {
  every_number([](uint16_t h) { return num::f32_from_f16(h); });
}

// Plans are files: operands that an operation does not accept are refused before it runs.
TEST(Elementwise, Refusals) {
  std::vector<float> f(12);
  std::vector<int64_t> l(12);
  std::vector<uint16_t> h(12);
  std::vector<uint8_t> b(12);
  View f12 = testing::view(f, DType::f32, {12}), f34 = testing::view(f, DType::f32, {3, 4}),
       f4 = testing::view(f, DType::f32, {4});
  View l12 = testing::view(l, DType::i64, {12}), h12 = testing::view(h, DType::bf16, {12}),
       b12 = testing::view(b, DType::boolean, {12});
  auto refused = [](const char* op, std::initializer_list<View> in, View out, const Attributes& attrs = {}) {
    return contract_of(op)->check({{in.begin(), in.size()}, {&out, 1}, &attrs}) != nullptr;
  };
  EXPECT_FALSE(refused("add", {f34, f4}, f34));
  EXPECT_FALSE(refused("add", {h12, f12}, f12));
  EXPECT_FALSE(refused("add", {l12, l12}, l12));
  EXPECT_FALSE(refused("where", {b12, f12, h12}, f12));
  EXPECT_TRUE(refused("add", {f34, f4}, f4));
  EXPECT_TRUE(refused("add", {f34, f12}, f34));
  EXPECT_TRUE(refused("add", {f12}, f12));
  EXPECT_TRUE(refused("add", {f12, l12}, f12));
  EXPECT_TRUE(refused("add", {l12, l12}, f12));
  EXPECT_TRUE(refused("add", {h12, h12}, h12));
  EXPECT_TRUE(refused("sin", {h12}, f12));
  EXPECT_TRUE(refused("sin", {f12}, f34));
  EXPECT_TRUE(refused("less", {f12, f12}, f12));
  EXPECT_FALSE(refused("mod", {f12, f12}, f12));
  EXPECT_TRUE(refused("bitwise_and", {f12, f12}, f12));
  EXPECT_TRUE(refused("logical_and", {l12, l12}, b12));
  EXPECT_TRUE(refused("where", {l12, f12, f12}, f12));
  EXPECT_TRUE(refused("where", {b12, f12, l12}, l12));
  EXPECT_TRUE(refused("leakyrelu", {f12}, f12));
  EXPECT_FALSE(refused("leakyrelu", {f12}, f12, some_attributes()));
}

}  // namespace
}  // namespace invar::ops
