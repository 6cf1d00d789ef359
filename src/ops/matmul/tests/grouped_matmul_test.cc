// grouped_matmul.3 and grouped_matmul_exact16.3 on a GPU: products of one index that one kernel
// makes equal the products one by one, and these a product of each row with its matrix.
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "device/device.h"
#include "kernels/testing.h"

namespace invar::ops {
namespace {

constexpr int64_t kMatrices = 24;
constexpr int kCalls = 2;

struct Operations {
  const char *grouped, *single;
};
class GroupedMatmulOnDevice : public ::testing::TestWithParam<Operations> {
 protected:
  void SetUp() override {
    auto opened = Device::open();
    if (!opened) GTEST_SKIP() << "no GPU here: " << opened.error().message;
    gpu = *opened;
    gpu->make_current();
  }
  void TearDown() override {
    for (void* p : taken) gpu->free(p);
  }
  void* take(size_t bytes) {
    const auto p = gpu->allocate(bytes + 1, "a test");
    if (!p) throw std::runtime_error(p.error().message);
    taken.push_back(*p);
    return *p;
  }
  template <class T>
  View upload(const std::vector<T>& values, DType dtype, std::initializer_list<int64_t> shape) {
    View v{take(values.size() * sizeof(T)), dtype, static_cast<int>(shape.size()), false, {}};
    std::copy(shape.begin(), shape.end(), v.dim);
    if (!gpu->upload(v.data, values.data(), values.size() * sizeof(T))) throw std::runtime_error("no upload");
    return v;
  }
  std::vector<float> download(const View& y) {
    std::vector<float> here(static_cast<size_t>(y.elements()));
    if (!gpu->download(here.data(), y.data, here.size() * 4) || !gpu->wait())
      throw std::runtime_error("no download");
    return here;
  }
  std::shared_ptr<Device> gpu;
  std::vector<void*> taken;
};

std::vector<uint16_t> weights(int64_t n, uint64_t seed) {  // bf16, about 1
  std::vector<uint16_t> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<uint16_t>(0x3f00 | ((i + seed) * 40503 >> 7 & 0x80ff));
  return v;
}
bool equal_results(const std::vector<float>& x, const std::vector<float>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * 4) == 0;
}

TEST_P(GroupedMatmulOnDevice, AtOnceOrOneByOne) {
  const GpuKernel &grouped = *find_gpu_kernel(GetParam().grouped),
                  &matmul = *find_gpu_kernel(GetParam().single);
  const Attributes attrs{{"trans_b", int64_t{1}}};
  for (const int64_t rows : {int64_t{1}, int64_t{8}, kMatrices + 3, 5 * kMatrices + 1, 50 * kMatrices})
    for (const int64_t k : {int64_t{300}, int64_t{2305}}) {
      std::vector<float> a(static_cast<size_t>(rows * k));
      for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7919 % 2003) - 1001.5f;
      std::vector<int64_t> index(static_cast<size_t>(rows));
      for (size_t i = 0; i < index.size(); ++i)
        index[i] = static_cast<int64_t>(i * i * 7 % (2 * kMatrices)) - kMatrices;
      const View x = upload(a, DType::f32, {rows, k}), chosen = upload(index, DType::i64, {rows});
      const View fault = upload(std::vector<uint32_t>{0}, DType::i32, {1});
      const int64_t n[kCalls] = {100, 37};
      View in[kCalls][3], out[kCalls];
      Call calls[kCalls];
      std::vector<const Call*> all;
      size_t matrix_bytes[kCalls];
      for (int p = 0; p < kCalls; ++p) {
        View b = upload(weights(kMatrices * n[p] * k, static_cast<uint64_t>(p)), DType::bf16,
                        {kMatrices, n[p], k});
        const size_t bytes = grouped.pack_bytes(b, 2, attrs);
        matrix_bytes[p] = bytes / kMatrices;
        void* const packed = take(bytes);
        grouped.enqueue_pack(b, 2, attrs, packed, gpu->stream());
        b.data = packed, b.packed = true;
        in[p][0] = x, in[p][1] = chosen, in[p][2] = b;
        out[p] = {take(static_cast<size_t>(rows * n[p]) * 4), DType::f32, 2, false, {rows, n[p]}};
        calls[p].in = in[p], calls[p].out = {&out[p], 1}, calls[p].attrs = &attrs;
        calls[p].gpu.fault = fault.as<uint32_t>();
        all.push_back(&calls[p]);
      }
      size_t shared = grouped.shared_bytes_batch(all);
      for (const Call& call : calls) shared = std::max(shared, grouped.shared_bytes(call));
      void* const memory = take(shared);
      for (Call& call : calls) call.shared = memory;
      for (const View& y : out) ASSERT_TRUE(gpu->fill(y.data, 0xff, static_cast<size_t>(y.elements()) * 4));
      grouped.enqueue_batch(all, gpu->stream());
      const std::vector<float> together[kCalls] = {download(out[0]), download(out[1])};
      for (int p = 0; p < kCalls; ++p) {
        ASSERT_TRUE(gpu->fill(out[p].data, 0xff, static_cast<size_t>(rows * n[p]) * 4));
        grouped.enqueue(calls[p], gpu->stream());
        EXPECT_TRUE(equal_results(together[p], download(out[p]))) << rows << " rows, K = " << k;
        // Single rows by matmul, of the first rows.
        for (int64_t row = 0; row < std::min<int64_t>(rows, 5); ++row) {
          const int64_t g = (index[static_cast<size_t>(row)] + kMatrices) % kMatrices;
          View one[2] = {x, in[p][2]};
          one[0].dim[0] = 1, one[0].data = x.as<float>() + row * k;
          one[1].rank = 2, one[1].dim[0] = n[p], one[1].dim[1] = k;
          one[1].data = static_cast<char*>(in[p][2].data) + static_cast<size_t>(g) * matrix_bytes[p];
          View y{take(static_cast<size_t>(n[p]) * 4), DType::f32, 2, false, {1, n[p]}};
          Call single;
          single.in = one, single.out = {&y, 1}, single.attrs = &attrs;
          single.shared = take(matmul.shared_bytes(single));
          matmul.enqueue(single, gpu->stream());
          const auto from = together[p].begin() + row * n[p];
          EXPECT_TRUE(equal_results({from, from + n[p]}, download(y)))
              << rows << " rows, row " << row << ", K = " << k;
        }
      }
      uint32_t found = 1;
      ASSERT_TRUE(gpu->download(&found, fault.data, 4));
      ASSERT_TRUE(gpu->wait());
      EXPECT_EQ(found, 0u);
    }
}

INSTANTIATE_TEST_SUITE_P(Profiles, GroupedMatmulOnDevice,
                         ::testing::Values(Operations{"grouped_matmul", "matmul"},
                                           Operations{"grouped_matmul_exact16", "matmul_exact16"}),
                         [](const auto& tested) { return std::string(tested.param.grouped); });

}  // namespace
}  // namespace invar::ops
