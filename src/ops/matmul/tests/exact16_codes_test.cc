// matmul_exact16 with columns in tiles of codes on a GPU: the bytes are those of the host with the
// numbers, for few rows, which read the codes, and for many.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "device/device.h"
#include "kernels/testing.h"
#include "weights/testing.h"
#include "weights/tiles/code_tiles.h"

namespace invar::ops {
namespace {

class Exact16Codes : public ::testing::Test {
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
  void* upload(const void* data, size_t bytes) {
    const auto p = gpu_->allocate(bytes + 1, "a test");
    if (!p) throw std::runtime_error(p.error().message);
    taken_.push_back(*p);
    if (data) EXPECT_TRUE(gpu_->upload(*p, data, bytes));
    return *p;
  }
  // On the GPU, of `a` on the host.
  std::vector<float> product(const std::vector<float>& a, int64_t m, const weights::CodeTiles& tiles,
                             int64_t k) {
    const GpuKernel& kernel = *find_gpu_kernel("matmul_exact16");
    std::vector<float> y(static_cast<size_t>(m * tiles.rows));
    const View in[] = {{upload(a.data(), a.size() * 4), DType::f32, 2, false, {m, k}},
                       {const_cast<weights::CodeTiles*>(&tiles), DType::u8, 2, true, {tiles.rows, k}}};
    const View out{upload(nullptr, y.size() * 4), DType::f32, 2, false, {m, tiles.rows}};
    Call call{in, {&out, 1}, &attrs_};
    call.shared = upload(nullptr, kernel.shared_bytes(call));
    kernel.enqueue(call, gpu_->stream());
    EXPECT_TRUE(gpu_->download(y.data(), out.data, y.size() * 4));
    EXPECT_TRUE(gpu_->wait());
    return y;
  }

  const Attributes attrs_{{"trans_b", int64_t{1}}};
  std::shared_ptr<Device> gpu_;
  std::vector<void*> taken_;
};

TEST_F(Exact16Codes, GiveTheProductsOfTheNumbers) {
  constexpr int64_t kColumns = 200, k = 640;
  const CpuKernel& host = *find_cpu_kernel("matmul_exact16");
  for (const auto& [name, matrix, memory] : weights::testing::made_matrices(kColumns, k, 0)) {
    std::vector<uint8_t> numbers(static_cast<size_t>(kColumns * k) *
                                 weights::element_bytes(matrix.element()));
    ASSERT_EQ(matrix.elements(0, kColumns, numbers.data()), -1) << name;
    const std::string_view e = matrix.element();
    const View b = testing::view(numbers,
                                 e == "F32"   ? DType::f32
                                 : e == "F16" ? DType::f16
                                              : DType::bf16,
                                 {kColumns, k});
    const weights::Coding coding = *matrix.coding();
    weights::PackedRows rows;
    rows.numbers = k, rows.rows = kColumns, rows.matrix = &matrix, rows.coding = &coding;
    if (!weights::CodeTiles::covers(rows)) continue;  // numbers are what the kernels get
    weights::CodeTiles tiles = weights::CodeTiles::of(rows);
    std::vector<uint8_t> packed(tiles.bytes());
    std::vector<int32_t> scales(static_cast<size_t>(tiles.down() * weights::CodeTiles::kRows));
    for (int64_t down = 0; down < tiles.down(); ++down)
      tiles.pack(rows, down, packed.data() + static_cast<size_t>(down) * tiles.row_bytes(),
                 scales.data() + down * weights::CodeTiles::kRows);
    std::memcpy(packed.data() + tiles.scales_at(), scales.data(), scales.size() * sizeof(int32_t));
    tiles.memory = static_cast<const uint8_t*>(upload(packed.data(), packed.size()));
    for (const int64_t m : {1, 9, 30, 64, 100, 130}) {
      std::vector<float> a(static_cast<size_t>(m * k)), expected(static_cast<size_t>(m * kColumns));
      for (size_t i = 0; i < a.size(); ++i)
        a[i] = std::ldexp(static_cast<float>(i * 7919 % 2003) - 1001.0f, -static_cast<int>(i % 11));
      const View in[] = {testing::view(a, DType::f32, {m, k}), b};
      const View out = testing::view(expected, DType::f32, {m, kColumns});
      testing::run(host, in, {&out, 1}, attrs_);
      EXPECT_EQ(std::memcmp(product(a, m, tiles, k).data(), expected.data(), expected.size() * 4), 0)
          << name << ", " << m << " rows";
    }
  }
}

}  // namespace
}  // namespace invar::ops
