// Verification finds every difference in model, tokens and logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

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

// However many rows are delivered together, and in whichever order they are checked.
TEST(Verify, RowsOfSeveralStepsAtOnce) {
  const Receipt good = toy_receipt(9, {});
  const auto in_pieces = [](int64_t piece) {
    return [piece](std::span<const int32_t> tokens, std::span<const int64_t>, const auto& deliver) {
      const auto all = static_cast<int64_t>(tokens.size());
      for (int64_t at = 0; at < all; at += piece) {
        std::vector<float> rows;
        const int64_t count = std::min(piece, all - at);
        for (int64_t i = at; i < at + count; ++i)
          for (const float x : testing::toy_row(tokens.first(static_cast<size_t>(i) + 1))) rows.push_back(x);
        deliver(Rows{at, count, rows});
      }
      return Status();
    };
  };
  const auto backwards = [](int count, const std::function<void(int)>& f) {
    while (count > 0) f(--count);
  };
  for (int64_t piece = 1; piece <= 12; ++piece)
    for (const ForEach& for_each : {ForEach(), ForEach{backwards, 1}, ForEach{backwards, 4}}) {
      const auto found = [&](const Receipt& r, const StepSelection& selection) {
        const auto v = verify(r, toy_receipt(), in_pieces(piece), testing::kVocab, selection, for_each);
        EXPECT_TRUE(v) << v.error().message;
        return fields_of(v->findings) + "; " + std::to_string(v->steps_compared);
      };
      EXPECT_EQ(found(good, {}), "; 9");
      EXPECT_EQ(found(good, {.range = std::pair(2, 7)}), "; 5");
      Receipt r = good;
      r.logits[4][0] ^= 1, r.logits[7][0] ^= 1;
      EXPECT_EQ(found(r, {}), "output.logits[4]; 5");
      EXPECT_EQ(found(r, {.range = std::pair(5, 9)}), "output.logits[7]; 3");
    }
  const auto late =
      verify(good, toy_receipt(),
             [](std::span<const int32_t> tokens, std::span<const int64_t>, const auto& deliver) {
               deliver(Rows{static_cast<int64_t>(tokens.size()) - 1, 1, testing::toy_row(tokens)});
               return Status();
             });
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().message.find("came out of order"), std::string::npos);
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

// Each setting belongs to the claim: with another value of it the answer is another.
TEST(Verify, SettingsAreReplayed) {
  const sample::Processors settings{.repetition_penalty = 1.5f,
                                    .logit_bias = {{1, -2}, {5, 1.25f}},
                                    .frequency_penalty = 0.25f,
                                    .presence_penalty = -0.5f,
                                    .no_repeat_ngram_size = 2,
                                    .bad_words_ids = {{3}, {4, 5}},
                                    .forced_eos_token_id = {8},
                                    .suppress_tokens = {6},
                                    .begin_suppress_tokens = {9}};
  const Receipt good = toy_receipt(40, {}, 3, settings);
  EXPECT_EQ(verdict(good), "");
  EXPECT_EQ(good.tokens.back(), 8);
  const auto without = [&](auto change) {
    Receipt r = good;
    change(r.sampling.processors);
    return verdict(r).substr(0, 14);
  };
  using S = sample::Processors;
  EXPECT_EQ(without([](S& s) { s.repetition_penalty = 1; }), "output.tokens[");
  EXPECT_EQ(without([](S& s) { s.logit_bias.pop_back(); }), "output.tokens[");
  EXPECT_EQ(without([](S& s) { s.logit_bias = {{testing::kVocab, 1}}; }), "output.tokens[");
  EXPECT_EQ(without([](S& s) { s.frequency_penalty = 0; }), "output.tokens[");
  EXPECT_EQ(without([](S& s) { s.presence_penalty = 0.5f; }), "output.tokens[");
  EXPECT_EQ(without([](S& s) { s.no_repeat_ngram_size = 0; }), "output.tokens[");
  EXPECT_EQ(without([](S& s) { s.bad_words_ids = {}; }), "output.tokens[");
  EXPECT_EQ(without([](S& s) { s.forced_eos_token_id = {7}; }), "output.tokens[");
  EXPECT_EQ(without([](S& s) { s.suppress_tokens = {}; }), "output.tokens[");
  EXPECT_EQ(without([&](S& s) { s.begin_suppress_tokens = {good.tokens[0]}; }), "output.tokens[");
  EXPECT_EQ(without([](S& s) { s.bad_words_ids = {{testing::kVocab}}; }), "output.tokens[")
      << "no such token";
  EXPECT_EQ(without([](S& s) { s.suppress_tokens = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}; }), "output.tokens[");
}

