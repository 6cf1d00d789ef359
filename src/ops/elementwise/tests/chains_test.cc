// Chains of elementwise operations in one GPU kernel (kernels/fusion/chain_kernels.h): the bytes of
// the operations one by one.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <tuple>

#include "base/attributes.h"
#include "device/device.h"
#include "kernels/fusion/chain_kernels.h"
#include "kernels/registry.h"

namespace invar::ops {
namespace {

const Attributes kNoAttributes;

// An operation of a chain: its operands are earlier links (from 0 on), or one of kOperands.
enum Operand { kAll = -1, kRow = -2, kOne = -3, kHalfRow = -4 };
struct TestLink {
  std::string_view op;
  std::vector<int> in;
};
const std::vector<std::vector<TestLink>>& test_chains() {
  static const std::vector<std::vector<TestLink>> all = {
      {{"sigmoid", {kAll}}, {"add", {kAll, kHalfRow}}, {"softplus", {1}}, {"mul", {2, kRow}}},  // decays
      {{"silu", {kAll}}, {"mul", {0, kAll}}},
      {{"exp", {kAll}}, {"neg", {0}}, {"sub", {1, 0}}, {"mul", {2, 2}}, {"add", {kOne, 3}}},
      {{"neg", {kAll}},
       {"silu", {0}},
       {"sigmoid", {0}},
       {"exp", {0}},
       {"softplus", {0}},
       {"sub", {kHalfRow, 4}},
       {"mul", {5, 1}},
       {"add", {6, kOne}}}};
  return all;
}

class ChainsOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Device::open();
    if (!opened) GTEST_SKIP() << "no GPU here: " << opened.error().message;
    gpu_ = *std::move(opened);
    gpu_->make_current();
  }
  void TearDown() override {
    for (void* p : all_) gpu_->free(p);
  }
  void* memory(const void* bytes, size_t size) {
    const auto p = gpu_->allocate(size, "a test");
    if (!p) throw std::runtime_error(p.error().message);
    all_.push_back(*p);
    EXPECT_TRUE(bytes ? gpu_->upload(*p, bytes, size) : gpu_->fill(*p, 0xff, size));
    EXPECT_TRUE(gpu_->wait());
    return *p;
  }
  std::vector<float> bytes_of(const View& v) {
    std::vector<float> x(static_cast<size_t>(v.elements()));
    EXPECT_TRUE(gpu_->download(x.data(), v.data, x.size() * 4));
    EXPECT_TRUE(gpu_->wait());
    return x;
  }
  std::shared_ptr<Device> gpu_;
  std::vector<void*> all_;
};

// Numbers of all magnitudes, with specials among them.
std::vector<float> numbers(int64_t n, uint32_t seed) {
  std::vector<float> x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i) {
    seed = seed * 1664525 + 1013904223;
    x[i] = std::bit_cast<float>(i % 5 == 0 ? seed : (seed & 0x83ffffff) | 0x3c000000);  // any bits, or to 2^9
  }
  return x;
}

TEST_F(ChainsOnGpu, HaveTheBytesOfTheirOperations) {
  for (const auto& [batch, rows, width] : {std::tuple{1, 1, 32}, {2, 3, 32}, {1, 1, 9217}, {3, 5, 4096}})
    for (const std::vector<TestLink>& chain : test_chains()) {
      const auto view = [&](int64_t seed) {
        const int64_t n = int64_t{batch} * rows * width;
        return View{memory(seed ? numbers(n, static_cast<uint32_t>(seed)).data() : nullptr,
                           static_cast<size_t>(n) * 4),
                    DType::f32,
                    3,
                    false,
                    {batch, rows, width}};
      };
      const View row{
          memory(numbers(width, 11).data(), static_cast<size_t>(width) * 4), DType::f32, 1, false, {width}};
      std::vector<uint16_t> half;
      for (const float x : numbers(width, 12))
        half.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16));
      const View half_row{memory(half.data(), half.size() * 2), DType::bf16, 1, false, {width}};
      const View one{memory(numbers(1, 13).data(), 4), DType::f32, 1, false, {1}};
      std::vector<View> outs[2];
      std::vector<std::vector<View>> ins[2];
      for (int way = 0; way < 2; ++way) {  // one by one, and as a chain
        for (const TestLink& link : chain) {
          std::vector<View> in;
          for (const int from : link.in)
            in.push_back(from >= 0          ? outs[way][static_cast<size_t>(from)]
                         : from == kRow     ? row
                         : from == kOne     ? one
                         : from == kHalfRow ? half_row
                                            : view(17 + static_cast<int64_t>(outs[way].size())));
          ins[way].push_back(std::move(in)), outs[way].push_back(view(0));
        }
        std::vector<Call> calls;
        std::vector<ChainLink> links;
        calls.reserve(chain.size());
        for (size_t k = 0; k < chain.size(); ++k) {
          calls.push_back({ins[way][k], {&outs[way][k], 1}, &kNoAttributes});
          links.push_back({chain[k].op, &calls.back()});
        }
        const ChainKernel* const kernel = find_chain_kernel(chain[0].op);
        ASSERT_TRUE(kernel && kernel->fits(links));
        if (way) kernel->enqueue(links, gpu_->stream());
        for (size_t k = 0; !way && k < chain.size(); ++k)
          find_gpu_kernel(chain[k].op)->enqueue(calls[k], gpu_->stream());
        ASSERT_TRUE(gpu_->wait());
      }
      for (size_t k = 0; k < chain.size(); ++k) {
        const std::vector<float> expected = bytes_of(outs[0][k]), found = bytes_of(outs[1][k]);
        EXPECT_EQ(std::memcmp(expected.data(), found.data(), expected.size() * 4), 0)
            << chain[k].op << ", link " << k << " of " << chain.size() << ", rows of " << width;
      }
    }
}

TEST(Chains, RefuseWhatTheyDoNotHold) {
  if (gpu_kernels().empty()) GTEST_SKIP() << "built without CUDA";
  const ChainKernel* const kernel = find_chain_kernel("mul");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(find_chain_kernel("rmsnorm"), nullptr);
  const auto fits = [&](const View& in, const View& out) {
    const View both[] = {in, out};
    const Call call{both, {&out, 1}, &kNoAttributes};
    const ChainLink link{"mul", &call};
    return kernel->fits({&link, 1});
  };
  const View out{nullptr, DType::f32, 2, false, {6, 32}};
  EXPECT_TRUE(fits(out, out));
  EXPECT_TRUE(fits({nullptr, DType::bf16, 2, false, {1, 32}}, out));
  EXPECT_FALSE(fits({nullptr, DType::f32, 2, false, {6, 1}}, out));  // a number a row
  EXPECT_FALSE(fits({nullptr, DType::i64, 2, false, {6, 32}}, out));
  const View large{nullptr, DType::f32, 2, false, {1 << 12, 1 << 10}};
  EXPECT_FALSE(fits(large, large));
}

}  // namespace
}  // namespace invar::ops
