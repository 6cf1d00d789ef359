// States of fixed size: a decoder with a causal convolution and linear attention next to attention
// has the same bytes however steps, threads, sequences, partitions and ranks cut it, and goes back
// where it can.
#include "kernels/registry.h"
#include "run/execute/snapshot_positions.h"
#include "run/testing.h"

namespace invar::run {
namespace {

constexpr int kHybridLayers = 4;

class FixedStatesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    model = new TinyModel(true, kHybridLayers, /*hybrid=*/true);
    Session s = open(*model, options(1, "reference"));
    truth = new Logits(logits(s, kTokens, true));
  }
  static void TearDownTestSuite() {
    delete model;
    delete truth;
  }
  static void continues(Session& s, int64_t from) {
    const auto tokens = prompt();
    const auto rest = s.step(std::span(tokens).subspan(static_cast<size_t>(from)), true);
    ASSERT_TRUE(rest) << rest.error().message;
    EXPECT_TRUE(same_bytes(*rest, std::span(*truth).subspan(static_cast<size_t>(from * kVocab))));
  }
  static TinyModel* model;
  static Logits* truth;  // all positions, reference rows, one thread, one chunk
};
TinyModel* FixedStatesTest::model;
Logits* FixedStatesTest::truth;

// A single state of pages would hide a wrong place of the other.
TEST_F(FixedStatesTest, TheModelHasBothKinds) {
  std::vector<std::string> stateful;
  for (const plan::Node& n : model->plan.nodes)
    if (n.state >= 0) stateful.push_back(n.op);
  EXPECT_EQ(stateful,
            (std::vector<std::string>{"causal_conv", "attention", "gated_linear_attention", "attention"}));
  EXPECT_TRUE(std::ranges::all_of(*truth, [](float f) { return f == f; }));
  const TinyModel plain(true, kHybridLayers);
  Session s = open(plain, options());
  EXPECT_FALSE(same_bytes(logits(s, kTokens, true), *truth));
}

TEST_F(FixedStatesTest, SameBytesForEveryInstructionSetThreadCountAndPiece) {
  for (std::string_view isa : ops::isas())
    for (int threads : kThreads) {
      Session s = open(*model, options(threads, std::string(isa)));
      for (int piece : kPieces) {
        EXPECT_EQ(s.reset(), 0);
        EXPECT_TRUE(same_bytes(logits(s, piece, true), *truth))
            << isa << ", threads " << threads << ", piece " << piece;
      }
    }
}

TEST_F(FixedStatesTest, SameBytesForEveryChunk) {
  for (int64_t chunk : {1, 7, 63, 64, 65})
    for (const bool cache : {true, false}) {
      Options o = options(2);
      o.chunk = chunk, o.use_cache = cache;
      Session s = open(*model, o);
      EXPECT_TRUE(same_bytes(logits(s, kTokens, true), *truth)) << chunk;
      s.reset();
      EXPECT_TRUE(same_bytes(logits(s, 50, true), *truth)) << chunk;
      some_rows_have_their_bytes(s, *truth);
    }
}

TEST_F(FixedStatesTest, WithoutStatesAllIsComputedAgain) {
  const TinyModel stateless(false, kHybridLayers, true);
  Session s = open(stateless, options(2));
  EXPECT_TRUE(same_bytes(logits(s, 50, true), *truth));
}

// A padded prompt would move the state behind its end.
TEST_F(FixedStatesTest, CompanyDoesNotShow) {
  const std::vector<Logits> of_one = alone(*model);
  for (int64_t chunk : {0, 7, 40}) {
    Options o = options(2);
    o.sequences = kSequences, o.chunk = chunk;
    Session s = open(*model, o);
    for (int batch : {1, 3, 17, kSequences}) company_does_not_show(s, batch, of_one);
  }
}

TEST_F(FixedStatesTest, PartitionsAndRanksDoNotShow) {
  const std::vector<Logits> of_one = alone(*model, kCompany);
  for (const auto& [partitions, ranks] : {std::pair{2, 1}, {kHybridLayers, 1}, {1, 2}, {2, 4}}) {
    SCOPED_TRACE(std::to_string(partitions) + " partitions, " + std::to_string(ranks) + " ranks");
    Options o = options(2);
    o.partitions = partitions, o.ranks = ranks, o.chunk = 16;
    Session s = open(*model, o);
    EXPECT_TRUE(same_bytes(logits(s, 64, true), *truth));
    EXPECT_EQ(s.reset(0, 147), 144);
    continues(s, 144);
    o.sequences = 17;
    Session many = open(*model, o);
    company_does_not_show(many, kCompany, of_one);
  }
}

