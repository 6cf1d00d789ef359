// Rows that GPU kernels round where they make them (GpuKernel::enqueue_rounded): the bytes of the
// f32 results, rounded by the oracle. The conformance harness tests single operations; here are
// chains, and the lengths and specials that matter to kernels.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/attributes.h"
#include "device/device.h"
#include "kernels/fusion/rounding_kernels.h"
#include "kernels/fusion/rounding_reference.h"
#include "kernels/registry.h"
#include "num/reference.h"

namespace invar::ops {
namespace {

using Names = std::vector<std::string_view>;
const std::vector<Names>& chains() {
  static const std::vector<Names> all = {
      {"mul"}, {"silu", "mul"}, {"gelu", "mul"}, {"gelu_tanh", "mul"}, {"relu", "mul"}, {"sigmoid", "mul"}};
  return all;
}

View matrix(void* data, int64_t rows, int64_t k) {
  return {data, DType::f32, 2, false, {rows, k}};
}

// Rows of many magnitudes; some are zero, or hold subnormals, NaN or infinities.
std::vector<float> some_rows(int64_t rows, int64_t k, uint32_t seed) {
  std::vector<float> x(static_cast<size_t>(rows * k));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < k; ++i) {
      seed = seed * 1664525 + 1013904223;
      const float small = static_cast<float>(static_cast<int32_t>(seed >> 8) - (1 << 23)) * 0x1p-21f;
      float& one = x[static_cast<size_t>(r * k + i)] = std::ldexp(small, static_cast<int>(r % 5) * 3 - 6);
      if (r % 16 == 3) one = seed & 0x10000 ? 0.0f : -0.0f;
      if (r % 16 == 5) one = small * 0x1p-100f * 0x1p-27f;
      if (r % 16 == 7 && i == k - 1) one = num::f32_from_bits(0x7fc00000);
      if (r % 16 == 9 && i == k / 2) one = num::f32_from_bits(0xff800000);
      if (r % 16 == 11) one = std::ldexp(small, 120);
    }
  return x;
}

class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Device::open();
    if (!opened) GTEST_SKIP() << "no GPU here: " << opened.error().message;
    gpu_ = *std::move(opened);
    gpu_->make_current();
  }
  void TearDown() override {
    for (void* p : taken_) gpu_->free(p);
  }
  void* take(size_t bytes) {
    const auto p = gpu_->allocate(bytes, "a test");
    if (!p) throw std::runtime_error(p.error().message);
    taken_.push_back(*p);
    return *p;
  }
  void* put(const std::vector<float>& x, size_t skew = 0) {
    auto* const p = static_cast<std::byte*>(take(x.size() * 4 + 64)) + skew;
    EXPECT_TRUE(gpu_->upload(p, x.data(), x.size() * 4));
    return p;
  }
  // Compares enqueue_rounded() of calls with the f32 result of the last, which they have left.
  void expect_rounded(const Names& names, std::span<const Call* const> calls, const std::string& what) {
    const GpuKernel* const kernel = find_rounding_kernel(names);
    ASSERT_TRUE(kernel && kernel->can_round(calls)) << what;
    const View& out = calls.back()->out[0];
    std::vector<float> rows(static_cast<size_t>(out.elements()));
    ASSERT_TRUE(gpu_->download(rows.data(), out.data, rows.size() * 4));
    ASSERT_TRUE(gpu_->fill(out.data, 0xff, rows.size() * 4));  // it reads nothing there
    for (const int height : {8, 16, 64}) {
      reference::RoundedMemory expected(out.dim[0], out.dim[1], height, 0x5a);
      void* const memory = take(expected.size());
      ASSERT_TRUE(gpu_->fill(memory, 0x5a, expected.size()));
      kernel->enqueue_rounded(calls, expected.at(memory), gpu_->stream());
      std::vector<uint8_t> found(expected.size());
      ASSERT_TRUE(gpu_->download(found.data(), memory, found.size()));
      const Status done = gpu_->wait();
      ASSERT_TRUE(done) << what << ": " << done.error().message;
      expected.round(rows.data());
      const auto differs = std::mismatch(found.begin(), found.end(), expected.data()).first;
      EXPECT_TRUE(differs == found.end()) << what << ", tiles of " << height << ": byte "
                                          << differs - found.begin() << " of " << found.size();
    }
  }
  std::shared_ptr<Device> gpu_;
  std::vector<void*> taken_;
};

constexpr int64_t kLengths[] = {1, 127, 128, 129, 4096, 11008, 14336}, kRows[] = {1, 8, 64, 65, 300};
const Attributes kNone;

