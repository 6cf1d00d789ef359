// The lanes of a pipeline: what is in flight at once, and what becomes of it when a stage fails.
#include "run/partitions/pipeline_executor.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <map>
#include <set>

namespace invar::run {
namespace {

// What has happened, and waits for it.
class Events {
 public:
  void add(const std::string& event) {
    const std::lock_guard lock(mutex_);
    seen_.insert(event), changed_.notify_all();
  }
  bool wait_for(const std::string& event) {
    std::unique_lock lock(mutex_);
    constexpr std::chrono::seconds kNever{60};
    return changed_.wait_for(lock, kNever, [&] { return seen_.contains(event); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> seen_;
};

// Hands on ten times what it gets, or the token, plus its number. A pass begins with "STAGE:TOKEN"
// among the events, and goes on when the one is there that its token waits for.
class StepStage final : public Stage {
 public:
  StepStage(int number, Events& events, const std::map<std::string, std::string>& waits)
      : lane_("lane " + std::to_string(number)), number_(number), events_(events), waits_(waits) {}
  const std::string& lane() const override { return lane_; }
  std::shared_ptr<Device> device() const override { return nullptr; }
  bool has_memory() const override { return true; }
  bool has_fixed_states() const override { return false; }
  bool has_leading_sequences(int) const override { return true; }
  std::vector<std::string> kernels() const override { return {}; }
  std::vector<std::string> libraries() const override { return {}; }
  Status load() override { return {}; }
  Status reserve(int64_t, int64_t, int64_t) override { return {}; }
  Status forget(int64_t, int64_t) override { return {}; }
  Status begin(const StagePass& pass) override {
    token_ = pass.tokens[0], value_ = static_cast<float>(token_);
    return {};
  }
  Status hand_in(int, const Handover& h) override {
    value_ = *reinterpret_cast<const float*>(h.data());
    return {};
  }
  Status run(const std::function<void()>&) override {
    const std::string name = std::to_string(number_) + ":" + std::to_string(token_);
    events_.add(name);
    const auto wanted = waits_.find(name);
    if (wanted != waits_.end() && wanted->second == "fails") return bad_input("it fails");
    if (wanted != waits_.end() && !events_.wait_for(wanted->second))
      return bad_input(name + " waits for " + wanted->second);
    value_ = 10 * value_ + static_cast<float>(number_);
    return {};
  }
  Status hand_out(int, Handover& h) override {
    h.bytes = sizeof value_;
    if (!h.elsewhere && !h.memory.size()) {
      INVAR_TRY(h.memory, Allocation::make(h.bytes, "a number"));
    }
    std::memcpy(h.data(), &value_, h.bytes);
    return {};
  }
  Status read_output(int, size_t, const std::function<void(std::span<const std::byte>)>&) override {
    return bad_input("it hands out");
  }
  size_t bytes() const override { return 0; }
  Status weights_unchanged() override { return {}; }

 private:
  const std::string lane_;
  const int number_;
  Events& events_;
  const std::map<std::string, std::string>& waits_;
  int32_t token_ = 0;
  float value_ = 0;
};

// Two stages; value 0 goes from one to the other, and 1 is the logits.
class PipelineTest : public testing::Test {
 protected:
  void open() {
    std::vector<plan::Stage> parts(2);
    parts[0].segment.outputs = {0}, parts[1].segment.inputs = {0}, parts[1].segment.outputs = {1};
    for (plan::Stage& s : parts) s.segment.plan.outputs = {{"out", 0}};
    parts[0].feeding_outputs = {0};
    DecoderPorts ports;
    ports.logits = 1;
    std::vector<std::unique_ptr<Stage>> stages;
    for (int i = 0; i < 2; ++i) stages.push_back(std::make_unique<StepStage>(i, events, waits));
    auto made = Pipeline::make(std::move(stages), parts, ports);
    ASSERT_TRUE(made);
    pipeline = *std::move(made);
  }
  void start(int32_t token) {
    tokens[token] = token;
    StagePass pass{{&tokens[token], 1}, {&sequence, 1}};
    pass.logits = reinterpret_cast<std::byte*>(&results[token]);
    pipeline->start(pass);
  }
  Events events;
  std::map<std::string, std::string> waits;  // those of passes, which the stages look up
  ops::Sequence sequence{0, 0};
  int32_t tokens[8] = {};
  float results[8] = {};
  std::unique_ptr<Pipeline> pipeline;
};

// Groups A and B make the tokens 1, 3 and 2, 4. Each stage waits for the other one in its pass, so
// nothing ends unless both groups are in flight, B before anybody takes A, and A again before
// anybody takes B.
TEST_F(PipelineTest, TwoGroupsAreInFlightAtOnce) {
  waits = {{"1:1", "0:2"}, {"0:2", "1:1"}, {"1:2", "0:3"}, {"0:3", "1:2"}};
  open();
  EXPECT_EQ(pipeline->groups(), 2u);
  start(1), start(2);
  EXPECT_TRUE(pipeline->take());
  EXPECT_EQ(results[1], 101);
  start(3);
  EXPECT_EQ(pipeline->in_flight(), 2u);
  EXPECT_TRUE(pipeline->take());
  EXPECT_EQ(results[2], 201);
  start(4);
  EXPECT_TRUE(pipeline->take() && pipeline->take());
  EXPECT_EQ(results[3], 301);
  EXPECT_EQ(results[4], 401);
  EXPECT_EQ(pipeline->in_flight(), 0u);
}

TEST_F(PipelineTest, CallsOfRunGoBetweenThem) {
  open();
  for (int round = 0; round < 3; ++round) {
    start(1), start(2);
    pipeline->rest();
    EXPECT_EQ(results[1] + results[2], 302);
    EXPECT_TRUE(pipeline->take() && pipeline->take());
    const int32_t all[] = {5, 6, 7};
    std::vector<StagePass> passes;
    for (const int32_t& token : all) passes.push_back({{&token, 1}, {&sequence, 1}});
    std::vector<float> found;
    const Status ran = pipeline->run(passes, {}, [&](size_t, size_t, std::span<const float> logits) {
      found.insert(found.end(), logits.begin(), logits.end());
    });
    EXPECT_TRUE(ran);
    EXPECT_EQ(found, (std::vector<float>{501, 601, 701}));
  }
}

TEST_F(PipelineTest, AFailureEndsAllThatIsInFlight) {
  waits = {{"1:1", "fails"}};
  open();
  start(1), start(2);
  const Status taken = pipeline->take();
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().message, "it fails");
  EXPECT_EQ(pipeline->in_flight(), 0u);
  start(3), start(4);
  EXPECT_TRUE(pipeline->take());
  EXPECT_EQ(results[3], 301);
  pipeline->abandon();
  EXPECT_EQ(pipeline->in_flight(), 0u);
  start(5);
  EXPECT_TRUE(pipeline->take());
  EXPECT_EQ(results[5], 501);
}

}  // namespace
}  // namespace invar::run