// sampling.24: answer j of n is drawn from stream j.
TEST(Verify, TheStreamIsReplayed) {
  const Receipt first = toy_receipt(40, {}), second = toy_receipt(40, {}, first.sampling.seed, {}, 1);
  EXPECT_NE(first.tokens, second.tokens);
  EXPECT_EQ(verdict(second), "");
  for (const uint64_t other : {0ull, 2ull, 1ull << 32}) {
    Receipt r = second;
    r.sampling.stream = other;
    EXPECT_EQ(verdict(r).substr(0, 14), "output.tokens[");
  }
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
  auto v = verify(claimed, mine, [](auto, auto, auto&) -> Status { return bad_input("must not run"); });
  ASSERT_TRUE(v);
  EXPECT_EQ(fields_of(v->findings), "model.config");
}

TEST(Verify, ErrorsOfTheComputationPassThrough) {
  const Receipt r = toy_receipt(6, {});
  auto failing =
      verify(r, r, [](auto, auto, auto&) -> Status { return bad_input("token id 99 is out of range"); });
  ASSERT_FALSE(failing);
  EXPECT_EQ(failing.error().message, "token id 99 is out of range");
  auto silent = verify(r, r, [](auto, auto, auto&) -> Status { return {}; });
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().message, "verify: 0 of 6 logits rows came");
}

// receipt.23: steps that nobody but the verifier chooses, and no row but theirs is asked for.
TEST(Verify, SpotStepsFollowFromHashAndSalt) {
  const Receipt r = toy_receipt(40, {});
  std::set<std::vector<int64_t>> chosen;
  for (const char* salt : {"a", "b", "c", "d"}) {
    const auto steps = select_steps(r, {.spot = 5, .salt = salt});
    ASSERT_TRUE(steps);
    EXPECT_EQ(steps->size(), 5u);
    EXPECT_TRUE(std::is_sorted(steps->begin(), steps->end()));
    EXPECT_EQ(*steps, *select_steps(r, {.spot = 5, .salt = salt}));
    EXPECT_NE(*steps, *select_steps(toy_receipt(40, {}, 9), {.spot = 5, .salt = salt}));
    chosen.insert(*steps);
  }
  EXPECT_EQ(chosen.size(), 4u);
  EXPECT_EQ(select_steps(r, {})->size(), 40u);
  EXPECT_EQ(*select_steps(r, {.range = std::pair(3, 6)}), (std::vector<int64_t>{3, 4, 5}));
  for (const StepSelection& bad :
       {StepSelection{.spot = 41}, StepSelection{.range = std::pair(6, 6)},
        StepSelection{.range = std::pair(-1, 2)}, StepSelection{.range = std::pair(0, 41)}})
    EXPECT_EQ(select_steps(r, bad).error().code, Code::bad_input);
}

TEST(Verify, ASpotCheckFindsWhatItLooksAtAndNothingElse) {
  const Receipt good = toy_receipt(12, {});
  const StepSelection selection{.spot = 4, .salt = "s"};
  const std::vector<int64_t> steps = *select_steps(good, selection);
  for (int64_t i = 0; i < 12; ++i) {
    // The forged receipt has another hash, so the selection of the good one is passed on as ranges.
    Receipt r = good;
    r.logits[static_cast<size_t>(i)][0] ^= 1;
    std::string found;
    for (const int64_t step : steps)
      found +=
          fields_of(verify(r, toy_receipt(), toy_forward, 0, {.range = std::pair(step, step + 1)})->findings);
    const bool looked_at = std::find(steps.begin(), steps.end(), i) != steps.end();
    EXPECT_EQ(found, looked_at ? "output.logits[" + std::to_string(i) + "]" : "");
  }
  size_t fed = 0;
  std::vector<int64_t> asked;
  const auto v = verify(
      good, toy_receipt(),
      [&](std::span<const int32_t> tokens, std::span<const int64_t> positions, const auto& deliver) {
        fed = tokens.size(), asked.assign(positions.begin(), positions.end());
        for (const int64_t at : positions)
          deliver(Rows{at, 1, testing::toy_row(tokens.first(static_cast<size_t>(at) + 1))});
        return Status();
      },
      0, selection);
  ASSERT_TRUE(v);
  EXPECT_EQ(v->steps_compared, 4);
  EXPECT_EQ(fed, good.prompt_tokens.size() + static_cast<size_t>(steps.back()));
  ASSERT_EQ(asked.size(), 4u);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(asked[i], static_cast<int64_t>(good.prompt_tokens.size()) - 1 + steps[i]);
}

}  // namespace
}  // namespace invar::receipt
