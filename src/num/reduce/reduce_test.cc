// Row and column reductions over lanes against the reference, and their golden digests.
#include <gtest/gtest.h>

#include <cmath>

#include "base/hash/sha256.h"
#include "num/convert/convert.h"
#include "num/reduce/lanes.h"
#include "num/reduce/reference.h"
#include "num/reduce/scan.h"
#include "num/testing/adversarial.h"

namespace invar::num {
namespace {

using testing::adversarial;
using testing::kKinds;

const int64_t kLengths[] = {0,   1,   2,    127,  128,  129,  255,  256,  257,
                            511, 512, 2049, 4095, 4096, 4097, 8192, 10007};

TEST(Reduce, LaneFormEqualsReference) {
  for (auto kind : kKinds)
    for (int64_t n : kLengths) {
      auto x = adversarial(kind, static_cast<size_t>(n), static_cast<uint64_t>(n));
      EXPECT_EQ(f32_bits(canonicalize(portable::row_sum(x.data(), n))),
                f32_bits(canonicalize(reference::row_sum(x.data(), n))))
          << n;
      EXPECT_EQ(f32_bits(canonicalize(portable::row_sum_squares(x.data(), n))),
                f32_bits(canonicalize(reference::row_sum_squares(x.data(), n))))
          << n;
      for (float center : {0.0f, -1.5f, n ? x[0] : 1.0f, 0x1p127f, NAN})
        EXPECT_EQ(f32_bits(canonicalize(portable::row_sum_squares(x.data(), center, n))),
                  f32_bits(canonicalize(reference::row_sum_squares(x.data(), center, n))))
            << n << " about " << center;
      int m = static_cast<int>(n < 128 ? n : 128);
      EXPECT_EQ(f32_bits(canonicalize(portable::block_sum(x.data(), m))),
                f32_bits(canonicalize(reference::block_sum(x.data(), m))))
          << m;
    }
}

// spec/reduction.md, the example: the order decides. 2^24 + 1 is a tie and falls to even.
TEST(Reduce, SpecExample) {
  std::vector<float> x(257, 0.0f);
  x[0] = 0x1p24f, x[128] = 1.0f, x[256] = 1.0f;  // lane 0: 2^24 + 1 -> 2^24; then lane 128: 2^24 + 1 -> 2^24
  EXPECT_EQ(f32_bits(reference::row_sum(x.data(), 257)), 0x4b800000u);
  std::swap(x[256], x[129]);  // lanes 128 and 129 meet lane 0 one after the other: the same
  EXPECT_EQ(f32_bits(reference::row_sum(x.data(), 257)), 0x4b800000u);
  x[129] = 0.0f, x[192] = 1.0f;  // lane 64 gets lane 192 and lane 0 gets 128 first, then 64
  EXPECT_EQ(f32_bits(reference::row_sum(x.data(), 257)), 0x4b800000u);
  x[192] = 0.0f, x[1] = 1.0f, x[129] = 1.0f, x[128] = 0.0f;  // lane 1: 1 + 1, then 2^24 + 2
  EXPECT_EQ(f32_bits(reference::row_sum(x.data(), 257)), 0x4b800001u);
}

TEST(Reduce, EmptyIsPlusZeroAndZeroPaddingIsInvisible) {
  EXPECT_EQ(f32_bits(reference::row_sum(nullptr, 0)), 0u);
  float minus_zero[300];
  for (float& v : minus_zero) v = -0.0f;
  EXPECT_EQ(f32_bits(reference::row_sum(minus_zero, 300)), 0u);
  EXPECT_EQ(f32_bits(reference::block_sum(minus_zero, 3)), 0u);
  auto x = adversarial(testing::Kind::cancelling, 5000, 7);
  float sum = reference::row_sum(x.data(), 5000);
  x.resize(9000, 0.0f);
  EXPECT_EQ(f32_bits(reference::row_sum(x.data(), 9000)), f32_bits(sum));
}

// The center of a row is its own mean in reduction.9; a row that is constant has no variance,
// whatever its length.
TEST(Reduce, Moments) {
  for (int64_t n : {1, 7, 255, 256, 257, 4097}) {
    std::vector<float> x(static_cast<size_t>(n), 3.0f);
    reference::Moments moments = reference::row_moments(x.data(), n);
    EXPECT_EQ(f32_bits(moments.mean), 0x40400000u) << n;
    EXPECT_EQ(f32_bits(moments.variance), 0u) << n;
    portable::Moments lanes = portable::row_moments(x.data(), n);
    EXPECT_EQ(f32_bits(lanes.mean), 0x40400000u) << n;
    EXPECT_EQ(f32_bits(lanes.variance), 0u) << n;
  }
  const float x[] = {1, 2, 3, 6};
  EXPECT_EQ(f32_bits(reference::row_moments(x, 4).variance), 0x40600000u);  // (4 + 1 + 0 + 9) / 4
}

// reduction.10: lanes without elements are 1, so a -0 or a NaN decides alone; the order decides
// overflow.
TEST(Reduce, Products) {
  for (int64_t n : kLengths) {
    auto x = adversarial(testing::Kind::near_one, static_cast<size_t>(n), 5);
    float found = portable::reduce_row<portable::ProductOp>(n, [&](portable::F acc, int64_t i, int count) {
      return portable::mul(acc, portable::load_or_start<portable::ProductOp>(x.data() + i, count));
    });
    EXPECT_EQ(f32_bits(found),
              f32_bits(reference::row_product_of(n, [&](int64_t i) { return x[static_cast<size_t>(i)]; })))
        << n;
  }
  EXPECT_EQ(f32_bits(reference::row_product_of(1, [](int64_t) { return -0.0f; })), 0x80000000u);
  // Lanes 0 and 128 meet before lane 1 comes: 2^100 * 2^100 overflows though the product is 2^100.
  auto at = [](int64_t i) { return i == 0 || i == 128 ? 0x1p100f : i == 1 ? 0x1p-100f : 1.0f; };
  EXPECT_EQ(f32_bits(reference::row_product_of(129, at)), 0x7f800000u);
}

// reduction.11: rows across memory, in every way there is, have the bits of rows along it.
TEST(Reduce, ColumnsEqualRows) {
  for (int64_t n : {1, 2, 3, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 4095, 4096})
    for (int64_t width : {1, 3, 8}) {
      auto x = adversarial(testing::Kind::cancelling, static_cast<size_t>(n * width), 11);
      std::vector<float> dense(static_cast<size_t>(kRowLanes * width));
      std::vector<float> wide(static_cast<size_t>(portable::kWideBuffers * width));
      portable::reduce_dense<portable::SumOp>(
          n, width, x.data(), [](portable::F a, portable::F b) { return portable::add(a, b); }, dense.data());
      portable::reduce_wide<portable::SumOp>(
          n, width, [&](int64_t i) { return x.data() + i * width; },
          [](portable::F a, portable::F b, int64_t, int) { return portable::add(a, b); }, wide.data());
      for (int64_t c = 0; c < width; ++c) {
        uint32_t expected = f32_bits(
            reference::row_sum_of(n, [&](int64_t i) { return x[static_cast<size_t>(i * width + c)]; }));
        EXPECT_EQ(f32_bits(dense[static_cast<size_t>(c)]), expected) << n << " " << width;
        EXPECT_EQ(f32_bits(wide[static_cast<size_t>(c)]), expected) << n << " " << width;
      }
    }
}

// reduction.13: no step down where no element is negative, across runs and blocks too.
TEST(Reduce, ScansGrow) {
  auto x = adversarial(testing::Kind::wide, 5000, 13);
  for (float& v : x) v = std::abs(v);
  float last = 0;
  reference::scan(
      5000, 0.0f, [&](int64_t i) { return x[static_cast<size_t>(i)]; },
      [](float a, float b) { return a + b; },
      [&](int64_t i, float v) {
        EXPECT_GE(v, last) << i;
        last = v;
      });
}

// The same digest on every machine.
TEST(Reduce, Golden) {
  Sha256 hash;
  for (auto kind : kKinds)
    for (int64_t n : kLengths) {
      auto x = adversarial(kind, static_cast<size_t>(n), 1000 + static_cast<uint64_t>(n));
      uint32_t u[] = {
          f32_bits(canonicalize(reference::row_sum(x.data(), n))),
          f32_bits(canonicalize(reference::row_sum_squares(x.data(), n))),
          f32_bits(canonicalize(reference::block_sum(x.data(), static_cast<int>(n < 128 ? n : 128))))};
      for (uint32_t v : u)
        for (int b = 0; b < 4; ++b) {
          uint8_t byte = static_cast<uint8_t>(v >> 8 * b);
          hash.update(&byte, 1);
        }
    }
  EXPECT_EQ(to_hex(hash.finish()), "fedeb1e73644704bb48577865c41646ee497af96e342b7e79c823620ac6a09d7");
}

// Accuracy, besides bytes: against a sum in long double of one sign.
TEST(Reduce, Accuracy) {
  auto x = adversarial(testing::Kind::near_one, 100000, 3);
  long double exact = 0;
  for (float& v : x) exact += v = std::abs(v);
  EXPECT_LT(std::abs(reference::row_sum(x.data(), 100000) - exact), 40 * 0x1p-24L * exact);
}

}  // namespace
}  // namespace invar::num
