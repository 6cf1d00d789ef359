// Drafts of every quality leave tokens, commitments and the end of an answer as they are.
#include "generate/speculate/drafter.h"

#include <gtest/gtest.h>

#include <functional>

#include "generate/engine/generation_loop.h"
#include "run/tiny_model.h"

namespace invar::generate {
namespace {

using Change = std::function<int32_t(size_t position, int32_t token)>;

// Knows the answer, and says each of its tokens as `change` has it.
class Oracle final : public Drafter {
 public:
  Oracle(std::vector<int32_t> answer, Change change)
      : answer_(std::move(answer)), change_(std::move(change)) {}
  std::vector<int32_t> propose(const sample::Context& known, const sample::Params&, int64_t most) override {
    std::vector<int32_t> draft;
    for (size_t i = known.answer.size(); most-- > 0; ++i)
      draft.push_back(i < answer_.size() ? change_(i, answer_[i]) : 0);
    longest = std::max(longest, draft.size());
    return draft;
  }
  size_t longest = 0;

 private:
  const std::vector<int32_t> answer_;
  const Change change_;
};

int32_t right(size_t, int32_t token) {
  return token;
}
int32_t wrong(size_t, int32_t token) {
  return (token + 1) % static_cast<int32_t>(run::TinyModel::kVocab);
}

run::Session session_of(const run::TinyModel& model, bool goes_back, int64_t chunk = 0, int threads = 2) {
  run::Options o;
  o.capacity = 160, o.threads = threads, o.chunk = chunk, o.goes_back = goes_back;
  auto opened = run::Session::open(model.plan, model.folder, o);
  EXPECT_TRUE(opened) << opened.error().message;
  return *std::move(opened);
}

class DrafterTest : public testing::TestWithParam<bool> {
 protected:
  const run::TinyModel model{true, 4, GetParam()};
  const std::vector<int32_t> prompt = [] {
    std::vector<int32_t> tokens;
    for (int i = 0; i < 70; ++i) tokens.push_back((i * i + 3) % 59);
    return tokens;
  }();

