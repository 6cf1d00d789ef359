// Tests of the contraction schedule, its lane form, and its golden digest.
#include <gtest/gtest.h>

#include <cmath>

#include "base/hash/sha256.h"
#include "num/contract/lanes.h"
#include "num/contract/reference.h"
#include "num/convert/convert.h"
#include "num/testing/adversarial.h"

namespace invar::num {
namespace {

using testing::adversarial;
using testing::kKinds;

const int64_t kDepths[] = {0,   1,    2,    64,   255,  256,  257,  511,  512,
                           513, 2047, 2048, 2049, 2304, 4096, 4352, 5000, 11008};

float dot(const std::vector<float>& a, const std::vector<float>& b, int64_t k) {
  return reference::contract(
      k, [&](int64_t i) { return a[static_cast<size_t>(i)]; },
      [&](int64_t i) { return b[static_cast<size_t>(i)]; });
}

TEST(Contract, ScheduleCoversEveryBlockOnceInOrder) {
  for (int64_t k = 0; k < 20000; ++k) {
    int64_t block = 0;
    int used = 0;
    for (int s = 0; s < kSegments; ++s) {
      Range r = segment_blocks(s, k);
      ASSERT_LE(r.begin, r.end);
      if (r.begin < r.end) {
        ASSERT_EQ(r.begin, block);
        ASSERT_EQ(used, s);  // the used segments are the first ones
        block = r.end, ++used;
      }
    }
    ASSERT_EQ(block, (k + 255) / 256);
    ASSERT_EQ(used, segments_in_use(k));
    if (block > 0) {
      ASSERT_EQ(block_range(block - 1, k).end, k);
    }
  }
}

TEST(Contract, LaneFormEqualsReference) {
  for (auto kind : kKinds)
    for (int64_t k : kDepths) {
      size_t n = static_cast<size_t>(k);
      auto a = adversarial(kind, n, 2 * n), b = adversarial(kind, n, 2 * n + 1);
      portable::F y[1];
      portable::contract<1>(
          k,
          [&](int64_t begin, int64_t end, portable::F* c) {
            c[0] = portable::zero();
            for (int64_t i = begin; i < end; ++i)
              c[0] = portable::fma(portable::F{a[i]}, portable::F{b[i]}, c[0]);
          },
          y);
      EXPECT_EQ(f32_bits(canonicalize(y[0].v)), f32_bits(canonicalize(dot(a, b, k)))) << k;
    }
}

// contraction.5: zero products may be appended as long as blocks_per_segment is unchanged, that is
// up to 2048 per block of a segment.
TEST(Contract, ZeroProductsAppended) {
  for (auto kind : kKinds)
    for (int64_t k : {1, 255, 1000, 2000, 2048, 2049, 4000, 4096, 5000}) {
      const int64_t whole = kSegments * kChain * blocks_per_segment(k);
      auto a = adversarial(kind, static_cast<size_t>(k), 5), b = adversarial(kind, static_cast<size_t>(k), 6);
      const uint32_t y = f32_bits(canonicalize(dot(a, b, k)));
      for (int64_t more : {k + 1, (k + whole) / 2, whole}) {
        if (more > whole) continue;
        a.resize(static_cast<size_t>(more), 0.0f), b.resize(static_cast<size_t>(more), -1.0f);
        EXPECT_EQ(f32_bits(canonicalize(dot(a, b, more))), y) << k << " and up to " << more;
      }
    }
}

// And no further: one more block than 8 segments of `per` hold moves blocks to other segments.
TEST(Contract, OneMoreBlockChangesTheSegments) {
  int differ = 0;
  for (uint64_t column = 0; column < 64; ++column) {
    auto a = adversarial(testing::Kind::near_one, 4096, 2 * column),
         b = adversarial(testing::Kind::near_one, 4096, 2 * column + 1);
    const uint32_t y = f32_bits(dot(a, b, 4096));
    a.push_back(0.0f), b.push_back(1.0f);
    differ += f32_bits(dot(a, b, 4097)) != y;
  }
  EXPECT_EQ(differ, 39);
}

// contraction.5: terms that are 0 times a finite number may be skipped anywhere; blocks and
// segments stay those of all terms.
TEST(Contract, SomeOfTheTerms) {
  for (auto kind : kKinds)
    for (int64_t k : kDepths) {
      if (k == 0) continue;
      const size_t n = static_cast<size_t>(k);
      auto a = adversarial(kind, n, 7 * n), b = adversarial(kind, n, 7 * n + 1);
      for (float& v : b) v = std::isfinite(v) ? v : -1;
      auto outside = [&](int64_t i) { return i % 700 < 450 || i % 7 == 3; };
      for (int64_t i = 0; i < k; ++i)
        if (outside(i)) a[static_cast<size_t>(i)] = i % 2 ? 0.0f : -0.0f;
      const uint32_t whole = f32_bits(canonicalize(dot(a, b, k)));
      const float terms = reference::contract_some(k, [&](auto term) {
        for (int64_t i = 0; i < k; ++i)
          if (!outside(i)) term(i, a[static_cast<size_t>(i)], b[static_cast<size_t>(i)]);
      });
      EXPECT_EQ(f32_bits(canonicalize(terms)), whole) << k;
      const portable::F runs = portable::contract_some(k, [&](auto run) {
        for (int64_t i = 0, from; i < k;) {
          for (from = i; i < k && !outside(i);) ++i;
          run(from, i - from, [&](portable::F c, int64_t j) {
            return portable::fma(portable::F{a[static_cast<size_t>(from + j)]},
                                 portable::F{b[static_cast<size_t>(from + j)]}, c);
          });
          while (i < k && outside(i)) ++i;
        }
      });
      EXPECT_EQ(f32_bits(canonicalize(runs.v)), whole) << k;
    }
}

// spec/contraction.md, the example: with a[k] = 1 the order of the additions is visible.
TEST(Contract, SpecExample) {
  std::vector<float> one(512, 1.0f), x(512, 0.0f);
  x[0] = 0x1p24f, x[1] = 1.0f, x[2] = 1.0f;  // one chain: 2^24 + 1 -> 2^24, twice
  EXPECT_EQ(f32_bits(dot(one, x, 512)), 0x4b800000u);
  x[1] = x[2] = 0.0f, x[256] = x[257] = 1.0f;  // the second chain is 2 when it joins
  EXPECT_EQ(f32_bits(dot(one, x, 512)), 0x4b800001u);
}

// A chain may end in -0 by underflow; the result may not.
TEST(Contract, UnderflowIsPlusZero) {
  std::vector<float> a = {-0x1p-100f}, b = {0x1p-100f};
  EXPECT_EQ(f32_bits(dot(a, b, 1)), 0u);
}

// The same digest on every machine.
TEST(Contract, Golden) {
  Sha256 hash;
  for (auto kind : kKinds)
    for (int64_t k : kDepths) {
      size_t n = static_cast<size_t>(k);
      uint32_t u =
          f32_bits(canonicalize(dot(adversarial(kind, n, 3 * n), adversarial(kind, n, 3 * n + 1), k)));
      uint8_t bytes[] = {uint8_t(u), uint8_t(u >> 8), uint8_t(u >> 16), uint8_t(u >> 24)};
      hash.update(bytes, 4);
    }
  EXPECT_EQ(to_hex(hash.finish()), "3880f7a7a73f5e9b8e808b7095e3b80e200fe4aada65ade1e2d3d3ae5df7e6e9");
}

}  // namespace
}  // namespace invar::num
