// What share of a step prompts get, by times of a GPU and without a clock.
#include "generate/scheduling/prompt_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace invar::generate {
namespace {

// Times of a model of 8B on a GPU, in milliseconds: a step of so many answers, a pass of so many
// tokens of prompts.
double ms_of_answers(int64_t answers) {
  return 4.6 + 0.1 * static_cast<double>(answers);
}
double ms_of_prompts(int64_t tokens) {
  return tokens ? 4.5 + static_cast<double>((tokens + 127) / 128) * 5 : 0;
}

TEST(PromptPaceTest, NeitherANewcomerNorTheOthersWaitLong) {
  PromptPace pace(2048, 128, 128);
  EXPECT_EQ(pace.tokens(3, 5, 1024), 2048);  // nothing is known
  for (const int64_t answers : {1, 8, 32, 64})
    pace.answers_took(static_cast<size_t>(answers), ms_of_answers(answers));
  EXPECT_EQ(pace.tokens(3, 5, 1024), 2048);
  for (const int64_t tokens : {128, 256, 512, 1023}) pace.prompts_took(tokens, ms_of_prompts(tokens));
  EXPECT_EQ(pace.tokens(1, 32, 1024), 256);
  EXPECT_EQ(pace.tokens(1, 64, 1024), 384);
  EXPECT_EQ(pace.tokens(1, 32, 100), 128);
  EXPECT_EQ(pace.tokens(1, 1, 1024), 128);    // the least
  EXPECT_EQ(pace.tokens(1, 128, 1024), 896);  // its rest brings the first token
  EXPECT_EQ(pace.tokens(8, 0, 1024), 2048);
  EXPECT_EQ(pace.tokens(0, 8, 1024), 2048);
  int64_t before = 0;
  for (size_t prompts = 1; prompts < 64; ++prompts) {  // the more come, the less they wait
    const int64_t tokens = pace.tokens(prompts, 64 - prompts, 1024);
    EXPECT_EQ(tokens % 128, 0);
    if (prompts > 16) {
      EXPECT_GE(tokens, before) << prompts;
    }
    before = tokens;
  }
  EXPECT_EQ(before, 2048);
}

// Where pages are more than a step, as on a small processor.
TEST(PromptPaceTest, ASmallStepIsDivided) {
  PromptPace pace(256, 128, 8);
  pace.answers_took(1, 1), pace.answers_took(16, 4), pace.prompts_took(255, 25.5);
  EXPECT_EQ(pace.tokens(1, 16, 240), 64);
  EXPECT_EQ(pace.tokens(1, 1, 240), 16);
  PromptPace least(3, 128, 8);
  least.answers_took(1, 1), least.prompts_took(3, 300);
  EXPECT_EQ(least.tokens(1, 1, 3), 1);
}

// The first step has other reasons to take long.
TEST(PromptPaceTest, ASlowFirstStepIsForgotten) {
  PromptPace pace(2048, 128, 128);
  pace.answers_took(1, 500), pace.prompts_took(100, 800);
  for (const int64_t answers : {16, 32, 64})
    pace.answers_took(static_cast<size_t>(answers), ms_of_answers(answers));
  for (const int64_t tokens : {256, 1023}) pace.prompts_took(tokens, ms_of_prompts(tokens));
  EXPECT_EQ(pace.tokens(1, 32, 1024), 256);
}

// 64 prompts of 1,024 tokens that come at once, each answered with 256: nine tenths of the rate of
// all prompts and then all answers. Beside half a load a newcomer waits less than twice its time
// alone, and the others less than three of their steps.
TEST(PromptPaceTest, ABurstIsNearlyABatch) {
  PromptPace pace(2048, 128, 0);
  const auto steps = [&](std::vector<std::pair<int64_t, int64_t>> all) {  // tokens of prompt and answer left
    double longest = 0, whole = 0, first = 0;  // milliseconds; until the first tokens of all
    while (!all.empty()) {
      const auto answers =
          static_cast<size_t>(std::ranges::count(all, 0, &std::pair<int64_t, int64_t>::first));
      int64_t left = pace.tokens(all.size() - answers, answers, 1024), taken = 0, next = 0;
      for (auto& [prompt, answer] : all) {
        const int64_t part = std::min(prompt, left);
        prompt -= part, left -= part, taken += part;
        if (prompt == 0) --answer, ++next;
      }
      if (taken) pace.prompts_took(taken, ms_of_prompts(taken));
      if (next) pace.answers_took(static_cast<size_t>(next), ms_of_answers(next));
      if (next) longest = std::max(longest, ms_of_prompts(taken) + ms_of_answers(next));
      whole += ms_of_prompts(taken) + (next ? ms_of_answers(next) : 0);
      if (taken && std::cmp_equal(next, all.size())) first = whole;
      std::erase_if(all, [](const auto& one) { return one.second == 0; });
    }
    return std::array{whole, longest, first};
  };
  const double batch = 32 * ms_of_prompts(2048) + 256 * ms_of_answers(64);
  EXPECT_LT(steps(std::vector(64, std::pair<int64_t, int64_t>(1024, 256)))[0], batch / 0.9);
  std::vector<std::pair<int64_t, int64_t>> half(32, {0, 40});
  half.emplace_back(1024, 1);
  const auto [whole, longest, first] = steps(half);
  EXPECT_LT(longest, 3 * ms_of_answers(32));
  EXPECT_LT(first, 2 * (ms_of_prompts(1024) + ms_of_answers(1)));
}

}  // namespace
}  // namespace invar::generate
