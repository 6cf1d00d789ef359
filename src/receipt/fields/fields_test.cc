// Values of single fields, and what they need beside them.
#include <gtest/gtest.h>

#include <bit>

#include "receipt/receipt.h"
#include "receipt/testing.h"

namespace invar::receipt {
namespace {

using testing::toy_receipt;

std::string wrong_fields(const Receipt& r) {
  const auto findings = validate(print(r), "r.json");
  if (!findings) return findings.error().message;
  std::string all;
  for (const Finding& f : *findings) all += (all.empty() ? "" : " ") + f.field;
  return all;
}

TEST(Fields, FloatsKeepTheirBits) {
  for (float t : {0.1f, 1.0f, 1e-5f, 0.7f, 3.4e38f, 1.17549435e-38f, 1.0000001f, 16777217.0f}) {
    Receipt r = toy_receipt(), back{};
    r.sampling.temperature = t;
    ASSERT_EQ(wrong_fields(r), "");
    ASSERT_TRUE(validate(print(r), "r.json", &back));
    EXPECT_EQ(std::bit_cast<uint32_t>(back.sampling.temperature), std::bit_cast<uint32_t>(t));
  }
}

// receipt.46: a recording may stand in the place of tokens, where a decoder continues others.
TEST(Fields, ARecordingNeedsNoTokens) {
  Receipt r = toy_receipt(5, {});
  r.prompt_tokens.clear();
  EXPECT_EQ(wrong_fields(r), "input.tokens");
  r.audio[0] = 1;
  EXPECT_EQ(wrong_fields(r), "input.tokens");
  r.decoder_tokens = {1};
  EXPECT_EQ(wrong_fields(r), "");
  r.audio_start = -1;
  EXPECT_EQ(wrong_fields(r), "input.audio_start");
}

}  // namespace
}  // namespace invar::receipt
