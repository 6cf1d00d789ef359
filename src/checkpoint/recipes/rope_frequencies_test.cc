// Tests of RoPE frequencies.
#include "checkpoint/recipes/rope_frequencies.h"

#include <bit>

#include "base/hash/sha256.h"
#include "checkpoint/testing.h"

namespace invar::checkpoint {
namespace {

// Little-endian bytes of the table.
Digest digest(const RopeParameters& rope, int64_t head_dim) {
  std::string bytes;
  for (float f : inverse_frequencies(rope, head_dim))
    for (int b = 0; b < 4; ++b) bytes += static_cast<char>(std::bit_cast<uint32_t>(f) >> (8 * b) & 0xff);
  return sha256(bytes);
}

// Digests made by tests/rope_oracle.py: powers with 60 decimal digits, rounded once.
TEST(RopeTest, TablesAreThoseOfTheOracle) {
  const RopeParameters llama3_8{RopeParameters::llama3, 500000, 8, 1, 4, 8192};
  const RopeParameters llama3_32{RopeParameters::llama3, 500000, 32, 1, 4, 8192};
  const RopeParameters yarn_4{
      .type = RopeParameters::yarn, .theta = 1e6, .factor = 4, .original_max_positions = 32768};
  const RopeParameters yarn_16{
      .type = RopeParameters::yarn, .factor = 16, .original_max_positions = 4096, .attention_factor = 1.25};
  const RopeParameters yarn_32{.type = RopeParameters::yarn,
                               .theta = 150000,
                               .factor = 32,
                               .original_max_positions = 4096,
                               .mscale = 0.707,
                               .mscale_all_dim = 0.5,
                               .truncate = false};
  const RopeParameters yarn_step{.type = RopeParameters::yarn, .factor = 1.5, .original_max_positions = 6};
  struct {
    RopeParameters rope;
    int64_t head_dim;
    const char* sha256;
    uint32_t attention_factor;
  } cases[] = {
      {{}, 32, "9cc63b858a37a16bf14e559754d6fee5f50ae74aabfce29fec9097b70902849c", 0x3f800000},
      {{}, 64, "734f9e6b629f7baccc4de81b7e8d2982035ee1b81f73f158e7d33a4dcf13fa0e", 0x3f800000},
      {{}, 128, "4b659c349432de9f79dd9cb4ee360c56e20be3809e01d4bbccbf2ebeae925c3d", 0x3f800000},
      {{.theta = 500000},
       128,
       "dde15c31724177356ae954d6e11fb337e6fccef56e4520a905cac3f0d9885b34",
       0x3f800000},
      {{.theta = 1e6}, 128, "237f29de846b16695ef069c176083c78546463c52700a6b1f24102ccc2ff93b2", 0x3f800000},
      {{.theta = 10000.1},
       96,
       "828dd781b98e49404158eacc1e2636ba4e9e45a6007532f5d7751e96a094868a",
       0x3f800000},
      {{RopeParameters::linear, 10000, 2.5},
       128,
       "925438c8febb54a0e15e44c84beb02fb42ed20dd8c872dd2f5a50675af1b4138",
       0x3f800000},
      {llama3_8, 128, "4ae228093081627907bb1abceaa696354a9d187a0202a20492a1105c1ade70e3", 0x3f800000},
      {llama3_32, 64, "db702e51cd2b99eafedf1b5ded38fb2c5aa1a83425d232df24f8016e434e3bf3", 0x3f800000},
      {yarn_4, 128, "fc3a149b70f4f0c59ab19ef862b3c4605c47614e0918898dc6de5fa67b861cd5", 0x3f91be9c},
      {yarn_16, 64, "7d8766c8213d9314c778df7d8b13f6e378a46a3d93d443ee099cb7e2bcd90446", 0x3fa00000},
      {yarn_32, 64, "82f7190c61e6e3b52b4a3bc083cbc060ea3c55b6dd8d8fe68c284625a434cc54", 0x3f87d39a},
      {yarn_step, 32, "e561c4ea7a513be838c67f892c39ce85d7cc4e075afe51d5036ad87cbd9e04aa", 0x3f8530a1},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(to_hex(digest(c.rope, c.head_dim)), c.sha256) << c.rope.theta << " " << c.head_dim;
    EXPECT_EQ(std::bit_cast<uint32_t>(attention_factor(c.rope)), c.attention_factor) << c.rope.theta;
  }
}

// theta * alpha^(d / (d - 2)) by decimal numbers of 60 digits.
TEST(RopeTest, StretchedThetaIsRoundedOnce) {
  EXPECT_EQ(stretched_theta(10000, 1000, 128), 0x1.548a6fd9a3c19p+23);
  EXPECT_EQ(stretched_theta(10000, 1000, 8), 1e8);
  EXPECT_EQ(stretched_theta(500000, 2.5, 96), 0x1.372f08889bd08p+20);
  EXPECT_EQ(stretched_theta(10000, 0.3, 64), 0x1.68b70abad94eep+11);  // alpha is no binary32
}

// Factors divide, and sqrt(1 + ln 32 / ln 4096) multiplies cosines and sines.
TEST(RopeTest, LongropeDividesByFactors) {
  RopeParameters rope{.type = RopeParameters::longrope, .factor = 32, .original_max_positions = 4096};
  rope.factors = {1, 2, 4};
  const auto plain = inverse_frequencies({}, 6), table = inverse_frequencies(rope, 6);
  for (size_t i = 0; i < table.size(); ++i)
    EXPECT_EQ(table[i], plain[i] / static_cast<float>(rope.factors[i]));
  EXPECT_EQ(std::bit_cast<uint32_t>(attention_factor(rope)), 0x3f9859b9u);
  rope.factor = 1;
  EXPECT_EQ(attention_factor(rope), 1.0f);
  rope.attention_factor = 1.25;
  EXPECT_EQ(attention_factor(rope), 1.25f);
}

TEST(RopeTest, FirstFrequencyIsOne) {
  const auto table = inverse_frequencies({}, 32);
  ASSERT_EQ(table.size(), 16u);
  EXPECT_EQ(std::bit_cast<uint32_t>(table[0]), 0x3f800000u);
}

}  // namespace
}  // namespace invar::checkpoint
