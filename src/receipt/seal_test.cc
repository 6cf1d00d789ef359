#include "receipt/seal.h"

#include <gtest/gtest.h>

#include "receipt/testing.h"

namespace invar::receipt {
namespace {

TEST(SealTest, AReceiptThatWasSealedIsValid) {
  plan::Plan plan;
  plan.source = {"toy-1", sha256("program"), {}};
  Receipt described = *describe({"m", "r", sha256("c"), sha256("t"), sha256(""), "15.0"}, plan);
  EXPECT_EQ(described.model_name, "m");
  EXPECT_EQ(described.chat_template, sha256(""));
  EXPECT_EQ(described.recipe, "toy-1");
  EXPECT_EQ(described.program, sha256("program"));
  sample::Params sampling;
  sampling.do_sample = true, sampling.seed = 3;
  const Output output{{7, 9}, "B", "stop", {sha256("x"), sha256("y")}};
  const Receipt r = seal(described, {"A", {5}, 2, {9}, sampling, {}}, output, {{"isa", "scalar"}});
  EXPECT_EQ(r.prompt, "A");
  EXPECT_EQ(r.sampling.seed, 3u);
  EXPECT_EQ(r.tokens, (std::vector<int32_t>{7, 9}));
  EXPECT_EQ(r.execution.at("isa"), "scalar");
  const auto findings = validate(print(r), "r.json");
  ASSERT_TRUE(findings);
  EXPECT_TRUE(findings->empty()) << findings->front().field << ": " << findings->front().found;
}

// Format 2 knows nothing of how the program was compiled; format 1 describes the plan.
TEST(SealTest, ThePlanIsOfFormat1Alone) {
  const auto weight = [](const char* name) {
    plan::Weight w;
    w.name = name, w.dtype = DType::f32, w.shape = {2};
    return w;
  };
  plan::Plan plan;
  plan.weights = {weight("b"), weight("a")};
  const auto unknown = describe({}, plan);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::bad_input);
  EXPECT_NE(unknown.error().message.find("compile the model again"), std::string::npos);
  plan.source = {"toy-1", sha256("program"), {weight("c")}};
  const Receipt old = *describe({}, plan, 1), now = *describe({}, plan);
  EXPECT_EQ(old.program, plan::digest(plan));
  EXPECT_EQ(old.weights, plan::weights_digest(plan.weights));
  ASSERT_EQ(old.tensors.size(), 2u);
  EXPECT_EQ(old.tensors[0].name, "a");
  EXPECT_EQ(old.tensors[0].dtype, "f32");
  EXPECT_EQ(now.weights, plan::weights_digest(plan.source->tensors));
  ASSERT_EQ(now.tensors.size(), 1u);
  EXPECT_EQ(now.tensors[0].name, "c");
}

}  // namespace
}  // namespace invar::receipt
