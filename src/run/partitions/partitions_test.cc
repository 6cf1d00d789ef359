// A decoder in partitions computes the bytes that it computes in one.
#include <gmock/gmock.h>

#include <fstream>

#include "run/testing.h"

namespace invar::run {
namespace {

constexpr int kLayers = 8;

Options parts(int partitions, int64_t sequences = 1) {
  Options o = options(2);
  o.partitions = partitions, o.sequences = sequences;
  return o;
}

class PartitionsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { model = new TinyModel(true, kLayers); }
  static void TearDownTestSuite() { delete model; }
  static std::string refusal(Options o, Code code = Code::bad_input) {
    const auto s = Session::open(model->plan, model->folder, std::move(o));
    if (s) return "opened";
    EXPECT_EQ(s.error().code, code);
    return s.error().message;
  }
  static TinyModel* model;
};
TinyModel* PartitionsTest::model;

TEST_F(PartitionsTest, SameBytesForEveryNumberAndPiece) {
  Session whole = open(*model, options(1, "reference"));
  const Logits truth = logits(whole, kTokens, true);
  for (int n = 1; n <= kLayers; ++n)
    for (const int piece : kPieces) {
      SCOPED_TRACE(std::to_string(n) + " partitions, pieces of " + std::to_string(piece));
      Session s = open(*model, parts(n));
      EXPECT_TRUE(same_bytes(logits(s, piece, true), truth));
      s.reset();
      const Logits last = logits(s, piece, false);
      const std::span<const float> of_last = std::span(truth).last(kVocab);
      EXPECT_TRUE(same_bytes(std::span(last).last(kVocab), of_last));
    }
}

TEST_F(PartitionsTest, ChunksOfAPromptOverlapWithoutEffect) {
  Session whole = open(*model, options());
  const Logits truth = logits(whole, kTokens, true);
  Options o = parts(3);
  o.chunk = 16;
  Session s = open(*model, o);
  EXPECT_TRUE(same_bytes(logits(s, kTokens, true), truth));
  s.reset(0, 40);
  EXPECT_EQ(s.position(), 40);
  const auto tokens = prompt();
  const auto rest = s.step(std::span(tokens).subspan(40), true);
  ASSERT_TRUE(rest) << rest.error().message;
  EXPECT_TRUE(same_bytes(*rest, std::span(truth).subspan(40 * kVocab)));
  some_rows_have_their_bytes(s, truth);
}

TEST_F(PartitionsTest, CompanyDoesNotShow) {
  const std::vector<Logits> truth = alone(*model, kCompany);
  for (int n : {2, 5}) {
    Session s = open(*model, parts(n, kSequences));
    for (int batch : {1, 3, kCompany}) company_does_not_show(s, batch, truth);
  }
}

// Where the list names the host several times, each place has a lane of its own.
TEST_F(PartitionsTest, GroupsInFlightDoNotShow) {
  const std::vector<Logits> truth = alone(*model, kCompany);
  for (const auto& [device, partitions] : {std::pair{"cpu,cpu", 2}, {"cpu,cpu,cpu", 5}}) {
    SCOPED_TRACE(device);
    Options o = parts(partitions, kCompany + 1);
    o.device = device;
    Session s = open(*model, o);
    EXPECT_EQ(s.groups(7), 1u);
    EXPECT_EQ(s.groups(16), 2u);
    groups_do_not_show(s, kCompany, truth);
    company_does_not_show(s, kCompany, truth);
  }
  Session one = open(*model, parts(2, kSequences));
  EXPECT_EQ(one.groups(kSequences), 1u);
  const NextToken token{0, 1};
  EXPECT_FALSE(one.start_many({&token, 1}));
}

// States of fixed size, which go by the stages' queues.
TEST(HybridPartitionsTest, GroupsInFlightDoNotShow) {
  const TinyModel hybrid(true, 4, /*hybrid=*/true);
  Options o = parts(2, kCompany + 1);
  o.device = "cpu,cpu";
  Session s = open(hybrid, o);
  groups_do_not_show(s, kCompany, alone(hybrid, kCompany));
}

// Several rounds: steps that recur are recorded.
TEST_F(PartitionsTest, GroupsInFlightOnTwoGpusToo) {
  if (!Device::open(1)) GTEST_SKIP() << "no two GPUs here";
  const std::vector<Logits> truth = alone(*model, kCompany);
  for (const int partitions : {2, 4}) {
    Options o = parts(partitions, kCompany + 1);
    o.device = "cuda:0,cuda:1";
    Session s = open(*model, o);
    for (const int batch : {kCompany, 2, kCompany - 1}) groups_do_not_show(s, batch, truth);
    company_does_not_show(s, kCompany, truth);
  }
}

TEST_F(PartitionsTest, RecomputedSequencesAreTheSame) {
  Session whole = open(*model, options());
  const Logits truth = logits(whole, 50, true);
  Options o = parts(4);
  o.use_cache = false;
  Session s = open(*model, o);
  EXPECT_TRUE(same_bytes(logits(s, 50, true), truth));
}

TEST_F(PartitionsTest, WeightsThatDoNotFitAreLoadedInEveryPass) {
  Session whole = open(*model, options());
  const Logits truth = logits(whole, 30, true);
  Options o = parts(0);
  o.weights_memory = 100000;  // of about 8 x 43 kB
  Session s = open(*model, o);
  EXPECT_TRUE(same_bytes(logits(s, 30, true), truth));
  EXPECT_TRUE(s.weights_unchanged());
  for (const auto& [partitions, ranks] : {std::pair{3, 1}, {1, 2}, {2, 2}}) {
    SCOPED_TRACE(std::to_string(partitions) + " partitions, " + std::to_string(ranks) + " ranks");
    Options divided = o;
    divided.partitions = partitions, divided.ranks = ranks;
    Session d = open(*model, divided);
    EXPECT_TRUE(same_bytes(logits(d, 7, true), truth));
    EXPECT_THAT(std::string(d.placement()),
                testing::StartsWith(partitions == 1 ? "layers 0-7 on" : "layers 0-"));
  }
  o.weights_memory = 1000;
  EXPECT_THAT(refusal(o), testing::StartsWith("weights-memory: 1000 bytes are less than the "));
}

TEST_F(PartitionsTest, WhatIsNotCoveredIsRefusedByName) {
  EXPECT_EQ(refusal(parts(9)),
            "9 partitions: the model has 8 layers, and a partition has at least one of them");
  EXPECT_EQ(refusal(parts(-1)), "partitions: -1 is below 1");
  Options o = parts(1);
  o.device = "cpu,cpu";
  EXPECT_EQ(refusal(o), "2 devices are named for 1 partition: name no more devices than partitions");
  o.device = "cpu,";
  EXPECT_EQ(refusal(o), "device 'cpu,': names, comma separated, such as cuda:0,cuda:1");
  const TinyModel stateless(false);
  const auto s = Session::open(stateless.plan, stateless.folder, parts(2));
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().message, "the plan has no memory between steps, so its layers are not known");
}

TEST_F(PartitionsTest, ADamagedWeightOfAnyPartIsNamed) {
  const TinyModel damaged(true, kLayers);
  const plan::Weight* last = nullptr;
  for (const plan::Weight& w : damaged.plan.weights)
    if (w.name == "7.down") last = &w;
  std::fstream file(damaged.folder + "/" + last->file, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(last->offset)), file.put('x'), file.close();
  const auto s = Session::open(damaged.plan, damaged.folder, parts(4));
  ASSERT_FALSE(s);
  EXPECT_THAT(s.error().message, testing::StartsWith("weight 7.down in "));
}

}  // namespace
}  // namespace invar::run
