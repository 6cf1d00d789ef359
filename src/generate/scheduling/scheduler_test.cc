// Requests that come and go while a scheduler runs: the others' receipts stay those of one request
// at a time.
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "generate/engine/engine.h"

#ifdef INVAR_COMPILER
namespace invar::generate {
namespace {

class SchedulerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ModelOptions where;
    where.model_name = INVAR_SOURCE_DIR "/models/shakespeare-4m";
    auto opened = Model::open(where, observer_);
    ASSERT_TRUE(opened) << opened.error().message;
    model_ = *opened;
    const std::pair<const char*, int64_t> asked[] = {{"ROMEO:", 24},  {"JULIET:", 3},        {"KING", 24},
                                                     {"O Romeo,", 9}, {"First Citizen:", 5}, {"A", 4}};
    for (const auto& [text, most] : asked) {
      RequestOptions options;
      options.sampling.max_new_tokens = most;
      auto settings = RequestSettings::make(*model_, options);
      ASSERT_TRUE(settings) << settings.error().message;
      auto made = Request::make(*model_, {text, std::nullopt}, *settings);
      ASSERT_TRUE(made) << made.error().message;
      requests_.push_back(std::move(*made));
    }
    auto engine = Engine::open(model_, {}, {.batch_size = 2}, requests_, observer_);
    ASSERT_TRUE(engine) << engine.error().message;
    engine_.emplace(std::move(*engine));
    ASSERT_EQ(engine_->session().sequences(), 2);
  }

  std::string alone(size_t i) {
    AnswerStream stream = engine_->stream(requests_[i], observer_);
    for (auto piece = stream.next(); piece && *piece;) piece = stream.next();
    const auto answer = stream.finish();
    return answer ? answer->receipt_hash : answer.error().message;
  }
  // The number and the receipt of the next answer; none: {SIZE_MAX, ""}.
  static std::pair<size_t, std::string> next(Scheduler& scheduler) {
    const auto complete = scheduler.next();
    if (!complete) return {SIZE_MAX, complete.error().message};
    if (!*complete) return {SIZE_MAX, ""};
    return {(*complete)->request, (*complete)->answer.receipt_hash};
  }

  Observer observer_;
  std::shared_ptr<Model> model_;
  std::vector<Request> requests_;
  std::optional<Engine> engine_;
};

TEST_F(SchedulerTest, RequestsComeAndGoWhileOthersRun) {
  const std::pair<size_t, std::string> none{SIZE_MAX, ""};
  std::vector<std::string> want;
  for (size_t i = 0; i < requests_.size(); ++i) want.push_back(alone(i));
  Scheduler scheduler(*engine_, observer_);
  EXPECT_EQ(next(scheduler), none);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(scheduler.add(requests_[i]), i);
  EXPECT_EQ(next(scheduler), std::pair(size_t{1}, want[1]));  // 0 runs, 2 waits
  scheduler.cancel(0), scheduler.cancel(2);
  scheduler.cancel(1), scheduler.cancel(0);  // nothing: answered, and gone already
  EXPECT_EQ(scheduler.add(requests_[3]), 3u);
  EXPECT_EQ(scheduler.add(requests_[4]), 4u);
  EXPECT_EQ(next(scheduler), std::pair(size_t{4}, want[4]));  // 3 runs
  EXPECT_EQ(scheduler.add(requests_[2]), 5u);                 // joins it, from the start
  EXPECT_EQ(next(scheduler), std::pair(size_t{3}, want[3]));
  EXPECT_EQ(next(scheduler), std::pair(size_t{5}, want[2]));
  EXPECT_EQ(next(scheduler), none);
  scheduler.add(requests_[5]);  // after a pause
  EXPECT_EQ(next(scheduler), std::pair(size_t{6}, want[5]));
  EXPECT_EQ(next(scheduler), none);
  scheduler.cancel(6);
}

// A cancelled request leaves no trace in the sequence that it had, and may be asked again.
TEST_F(SchedulerTest, ACancelledRequestCanBeAskedAgain) {
  const std::string want = alone(0);
  Scheduler scheduler(*engine_, observer_);
  for (const size_t i : {0, 1}) scheduler.add(requests_[i]);
  EXPECT_EQ(next(scheduler).first, 1u);
  scheduler.cancel(0);
  EXPECT_EQ(scheduler.add(requests_[0]), 2u);
  EXPECT_EQ(next(scheduler), std::pair(size_t{2}, want));
}

}  // namespace
}  // namespace invar::generate
#endif
