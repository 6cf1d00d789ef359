// exact16 products on a GPU: several of the same rows as one kernel, and with a residual added in
// it. The bytes are those of the calls alone on the host, followed by `add`, on every route.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "device/device.h"
#include "kernels/forced_route.h"
#include "kernels/testing.h"

namespace invar::ops {
namespace {

constexpr int kRoutes = 5;

// Numbers, among them every kind of special ones.
std::vector<float> numbers(int64_t n, uint32_t seed, int64_t special_each) {
  constexpr uint32_t kSpecial[] = {0x7fc01234, 0x80000000, 0x7f800000, 0x00000001,
                                   0x807fffff, 0xff800000, 0x00800000, 0x7f7fffff};
  std::vector<float> v;
  for (int64_t i = 0; i < n; ++i) {
    seed = seed * 1664525 + 1013904223;
    const bool special = special_each && i % special_each == special_each / 2;
    v.push_back(special ? std::bit_cast<float>(kSpecial[i / special_each % 8])
                        : std::ldexp(static_cast<float>(static_cast<int32_t>(seed) >> 8), -20));
  }
  return v;
}

class Exact16Batch : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Device::open();
    if (!opened) GTEST_SKIP() << "no GPU here: " << opened.error().message;
    gpu_ = *std::move(opened);
    gpu_->make_current();
    kernel_ = find_gpu_kernel("matmul_exact16");
  }
  void TearDown() override {
    force_variant(0);
    for (void* p : taken_) gpu_->free(p);
  }
  void* take(size_t bytes) {
    const auto p = gpu_->allocate(bytes + 1, "a test");
    if (!p) throw std::runtime_error(p.error().message);
    taken_.push_back(*p);
    return *p;
  }
  View upload(const std::vector<float>& data, int64_t rows, int64_t columns) {
    const View v{take(data.size() * 4), DType::f32, 2, false, {rows, columns}};
    EXPECT_TRUE(gpu_->upload(v.data, data.data(), data.size() * 4));
    return v;
  }
  std::vector<float> download(const View& v) {
    std::vector<float> data(static_cast<size_t>(v.elements()));
    EXPECT_TRUE(gpu_->download(data.data(), v.data, data.size() * 4));
    EXPECT_TRUE(gpu_->wait());
    return data;
  }
  void check(int64_t m, int64_t k, const std::vector<int64_t>& columns, size_t of_other_rows);

  std::shared_ptr<Device> gpu_;
  const GpuKernel* kernel_ = nullptr;
  std::vector<void*> taken_;
};

// Product `of_other_rows` has other rows than the rest, if there is such a product.
void Exact16Batch::check(int64_t m, int64_t k, const std::vector<int64_t>& columns, size_t of_other_rows) {
  const Attributes attrs{{"trans_b", int64_t{1}}};
  const CpuKernel &host = *find_cpu_kernel("matmul_exact16"), &add = *find_cpu_kernel("add");
  const size_t count = columns.size();
  std::vector<std::array<View, 2>> in(count);
  std::vector<View> out(count);
  std::vector<Call> calls(count);
  std::vector<const Call*> all;
  std::vector<const float*> addends;
  std::vector<std::vector<float>> products(count), sums(count);
  std::vector<float> rows[2] = {numbers(m * k, 1, 4 * k + 1), numbers(m * k, 2, 0)};
  const View on_gpu[2] = {upload(rows[0], m, k), upload(rows[1], m, k)};
  for (size_t p = 0; p < count; ++p) {
    const int64_t n = columns[p];
    std::vector<float> b = numbers(n * k, 3 + static_cast<uint32_t>(p), 0), addend = numbers(m * n, 9, 5);
    std::fill(b.begin(), b.begin() + k, -0.0f);
    products[p].resize(static_cast<size_t>(m * n)), sums[p] = products[p];
    const size_t of = p == of_other_rows ? 1 : 0;
    const View operands[] = {testing::view(rows[of], DType::f32, {m, k}),
                             testing::view(b, DType::f32, {n, k})};
    const View product = testing::view(products[p], DType::f32, {m, n});
    testing::run(host, operands, {&product, 1}, attrs);
    const View terms[] = {product, testing::view(addend, DType::f32, {m, n})};
    const View sum = testing::view(sums[p], DType::f32, {m, n});
    testing::run(add, terms, {&sum, 1});
    const View plain = upload(b, n, k);
    in[p] = {on_gpu[of], plain};
    in[p][1].data = take(kernel_->pack_bytes(plain, 1, attrs)), in[p][1].packed = true;
    kernel_->enqueue_pack(plain, 1, attrs, in[p][1].data, gpu_->stream());
    out[p] = {take(products[p].size() * 4), DType::f32, 2, false, {m, n}};
    calls[p].in = in[p], calls[p].out = {&out[p], 1}, calls[p].attrs = &attrs;
    all.push_back(&calls[p]);
    addends.push_back(upload(addend, m, n).as<const float>());
  }
  std::vector<const float*> last(count);
  last.back() = addends.back();
  for (int route = 0; route < kRoutes; ++route) {
    force_variant(route);
    const size_t shared = kernel_->shared_bytes_batch(all);
    void* const memory = take(shared);
    for (Call& call : calls) call.shared = memory;
    const std::pair<const char*, std::vector<const float*>> ways[] = {
        {"products", {}}, {"sums", addends}, {"a sum", last}};
    for (const auto& [way, added] : ways) {
      ASSERT_TRUE(gpu_->fill(memory, 0xff, shared));
      for (const View& y : out) ASSERT_TRUE(gpu_->fill(y.data, 0xff, static_cast<size_t>(y.elements()) * 4));
      if (added.empty())
        kernel_->enqueue_batch(all, gpu_->stream());
      else
        kernel_->enqueue_fused(all, {{}, nullptr, added}, gpu_->stream());
      for (size_t p = 0; p < count; ++p) {
        const std::vector<float>& expected = !added.empty() && added[p] ? sums[p] : products[p];
        EXPECT_EQ(std::memcmp(download(out[p]).data(), expected.data(), expected.size() * 4), 0)
            << way << ", " << m << " x " << k << " x " << columns[p] << ", route " << route;
      }
    }
  }
}

TEST_F(Exact16Batch, BytesOfTheProductsOneByOne) {
  for (int64_t m : {1, 8, 64, 65, 300})
    for (int64_t k : {128, 513}) check(m, k, {64, 1024, 65}, 9);
  check(40, 300, {1, 2, 100, 64, 77, 3}, 9);  // more than one kernel takes
  check(8, 2100, {1000}, 9);
}

// So many columns that tiles of weights are lower than blocks: where they end, products may not.
TEST_F(Exact16Batch, BytesOfManyColumns) {
  for (int64_t m : {5, 16, 33, 64, 100}) {
    check(m, 257, {4096, 1024, 1000}, 9);
    check(m, 129, {3000, 1900, 1050}, 9);
  }
}

TEST_F(Exact16Batch, OtherRowsAreAKernelOfTheirOwn) {
  for (size_t other : {0, 1, 2}) check(33, 257, {96, 130, 33}, other);
}

}  // namespace
}  // namespace invar::ops