  Generation answer(run::Session& session, const sample::Params& params, std::span<const int32_t> stops,
                    Drafter* drafter, int64_t most = 80, size_t kept = 0) const {
    GenerationLoop loop(session, {prompt, most, params, stops, {}, drafter}, kept);
    std::vector<int32_t> given;
    for (auto token = loop.next(); token && *token; token = loop.next()) given.push_back(**token);
    EXPECT_TRUE(loop.complete());
    EXPECT_EQ(given, loop.generation().tokens);
    return loop.generation();
  }
  static void expect_same(const Generation& a, const Generation& b) {
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_TRUE(a.logits == b.logits);
    EXPECT_EQ(a.finish_reason, b.finish_reason);
  }
};

std::vector<sample::Params> settings() {
  sample::Params drawn{.do_sample = true, .temperature = 1.5f, .seed = 5}, penalties = drawn, greedy;
  penalties.processors.repetition_penalty = 1.3f, penalties.processors.no_repeat_ngram_size = 2;
  penalties.processors.min_new_tokens = 60;
  greedy.processors.forced_eos_token_id = {7};
  return {greedy, drawn, penalties};
}

TEST_P(DrafterTest, DraftsOfEveryQualityChangeNothing) {
  run::Session plain = session_of(model, false);
  const std::pair<const char*, Change> kinds[] = {
      {"right", right},
      {"wrong", wrong},
      {"every third wrong", [](size_t i, int32_t t) { return i % 3 == 2 ? wrong(i, t) : t; }},
      {"right later", [](size_t i, int32_t t) { return i < 40 ? wrong(i, t) : t; }}};
  for (const sample::Params& params : settings()) {
    const Generation want = answer(plain, params, {}, nullptr);
    ASSERT_EQ(want.tokens.size(), 80u);
    for (const auto& [name, change] : kinds)
      for (const auto& [chunk, threads] : {std::pair{0, 1}, {7, 2}, {1, 2}}) {
        SCOPED_TRACE(std::string(name) + ", chunk " + std::to_string(chunk));
        run::Session session = session_of(model, true, chunk, threads);
        Oracle oracle(want.tokens, change);
        const Generation made = answer(session, params, {}, &oracle);
        expect_same(made, want);
        if (chunk == 1) {  // no room for a draft in one pass
          EXPECT_EQ(made.drafted, 0);
        } else if (change(0, 0) == 0) {
          EXPECT_GT(made.accepted, 20);
        }
        if (std::string_view(name) == "right" && chunk == 0) {
          EXPECT_EQ(made.accepted, made.drafted);
          EXPECT_EQ(oracle.longest, static_cast<size_t>(DraftLength::kMost));
        }
        if (std::string_view(name) == "wrong") {
          EXPECT_EQ(made.accepted, 0);
        }
        // What the memory holds goes on where a draft ended.
        expect_same(answer(session, params, {}, &oracle, 80, prompt.size() - 1), want);
      }
  }
}

// An answer ends within an accepted draft, by a stop token and by its limit, and no token beyond is
// in the answer or in the memory.
TEST_P(DrafterTest, AnAnswerEndsWithinADraft) {
  run::Session plain = session_of(model, false), session = session_of(model, true);
  const sample::Params drawn = settings()[1];
  const std::vector<int32_t> whole = answer(plain, drawn, {}, nullptr).tokens;
  for (int64_t most = 1; most < 40; ++most) {
    Oracle oracle(whole, right);
    const Generation made = answer(session, drawn, {}, &oracle, most);
    expect_same(made, answer(plain, drawn, {}, nullptr, most));
    EXPECT_EQ(made.finish_reason, "length");
    EXPECT_LT(session.position(), static_cast<int64_t>(prompt.size()) + most);
  }
  for (size_t at : {1, 5, 6, 7, 20, 33}) {
    const int32_t stops[] = {whole[at]};
    Oracle oracle(whole, right);
    const Generation made = answer(session, drawn, stops, &oracle);
    expect_same(made, answer(plain, drawn, stops, nullptr));
    EXPECT_EQ(made.finish_reason, "stop");
    EXPECT_LE(session.position(), static_cast<int64_t>(prompt.size() + made.tokens.size()));
  }
}

INSTANTIATE_TEST_SUITE_P(StatesOf, DrafterTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "both_kinds" : "attention"; });

TEST(PromptDrafterTest, SaysWhatFollowedTheLongestMatch) {
  const auto drafter = prompt_drafter();
  const std::vector<int32_t> prompt = {1, 2, 3, 9, 2, 3, 8, 7, 1, 2}, answer = {3};
  const auto said = [&](std::span<const int32_t> made, int64_t most) {
    return drafter->propose({prompt, made, {}, 99}, {}, most);
  };
  EXPECT_EQ(said(answer, 3), (std::vector<int32_t>{9, 2, 3}));  // 1 2 3, not the later 2 3
  EXPECT_EQ(said(std::vector<int32_t>{3, 5}, 3), std::vector<int32_t>());
  EXPECT_EQ(said(std::vector<int32_t>{5, 6, 5, 6}, 5), (std::vector<int32_t>{5, 6, 5, 6, 5}));
  EXPECT_EQ(said({}, 2), (std::vector<int32_t>{3, 9}));
}

TEST(DraftLengthTest, GrowsPausesAndComesBack) {
  DraftLength length;
  EXPECT_EQ(length.next(), 4);
  length.took(4, 4);
  EXPECT_EQ(length.next(), 8);
  length.took(8, 8), length.took(15, 15);
  EXPECT_EQ(length.next(), DraftLength::kMost);
  length.took(15, 6);
  EXPECT_EQ(length.next(), 7);
  length.took(7, 0);
  EXPECT_EQ(length.next(), DraftLength::kLeast);
  length.took(3, 0);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(length.next(), 0);
  EXPECT_EQ(length.next(), DraftLength::kLeast);
  length.took(3, 3);
  EXPECT_EQ(length.next(), 6);
}

}  // namespace
}  // namespace invar::generate
