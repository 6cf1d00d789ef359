// Tensor parallelism: a decoder whose partitions are divided among ranks computes the bytes that it
// computes on one.
#include <gmock/gmock.h>

#include <future>

#include "plan/stages.h"
#include "run/execute/joins/rank_joins.h"
#include "run/testing.h"
#include "run/weights_needed.h"

namespace invar::run {
namespace {

constexpr int kRankLayers = 3;

Options ranks(int count, int partitions = 1, int64_t sequences = 1) {
  Options o = options(2);
  o.ranks = count, o.partitions = partitions, o.sequences = sequences;
  return o;
}

class RanksTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { model = new TinyModel(true, kRankLayers); }
  static void TearDownTestSuite() { delete model; }
  static std::string refusal(Options o) {
    const auto s = Session::open(model->plan, model->folder, std::move(o));
    return s ? "opened" : s.error().message;
  }
  static TinyModel* model;
};
TinyModel* RanksTest::model;

TEST_F(RanksTest, SameBytesForEveryNumberAndPiece) {
  Session whole = open(*model, options(1, "reference"));
  const Logits truth = logits(whole, kTokens, true);
  for (const int n : {2, 4})  // of 4 query heads and 2 key heads
    for (const int partitions : {1, 2, 3})
      for (const int piece : kPieces) {
        SCOPED_TRACE(std::to_string(n) + " ranks, " + std::to_string(partitions) + " partitions, pieces of " +
                     std::to_string(piece));
        Session s = open(*model, ranks(n, partitions));
        EXPECT_TRUE(same_bytes(logits(s, piece, true), truth));
        s.reset();
        const Logits last = logits(s, piece, false);
        EXPECT_TRUE(same_bytes(std::span(last).last(kVocab), std::span(truth).last(kVocab)));
      }
}

TEST_F(RanksTest, JoinsWithinAStepHaveTheBytesOfJoinsBetweenStages) {
  Session whole = open(*model, options(1, "reference"));
  const Logits truth = logits(whole, kTokens, true);
  for (const int n : {2, 4})
    for (const int partitions : {1, 2, 3})
      for (const int piece : kPieces) {
        SCOPED_TRACE(std::to_string(n) + " ranks, " + std::to_string(partitions) + " partitions, pieces of " +
                     std::to_string(piece));
        Options o = ranks(n, partitions);
        o.joins = Options::Joins::within_steps;
        Session s = open(*model, o);
        EXPECT_TRUE(same_bytes(logits(s, piece, true), truth));
        s.reset();
        const Logits last = logits(s, piece, false);
        EXPECT_TRUE(same_bytes(std::span(last).last(kVocab), std::span(truth).last(kVocab)));
      }
}

// Steps that are recorded once, in changing sizes, as they recur in another order.
TEST_F(RanksTest, OnTwoGpusToo) {
  if (!Device::open(1)) GTEST_SKIP() << "no two GPUs here";
  Session whole = open(*model, options(1, "reference"));
  const Logits truth = logits(whole, kTokens, true);
  for (const auto joins : {Options::Joins::automatic, Options::Joins::between_stages}) {
    Options o = ranks(2);
    o.device = "cuda:0,cuda:1", o.joins = joins;
    Session s = open(*model, o);
    for (const int piece : {kTokens, 1, 64, 9, 7, 1, kTokens}) {
      s.reset();
      EXPECT_TRUE(same_bytes(logits(s, piece, true), truth)) << "piece " << piece;
      s.reset();
      EXPECT_TRUE(same_bytes(std::span<const float>(logits(s, piece, false)).last(kVocab),
                             std::span(truth).last(kVocab)));
    }
  }
  Options o = ranks(2, 1, kSequences);
  o.device = "cuda:0,cuda:1", o.joins = Options::Joins::within_steps;
  const std::vector<Logits> single = alone(*model);
  Session s = open(*model, o);
  for (int batch : {1, 3, 17, kSequences}) company_does_not_show(s, batch, single);
}

TEST_F(RanksTest, ARankThatJoinsWithinAStepIsOneStage) {
  const auto stages = plan::split(model->plan, 2, 2, true);
  ASSERT_TRUE(stages) << stages.error().message;
  ASSERT_EQ(stages->size(), 4U);
  size_t joins = 0;
  for (size_t s = 0; s < stages->size(); s += 2) {
    const plan::Stage &first = (*stages)[s], &second = (*stages)[s + 1];
    ASSERT_EQ(first.joins.size(), second.joins.size());
    for (size_t j = 0; j < first.joins.size(); ++j) EXPECT_EQ(first.joins[j].makers, second.joins[j].makers);
    joins += first.joins.size();
  }
  EXPECT_EQ(joins, 4U * kRankLayers + 2);
}

TEST(RankJoins, WhoWaitsForARankThatGaveUpIsTold) {
  RankJoins joins(2, 3);
  const auto meet_twice = [&] {
    const Status first = joins.meet();
    return first ? joins.meet(RankJoins::Then::started) : first;
  };
  auto other = std::async(std::launch::async, meet_twice);
  EXPECT_TRUE(meet_twice());
  EXPECT_TRUE(other.get());
  EXPECT_EQ(joins.base(), 4U);
  other = std::async(std::launch::async, [&] { return joins.meet(); });
  joins.give_up();
  EXPECT_FALSE(other.get());
  EXPECT_EQ(joins.meet().error().message, "tensor-parallel: another rank of the step failed");
  joins.restart();
  EXPECT_EQ(joins.base(), 7U);
  other = std::async(std::launch::async, meet_twice);
  EXPECT_TRUE(meet_twice());
  EXPECT_TRUE(other.get());
}

TEST_F(RanksTest, CompanyDoesNotShow) {
  const std::vector<Logits> truth = alone(*model, kCompany);
  for (const auto joins : {Options::Joins::automatic, Options::Joins::within_steps}) {
    Options o = ranks(2, 2, kSequences);
    o.joins = joins;
    Session s = open(*model, o);
    for (int batch : {1, 3, kCompany}) company_does_not_show(s, batch, truth);
    if (joins == Options::Joins::within_steps) groups_do_not_show(s, kCompany, truth);
  }
}

TEST_F(RanksTest, EachRankHasItsPartOfTheWeights) {
  auto stages = plan::split(model->plan, 1, 2), one = plan::split(model->plan, 1, 1);
  ASSERT_TRUE(stages) << stages.error().message;
  ASSERT_TRUE(measure_states(*stages) && measure_states(*one));
  const std::vector<plan::RankCost> costs = plan::rank_costs(*stages);
  ASSERT_EQ(costs.size(), 2U);
  const auto whole = plan::rank_costs(*one);
  for (const plan::RankCost& r : costs) EXPECT_LT(r.cost.products, whole[0].cost.products * 51 / 100);
  EXPECT_LT(costs[1].cost.weights, whole[0].cost.weights * 6 / 10);
  EXPECT_EQ(costs[0].cost.state, whole[0].cost.state / 2);
  // The rows of the embedding; heads, their projection, hidden, down of each layer; logits.
  EXPECT_EQ(costs[0].gathers, 4 * kRankLayers + 2);
  EXPECT_EQ(costs[1].gathers, 4 * kRankLayers + 1);
}

TEST_F(RanksTest, WhatIsNotCoveredIsRefusedByName) {
  EXPECT_EQ(
      refusal(ranks(3)),
      "tensor-parallel 3: attention has 4 query heads and 2 key heads: at most 2 ranks, or a multiple of "
      "it up to 4");
  EXPECT_EQ(refusal(ranks(0)), "tensor-parallel: 0 is below 1");
  Options o = ranks(2);
  o.device = "cpu,cpu,cpu";
  EXPECT_EQ(refusal(o), "3 devices are named for 1 partition of 2 ranks: name no more devices than ranks");
}

TEST_F(RanksTest, ADamagedWeightIsNamed) {
  const TinyModel damaged(true, kRankLayers);
  plan::Plan plan = damaged.plan;
  plan.weights.back().sha256[0] ^= 1;
  const auto s = Session::open(plan, damaged.folder, ranks(2));
  ASSERT_FALSE(s);
  EXPECT_THAT(s.error().message, testing::StartsWith("weight " + plan.weights.back().name + " in "));
}

}  // namespace
}  // namespace invar::run