// A session of one sequence goes back to the ends of its last two passes of several tokens.
TEST_F(FixedStatesTest, GoesBackToACopyAndGoesOn) {
  const auto tokens = prompt();
  Options o = options(2);
  o.chunk = 32;
  Session s = open(*model, o);
  ASSERT_TRUE(s.step(std::span(tokens).first(100)));  // passes end at 32, 64, 96, 99 and 100
  EXPECT_EQ(s.reset(0, 100), 100);
  continues(s, 100);  // at 132, 150
  EXPECT_EQ(s.reset(0, 149), 132);
  continues(s, 132);
  EXPECT_EQ(s.reset(0, 131), 0);
  continues(s, 0);  // the last passes: 128, 150
  EXPECT_EQ(s.reset(0, 140), 128);
  for (int i = 128; i < 140; ++i) {
    const auto one = s.step(std::span(tokens).subspan(static_cast<size_t>(i), 1));
    ASSERT_TRUE(one);
    EXPECT_TRUE(same_bytes(*one, std::span(*truth).subspan(static_cast<size_t>(i * kVocab), kVocab)));
  }
  EXPECT_EQ(s.reset(0, 139), 128);
  continues(s, 128);
  ASSERT_TRUE(s.resize(kTokens + 200));
  EXPECT_EQ(s.reset(0, 100), 0);
  continues(s, 0);
}

TEST_F(FixedStatesTest, OneOfSeveralSequencesBeginsAnew) {
  const auto tokens = prompt();
  Options o = options(2);
  o.sequences = 2;
  Session s = open(*model, o);
  for (int64_t i : {0, 1}) ASSERT_TRUE(s.step(std::span(tokens).first(90), false, i));
  EXPECT_EQ(s.reset(1, 89), 0);
  EXPECT_EQ(s.reset(0, 90), 90);
  const auto rest = s.step(std::span(tokens).subspan(90), false, 0);
  ASSERT_TRUE(rest);
  EXPECT_TRUE(same_bytes(*rest, std::span(*truth).last(kVocab)));
  const auto all = s.step(tokens, false, 1);
  ASSERT_TRUE(all);
  EXPECT_TRUE(same_bytes(*all, std::span(*truth).last(kVocab)));
}

// The table of embeddings lacks its last row, so the token that needs it fails within the step.
TEST_F(FixedStatesTest, AFailedStepLosesThem) {
  plan::Plan p = model->plan;
  plan::Weight table = p.weights[0];
  table.name = "without its last row", table.length -= table.length / static_cast<uint64_t>(kVocab);
  --table.shape[0];
  const auto gather = std::ranges::find(p.nodes, std::string("gather"), &plan::Node::op);
  gather->in[0].index = static_cast<int>(p.weights.size());
  p.weights.push_back(table);
  Options o = options();
  o.check_weights = false;
  auto s = Session::open(p, model->folder, o);
  ASSERT_TRUE(s) << s.error().message;
  const int32_t good[] = {1, 2, 3}, bad[] = {4, static_cast<int32_t>(kVocab) - 1};
  ASSERT_TRUE(s->step(good));
  EXPECT_FALSE(s->step(bad));
  const auto refused = s->step(good);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "an earlier step of sequence 0 failed, and its states are lost: reset it");
  EXPECT_EQ(s->position(), 3);
  EXPECT_EQ(s->reset(0, 3), 0);
  EXPECT_TRUE(s->step(good));
}

TEST(SnapshotPositionsTest, ShortStepsHaveCopiesOfTheirOwn) {
  SnapshotPositions p(true);
  EXPECT_EQ(p.ended(100, 100), 0);
  EXPECT_EQ(p.ended(101, 1), 2);
  EXPECT_EQ(p.ended(106, 5), 3);
  EXPECT_EQ(p.last(105), 101);
  EXPECT_EQ(p.go_back(103), 2);
  EXPECT_EQ(p.ended(107, 6), 3);
  EXPECT_EQ(p.ended(108, 1), 2);
  EXPECT_EQ(p.last(107), 107);
  EXPECT_EQ(p.last(106), 100);
  p.lose(), p.go_back(0);
  EXPECT_EQ(p.ended(1, 1), 2);
}

TEST(SnapshotPositionsTest, KeepsTheLastTwoAndForgetsWhatLiesBehind) {
  SnapshotPositions p;
  EXPECT_EQ(p.last(10), 0);
  EXPECT_EQ(p.ended(5, 5), 0);
  EXPECT_EQ(p.ended(9, 4), 1);
  EXPECT_EQ(p.ended(10, 1), -1);
  EXPECT_EQ(p.last(12), 10);
  EXPECT_EQ(p.last(9), 9);
  EXPECT_EQ(p.last(8), 5);
  EXPECT_EQ(p.last(4), 0);
  EXPECT_EQ(p.go_back(10), -1);  // it is there
  EXPECT_EQ(p.go_back(8), 0);
  EXPECT_EQ(p.last(9), 5);
  EXPECT_EQ(p.ended(20, 15), 1);
  EXPECT_EQ(p.go_back(3), -1);  // anew
  EXPECT_EQ(p.last(20), 0);
  p.ended(7, 7), p.lose();
  EXPECT_TRUE(p.lost());
  EXPECT_EQ(p.last(7), 0);
  p.go_back(0);
  EXPECT_FALSE(p.lost());
}

}  // namespace
}  // namespace invar::run
