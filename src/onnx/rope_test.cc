#include "onnx/rope.h"

#include <bit>

#include "base/hash.h"
#include "onnx/testing.h"

namespace invar::onnx {
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
  struct {
    RopeParameters rope;
    int64_t head_dim;
    const char* sha256;
  } cases[] = {
      {{}, 32, "9cc63b858a37a16bf14e559754d6fee5f50ae74aabfce29fec9097b70902849c"},
      {{}, 64, "734f9e6b629f7baccc4de81b7e8d2982035ee1b81f73f158e7d33a4dcf13fa0e"},
      {{}, 128, "4b659c349432de9f79dd9cb4ee360c56e20be3809e01d4bbccbf2ebeae925c3d"},
      {{.theta = 500000}, 128, "dde15c31724177356ae954d6e11fb337e6fccef56e4520a905cac3f0d9885b34"},
      {{.theta = 1e6}, 128, "237f29de846b16695ef069c176083c78546463c52700a6b1f24102ccc2ff93b2"},
      {{.theta = 10000.1}, 96, "828dd781b98e49404158eacc1e2636ba4e9e45a6007532f5d7751e96a094868a"},
      {{RopeParameters::linear, 10000, 2.5},
       128,
       "925438c8febb54a0e15e44c84beb02fb42ed20dd8c872dd2f5a50675af1b4138"},
      {llama3_8, 128, "4ae228093081627907bb1abceaa696354a9d187a0202a20492a1105c1ade70e3"},
      {llama3_32, 64, "db702e51cd2b99eafedf1b5ded38fb2c5aa1a83425d232df24f8016e434e3bf3"},
  };
  for (const auto& c : cases)
    EXPECT_EQ(to_hex(digest(c.rope, c.head_dim)), c.sha256) << c.rope.theta << " " << c.head_dim;
}

TEST(RopeTest, FirstFrequencyIsOne) {
  const auto table = inverse_frequencies({}, 32);
  ASSERT_EQ(table.size(), 16u);
  EXPECT_EQ(std::bit_cast<uint32_t>(table[0]), 0x3f800000u);
}

}  // namespace
}  // namespace invar::onnx