TEST_F(OnGpu, ProductsOfActivations) {
  for (const int64_t k : kLengths)
    for (const int64_t rows : kRows) {
      for (const Names& names : chains()) {
        const size_t skew = rows == 65 ? 4 : 0;
        const View x = matrix(put(some_rows(rows, k, 1), skew), rows, k);
        const View up = matrix(put(some_rows(rows, k, 7)), rows, k);
        const View act = matrix(take(static_cast<size_t>(rows * k) * 4), rows, k);
        const View out = matrix(take(static_cast<size_t>(rows * k) * 4), rows, k);
        const bool swapped = rows == 8, chain = names.size() > 1;
        const View first = chain ? act : x, in[] = {swapped ? up : first, swapped ? first : up};
        const Call activation{{&x, 1}, {&act, 1}, &kNone}, mul{in, {&out, 1}, &kNone};
        std::vector<const Call*> calls;
        if (chain) calls.push_back(&activation);
        calls.push_back(&mul);
        for (size_t i = 0; i < calls.size(); ++i)
          find_gpu_kernel(names[i])->enqueue(*calls[i], gpu_->stream());
        expect_rounded(names, calls,
                       std::string(names[0]) + " " + std::to_string(rows) + " x " + std::to_string(k));
      }
      TearDown(), taken_.clear();
    }
}

TEST_F(OnGpu, Normalizations) {
  for (const int64_t k : {1, 127, 128, 129, 256, 257, 260, 2049, 2052, 4096, 5120, 8196, 11008, 16384, 16388})
    for (const int64_t rows : {int64_t{1}, int64_t{8}, int64_t{65}, int64_t{300}, int64_t{1100}})
      for (const std::string_view op : {"rmsnorm", "layernorm"}) {
        if (rows > 1000 && k > 4096) continue;
        const View x = matrix(put(some_rows(rows, k, 3), rows == 65 ? 4 : 0), rows, k);
        const View w{put(some_rows(1, k, 5)), DType::f32, 1, false, {k}};
        const View out = matrix(take(static_cast<size_t>(rows * k) * 4), rows, k), in[] = {x, w};
        const Call call{in, {&out, 1}, &kNone}, *const calls[] = {&call};
        find_gpu_kernel(op)->enqueue(call, gpu_->stream());
        expect_rounded({op}, calls, std::string(op) + " " + std::to_string(rows) + " x " + std::to_string(k));
        TearDown(), taken_.clear();
      }
}

TEST(RoundingKernels, RefuseWhatTheyDoNotHold) {
  if (gpu_kernels().empty()) GTEST_SKIP() << "built without CUDA";
  const auto rounds = [](const Names& names, const View& in, const View& other, const View& out) {
    const View operands[] = {in, other};
    const Call activation{{&in, 1}, {&in, 1}, &kNone}, mul{operands, {&out, 1}, &kNone};
    const Call* const calls[] = {&activation, &mul};
    const GpuKernel* const kernel = find_rounding_kernel(names);
    return kernel && kernel->can_round(std::span(calls).last(names.size()));
  };
  const View x = matrix(nullptr, 3, 32768), long_x = matrix(nullptr, 3, 32769),
             row = matrix(nullptr, 1, 32768);
  View half = x;
  half.dtype = DType::f16;
  for (const Names& names : chains()) {
    EXPECT_TRUE(rounds(names, x, x, x)) << names[0];
    EXPECT_FALSE(rounds(names, long_x, long_x, long_x)) << names[0];
    EXPECT_FALSE(rounds(names, x, row, x)) << names[0];
    EXPECT_FALSE(rounds(names, row, x, x)) << names[0];
    EXPECT_FALSE(rounds(names, x, half, x)) << names[0];
    EXPECT_FALSE(rounds(names, matrix(nullptr, 3, 0), matrix(nullptr, 3, 0), matrix(nullptr, 3, 0)));
  }
  for (const Names& names : std::vector<Names>{{"add"}, {"mul", "silu"}, {"silu"}, {"tanh", "mul"}, {}})
    EXPECT_EQ(find_rounding_kernel(names), nullptr);
  const View w{nullptr, DType::f32, 1, false, {32768}}, wide{nullptr, DType::f32, 1, false, {32769}};
  for (const std::string_view op : {"rmsnorm", "layernorm"}) {
    const View in[] = {x, w}, beyond[] = {long_x, wide},
               of_both[] = {matrix(nullptr, 3, 16), matrix(nullptr, 3, 16)};
    const Call call{in, {&x, 1}, &kNone}, longer{beyond, {&long_x, 1}, &kNone},
        both{of_both, {of_both, 1}, &kNone};
    const auto can_round = [op](const Call& c) {
      const Call* const one = &c;
      return find_rounding_kernel(std::span(&op, 1))->can_round(std::span(&one, 1));
    };
    EXPECT_TRUE(can_round(call)) << op;
    EXPECT_FALSE(can_round(longer)) << op;
    EXPECT_FALSE(can_round(both)) << op;
  }
}

}  // namespace
}  // namespace invar::ops
