#include "receipt/seal.h"

#include <gtest/gtest.h>

#include "receipt/testing.h"

namespace invar::receipt {
namespace {

TEST(SealTest, AReceiptThatWasSealedIsValid) {
  const plan::Plan plan;
  Receipt described = describe({"m", "r", sha256("c"), sha256("t"), sha256(""), "15.0"}, plan);
  EXPECT_EQ(described.model_name, "m");
  EXPECT_EQ(described.chat_template, sha256(""));
  EXPECT_EQ(described.program, plan::digest(plan));
  EXPECT_EQ(described.weights, plan::weights_digest(plan));
  sample::Params sampling;
  sampling.seed = 3;
  const Output output{{7, 9}, "B", "stop", {sha256("x"), sha256("y")}};
  const Receipt r = seal(described, {"A", {5}, 2, {9}, sampling}, output, {{"isa", "scalar"}});
  EXPECT_EQ(r.prompt, "A");
  EXPECT_EQ(r.sampling.seed, 3u);
  EXPECT_EQ(r.tokens, (std::vector<int32_t>{7, 9}));
  EXPECT_EQ(r.execution.at("isa"), "scalar");
  const auto findings = validate(print(r), "r.json");
  ASSERT_TRUE(findings);
  EXPECT_TRUE(findings->empty()) << findings->front().field << ": " << findings->front().found;
}

TEST(SealTest, TensorsAreInTheOrderOfTheirNames) {
  plan::Plan plan;
  for (const char* name : {"b", "a"}) {
    plan::Weight w;
    w.name = name, w.dtype = DType::f32, w.shape = {2};
    plan.weights.push_back(w);
  }
  const Receipt r = describe({}, plan);
  ASSERT_EQ(r.tensors.size(), 2u);
  EXPECT_EQ(r.tensors[0].name, "a");
  EXPECT_EQ(r.tensors[0].dtype, "f32");
}

}  // namespace
}  // namespace invar::receipt
