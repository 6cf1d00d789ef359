// Verification finds every difference in model, tokens and logits.
#include <gtest/gtest.h>

#include "receipt/receipt.h"
#include "receipt/testing.h"

namespace invar::receipt {
namespace {

using testing::fields_of;
using testing::toy_forward;
using testing::toy_receipt;

std::string verdict(const Receipt& claimed, int64_t* steps = nullptr) {
  auto v = verify(claimed, toy_receipt(), toy_forward);
  if (!v) return v.error().message;
  if (steps) *steps = v->steps_compared;
  return fields_of(v->findings);
}

TEST(Verify, OneForwardConfirmsEveryStep) {
  for (int64_t n : {1, 2, 5, 40})
    for (uint64_t seed : {1u, 2u, 3u, 4u}) {
      Receipt r = toy_receipt(n, {1, 2}, seed);
      auto v = verify(r, toy_receipt(), toy_forward);
      ASSERT_TRUE(v);
      EXPECT_EQ(fields_of(v->findings), "");
      EXPECT_EQ(v->steps_compared, static_cast<int64_t>(r.tokens.size()));
      EXPECT_EQ(v->tensors_compared, 2);
    }
}

TEST(Verify, NamesTheFirstDifferingStep) {
  const Receipt good = toy_receipt(6, {});
  ASSERT_EQ(good.tokens.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    const std::string index = "[" + std::to_string(i) + "]";
    int64_t steps = 0;
    Receipt r = good;
    r.tokens[i] = (r.tokens[i] + 1) % testing::kVocab;
    EXPECT_EQ(verdict(r, &steps), "output.tokens" + index);
    EXPECT_EQ(steps, static_cast<int64_t>(i) + 1);
    r = good;
    r.logits[i][31] ^= 1;
    EXPECT_EQ(verdict(r), "output.logits" + index);
  }
}

TEST(Verify, ChangedInputsChangeTheAnswer) {
  Receipt r = toy_receipt(6, {});
  r.prompt_tokens[0] ^= 1;
  EXPECT_EQ(verdict(r).substr(0, 16), "output.logits[0]");
  r = toy_receipt(6, {});
  r.tokens[3] = 11, r.prompt_tokens[1] = 500;
  EXPECT_EQ(fields_of(verify(r, toy_receipt(), toy_forward, testing::kVocab)->findings),
            "input.tokens[1] output.tokens[3]");
  r = toy_receipt(40, {});
  r.sampling.seed ^= 1;
  EXPECT_EQ(verdict(r).substr(0, 14), "output.tokens[");
  r = toy_receipt(6, {});
  r.finish_reason = "stop";
  EXPECT_EQ(verdict(r), "output.finish_reason");
}

TEST(Verify, NamesEachDifferenceOfTheModel) {
  const Receipt mine = toy_receipt();
  auto differing = [&](auto change) {
    Receipt claimed = mine;
    change(claimed);
    return fields_of(compare_model(claimed, mine));
  };
  EXPECT_EQ(differing([](Receipt&) {}), "");
  EXPECT_EQ(differing([](Receipt& r) { r.tensors[0].sha256[9] ^= 4, r.weights[0] ^= 1; }),
            "model.tensors[embed].sha256");
  EXPECT_EQ(differing([](Receipt& r) { r.tensors[1].dtype = "f16"; }), "model.tensors[norm]");
  EXPECT_EQ(differing([](Receipt& r) { r.tensors[1].shape = {2, 1}; }), "model.tensors[norm]");
  EXPECT_EQ(differing([](Receipt& r) { r.tensors.erase(r.tensors.begin()); }), "model.tensors[embed]");
  EXPECT_EQ(differing([](Receipt& r) { r.tensors.push_back({"x", "f32", {}, {}}); }), "model.tensors[x]");
  EXPECT_EQ(differing([](Receipt& r) { r.weights[0] ^= 1; }), "model.weights");
  EXPECT_EQ(differing([](Receipt& r) { r.config[0] ^= 1, r.tokenizer[0] ^= 1, r.chat_template[0] ^= 1; }),
            "model.config model.tokenizer model.chat_template");
  EXPECT_EQ(differing([](Receipt& r) { r.program[0] ^= 1; }), "program.digest");
  EXPECT_EQ(differing([](Receipt& r) { r.recipe = "toy-2", r.profile = "exact16"; }),
            "program.recipe program.profile");
  EXPECT_EQ(
      differing([](Receipt& r) { r.numerics = "invar-0", r.operation_set = "default", r.unicode = "1"; }),
      "program.numerics program.operation_set program.unicode");
  // Labels and the machine are not compared: the same model may lie elsewhere.
  EXPECT_EQ(differing([](Receipt& r) { r.model_name = "/else/where", r.revision = "", r.execution.clear(); }),
            "");
  Receipt claimed = mine;
  claimed.config[0] ^= 1;
  auto v = verify(claimed, mine, [](auto, auto&) -> Status { return bad_input("must not run"); });
  ASSERT_TRUE(v);
  EXPECT_EQ(fields_of(v->findings), "model.config");
}

TEST(Verify, ErrorsOfTheComputationPassThrough) {
  const Receipt r = toy_receipt(6, {});
  auto failing = verify(r, r, [](auto, auto&) -> Status { return bad_input("token id 99 is out of range"); });
  ASSERT_FALSE(failing);
  EXPECT_EQ(failing.error().message, "token id 99 is out of range");
  auto silent = verify(r, r, [](auto, auto&) -> Status { return {}; });
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().message, "verify: 0 of 6 logits rows came");
}

}  // namespace
}  // namespace invar::receipt
