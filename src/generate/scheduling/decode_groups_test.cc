// Answers whose tokens are in flight by groups have the receipts of one request at a time, whoever
// comes, leaves and gives way meanwhile.
#include "generate/scheduling/decode_groups.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "generate/engine/engine.h"

#ifdef INVAR_COMPILER
namespace invar::generate {
namespace {

constexpr size_t kAnswers = 20;  // two groups
constexpr int64_t kPositions = 3 * run::Session::kPagePositions;

class DecodeGroupsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    Observer observer;
    ModelOptions where;
    where.model_name = INVAR_SOURCE_DIR "/models/shakespeare-4m";
    auto opened = Model::open(where, observer);
    ASSERT_TRUE(opened) << opened.error().message;
    model = new std::shared_ptr<Model>(*opened);
    alone = new std::vector<std::string>(receipts(0));
  }
  static void TearDownTestSuite() { delete model, delete alone; }

  // One at a time.
  static std::vector<std::string> receipts(int64_t most) {
    Observer observer;
    Engine one = engine("cpu", 1);
    std::vector<std::string> hashes;
    for (size_t i = 0; i < kAnswers; ++i) {
      Request asked = request(i, most);
      AnswerStream stream = one.stream(asked, observer);
      for (auto piece = stream.next(); piece && *piece;) piece = stream.next();
      const auto answer = stream.finish();
      hashes.push_back(answer ? answer->receipt_hash : answer.error().message);
    }
    return hashes;
  }
  // Some of them by chance. most: tokens; 0: 3 to 40.
  static Request request(size_t i, int64_t most = 0) {
    RequestOptions options;
    options.sampling.max_new_tokens = most ? most : static_cast<int64_t>(3 + i * 7 % 38);
    options.sampling.do_sample = i % 3 == 0;
    if (i % 3 == 0) options.sampling.temperature = 0.9f, options.sampling.seed = i;
    const std::string text = std::string(i % 5, 'A') + "ROMEO:\nWhat is " + std::to_string(i * i) + "?";
    auto settings = RequestSettings::make(**model, options);
    EXPECT_TRUE(settings) << settings.error().message;
    auto made = Request::make(**model, {text, std::nullopt}, *settings);
    EXPECT_TRUE(made) << made.error().message;
    return *std::move(made);
  }
  static Engine engine(const std::string& device, int64_t sequences, uint64_t memory = 0) {
    Observer observer;
    ExecutionOptions execution;
    execution.device = device, execution.kv_cache_memory_bytes = memory;
    auto made =
        Engine::open(*model, execution, {.batch_size = sequences, .positions = kPositions}, {}, observer);
    EXPECT_TRUE(made) << made.error().message;
    return *std::move(made);
  }
  // Steps until every answer is there, but for those that are cancelled. before: each step. others:
  // requests by number that are not those of the same number. Returns how many tokens steps
  // brought.
  static std::multiset<size_t> expect_receipts(Scheduler& scheduler,
                                               const std::function<void(int)>& before = {},
                                               const std::map<size_t, size_t>& others = {},
                                               const std::vector<std::string>& hashes = *alone) {
    std::map<size_t, size_t> tokens;
    std::multiset<size_t> sizes;
    for (int step = 0; scheduler.running() + scheduler.waiting() > 0; ++step) {
      if (before) before(step);
      auto done = scheduler.step();
      EXPECT_TRUE(done) << done.error().message;
      if (!done) break;
      EXPECT_TRUE(done->failed.empty());
      sizes.insert(done->tokens.size());
      for (const auto& token : done->tokens) ++tokens[token.request];
      for (const auto& [number, answer] : done->complete) {
        const size_t i = others.contains(number) ? others.at(number) : number;
        EXPECT_EQ(answer.receipt_hash, hashes[i]) << number;
        EXPECT_EQ(answer.receipt.tokens.size(), tokens[number]) << number;
      }
    }
    return sizes;
  }

  static std::shared_ptr<Model>* model;
  static std::vector<std::string>* alone;
  Observer observer;
};
std::shared_ptr<Model>* DecodeGroupsTest::model;
std::vector<std::string>* DecodeGroupsTest::alone;

TEST_F(DecodeGroupsTest, ReceiptsAreThoseOfOneAtATime) {
  Engine two = engine("cpu,cpu", kAnswers);
  ASSERT_EQ(two.session().groups(kAnswers), 2u);
  std::vector<Request> requests;
  for (size_t i = 0; i < kAnswers; ++i) requests.push_back(request(i));
  Scheduler scheduler(two, observer);
  for (Request& r : requests) scheduler.add(r);
  EXPECT_GE(expect_receipts(scheduler).count(kAnswers / 2), 2u);  // a group's step is one
  EXPECT_EQ(scheduler.figures().kv_cache_usage, 0);
}

TEST_F(DecodeGroupsTest, RequestsComeAndLeaveWhileOthersAreInFlight) {
  Engine two = engine("cpu,cpu", kAnswers);
  std::vector<Request> requests;
  for (size_t i = 0; i < kAnswers; ++i) requests.push_back(request(i));
  Request again = request(5);
  Scheduler scheduler(two, observer, 64);
  for (size_t i = 0; i < 18; ++i) scheduler.add(requests[i]);
  const auto before = [&](int step) {
    if (step == 4) scheduler.cancel(5), scheduler.cancel(16);
    if (step == 5) {
      EXPECT_EQ(scheduler.add(again), 18u);
    }
    if (step == 9) {
      EXPECT_EQ(scheduler.add(requests[19]), 19u);
    }
  };
  expect_receipts(scheduler, before, {{18, 5}});
}

TEST_F(DecodeGroupsTest, AnswersGiveWayWherePagesAreFew) {
  constexpr int64_t kMost = 2 * run::Session::kPagePositions;
  const uint64_t page = engine("cpu,cpu", 1).session().page_bytes();
  Engine few = engine("cpu,cpu", kAnswers, 42 * page);  // each needs three
  std::vector<Request> requests;
  for (size_t i = 0; i < kAnswers; ++i) requests.push_back(request(i, kMost));
  Scheduler scheduler(few, observer, 64);
  for (Request& r : requests) scheduler.add(r);
  EXPECT_GT(expect_receipts(scheduler, {}, {}, receipts(kMost)).count(kAnswers / 2), 0u);
  EXPECT_GT(scheduler.figures().preemptions, 0u);
}

TEST_F(DecodeGroupsTest, ASchedulerMayEndWithStepsInFlight) {
  Engine two = engine("cpu,cpu", kAnswers);
  std::vector<Request> requests;
  for (size_t i = 0; i < kAnswers; ++i) requests.push_back(request(i));
  {
    Scheduler scheduler(two, observer, 0);
    for (Request& r : requests) scheduler.add(r);
    for (int step = 0; step < 3; ++step) ASSERT_TRUE(scheduler.step());
  }
  Scheduler scheduler(two, observer, 0);
  for (Request& r : requests) scheduler.add(r);
  expect_receipts(scheduler);
}

}  // namespace
}  // namespace invar::generate
#endif
