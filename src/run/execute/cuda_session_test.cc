// Sessions on a GPU: the bytes of the host, however a prompt is chunked. Without a GPU these tests
// are skipped, or fail if the build was promised one (INVAR_GPU).
#include <fstream>

#include "base/file/file.h"
#include "base/opset.h"
#include "device/device.h"
#include "run/testing.h"

namespace invar::run {
namespace {

Options on_device(int64_t capacity = kTokens) {
  Options o = options(2);
  o.device = "cuda", o.capacity = capacity;
  return o;
}

class OnDevice : public testing::Test {
 protected:
  void SetUp() override { take_gpu(device_); }
  std::shared_ptr<Device> device_;
  const TinyModel model;
};

TEST_F(OnDevice, SameBytesAsTheHostForEveryPiece) {
  Session host = open(model, options(1, "reference"));
  const Logits truth = logits(host, kTokens, true);
  for (int64_t capacity : {int64_t{kTokens}, int64_t{1000}}) {
    Session s = open(model, on_device(capacity));
    EXPECT_EQ(s.isa(), "cuda");
    EXPECT_EQ(s.device().substr(0, 7), "cuda:0 ");
    for (const std::string& k : s.kernels()) EXPECT_TRUE(k.ends_with(" cuda")) << k;
    for (int piece : {kTokens, 130, 9, 7, 1}) {
      // Graphs are recorded, then replayed. A kernel that does not wait for its predecessors fails
      // in some rounds only.
      for (int round = 0; round < (piece == 1 ? 30 : 2); ++round) {
        s.reset();
        EXPECT_TRUE(same_bytes(logits(s, piece, true), truth)) << "piece " << piece << ", round " << round;
      }
      s.reset();
      EXPECT_TRUE(same_bytes(std::span<const float>(logits(s, piece, false)).last(kVocab),
                             std::span(truth).last(kVocab)))
          << "last rows, piece " << piece;
    }
  }
}

// Preparations while weights are on their way change no bit, and no place is too small.
TEST_F(OnDevice, WhatIsMadeReadyForTheFirstStepChangesNothing) {
  Session host = open(model, options(1, "reference"));
  const Logits truth = logits(host, kTokens, true);
  for (int64_t wanted : {int64_t{0}, int64_t{1}, int64_t{9}, int64_t{kTokens}}) {
    Options o = on_device();
    o.first_rows = kTokens, o.first_wanted = wanted;
    Session s = open(model, o);
    for (int round = 0; round < 2; ++round) {
      s.reset();
      Logits last;
      const auto take = [&](int64_t, std::span<const float> rows) {
        last.insert(last.end(), rows.begin(), rows.end());
      };
      ASSERT_TRUE(s.step_rows(prompt(), std::max<int64_t>(wanted, 1), take));
      EXPECT_TRUE(same_bytes(last, std::span(truth).last(last.size()))) << wanted;
      s.reset();
      EXPECT_TRUE(same_bytes(logits(s, 7, true), truth)) << wanted;
    }
  }
}

TEST_F(OnDevice, ResultsStayBesideTheNextStep) {
  Session s = open(model, on_device());
  for (int32_t token = 0; token < 20; ++token) {
    const auto logits = *s.step({&token, 1});
    const Logits truth(logits.begin(), logits.end());
    bool same[3] = {};
    s.parallel_for_overlapped(3, [&, logits](int i) { same[i] = same_bytes(logits, truth); });
    if (token % 3)
      s.finish_overlapped();
    else
      ASSERT_TRUE(s.step({&token, 1}));
    EXPECT_TRUE(same[0] && same[1] && same[2]) << token;
  }
  bool done = false;
  s.parallel_for_overlapped(1, [&](int) { done = true; });
  const int32_t none = -1;
  EXPECT_FALSE(s.step({&none, 1}));  // nothing is overlapped with a refused step
  EXPECT_TRUE(done);
}

// Rows that are left on the device come in pieces; graphs and whole downloads stand beside them.
TEST_F(OnDevice, SomeRowsHaveTheirBytes) {
  Session host = open(model, options(1, "reference"));
  const Logits truth = logits(host, kTokens, true);
  for (const bool cache : {true, false}) {
    Options o = on_device();
    o.use_cache = cache;
    Session s = open(model, o);
    for (int round = 0; round < 2; ++round) some_rows_have_their_bytes(s, truth);
  }
}

// Of several sequences the last row comes with many tokens before it, in one pass, and may be read
// beside the next step.
TEST_F(OnDevice, ALastRowComesWithItsTokens) {
  Session host = open(model, options(1, "reference"));
  const Logits truth = logits(host, kTokens, true);
  const std::vector<int32_t> tokens = prompt();
  Options o = on_device(400);
  o.sequences = 3;
  Session s = open(model, o);
  for (const size_t before : {0, 3, 130})
    for (const size_t end : {140, 150}) {
      s.reset(1);
      ASSERT_TRUE(before == 0 || s.step(std::span(tokens).first(before), false, 1));
      const auto last = s.step(std::span(tokens).subspan(before, end - before), false, 1);
      ASSERT_TRUE(last);
      const auto want = std::span(truth).subspan((end - 1) * kVocab, kVocab);
      bool same = false;
      s.parallel_for_overlapped(1, [&](int) { same = same_bytes(*last, want); });
      const NextToken next[] = {{0, 1}, {2, 3}};
      ASSERT_TRUE(s.step_many(next));
      EXPECT_TRUE(same) << before << " to " << end;
    }
}

TEST_F(OnDevice, CompanyDoesNotShow) {
  const std::vector<Logits> truth = alone(model);
  Options o = on_device(400);  // several bounds of past, each of whose graphs serves many positions
  o.sequences = kSequences;
  Session s = open(model, o);
  for (int round = 0; round < 2; ++round)
    for (int batch : {1, 2, 3, 17, kSequences}) company_does_not_show(s, batch, truth);
  o.capacity = kTokens;  // fewer positions than the rows of a pass of several sequences
  Session small = open(model, o);
  company_does_not_show(small, kSequences, truth);
}

// The profile exact16: products of the same rows are one kernel, which rounds the rows as a norm or
// an activation makes them, and adds a residual.
TEST_F(OnDevice, FusedStepsHaveTheBytesOfTheHost) {
  TinyModel exact(true, 2);
  for (plan::Node& n : exact.plan.nodes)
    if (n.op == "matmul" || n.op == "attention") {
      const OpInfo* info = op_info(n.op += "_exact16");
      n.version = info->version, n.attrs["numerics"] = std::string(info->numerics);
    }
  Session host = open(exact, options(1, "reference"));
  const Logits truth = logits(host, kTokens, true);
  Options o = on_device(400);
  o.sequences = kSequences;
  std::string explained;
  o.explain = [&explained](std::string_view text) { explained += text; };
  Session s = open(exact, o);
  EXPECT_NE(explained.find("fused into operation"), std::string::npos) << explained;
  for (int piece : {kTokens, 65, 8, 1}) {
    s.reset();
    EXPECT_TRUE(same_bytes(logits(s, piece, true), truth)) << "piece " << piece;
  }
  const std::vector<Logits> each = alone(exact);
  for (int batch : {1, 8, kSequences}) company_does_not_show(s, batch, each);
  o.sequences = 3;
  Session shares = open(exact, o);
  sequences_share_pages(shares, truth);
}

TEST_F(OnDevice, SequencesSharePages) {
  Session host = open(model, options(1, "reference"));
  const Logits truth = logits(host, kTokens, true);
  Options o = on_device(400);
  o.sequences = 3;
  Session s = open(model, o);
  EXPECT_EQ(s.most_pages(), 3 * 4);
  for (int round = 0; round < 2; ++round) sequences_share_pages(s, truth);
  o.state_memory = 4 * s.page_bytes();
  Session bounded = open(model, o);
  EXPECT_EQ(bounded.most_pages(), 4);
  sequences_share_pages(bounded, truth);
  for (const int64_t sequence : {0, 1}) ASSERT_TRUE(bounded.step(prompt(), false, sequence));
  const auto refused = bounded.step(prompt(), false, 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "the memory of keys and values has 4 pages, and all are in use");
  EXPECT_TRUE(bounded.has_room(0));
  EXPECT_FALSE(bounded.has_room(1));
}

TEST_F(OnDevice, WithoutMemoryTheSameBytes) {
  const TinyModel plain(false);
  Session host = open(plain, options(1, "reference")), s = open(plain, on_device());
  EXPECT_TRUE(same_bytes(logits(s, 50, true), logits(host, 50, true)));
  Options again = on_device();
  again.use_cache = false;
  Session t = open(model, again), u = open(model, options());
  EXPECT_TRUE(same_bytes(logits(t, 50, true), logits(u, 50, true)));
}

TEST_F(OnDevice, AnIndexThatNamesNothingIsNamed) {
  an_index_that_names_nothing_is_named(model, on_device());
}

TEST_F(OnDevice, AChangedByteIsFound) {
  const plan::Weight& w = model.plan.weights[0];
  const std::string path = model.folder + "/" + w.file;
  std::string bytes = *read_file(path);
  bytes[w.offset] ^= 1;
  std::ofstream(path, std::ios::binary) << bytes;
  const auto s = Session::open(model.plan, model.folder, on_device());
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code, Code::failed);
  EXPECT_EQ(s.error().message.find("weight " + w.name + " in " + path + ": its bytes have SHA-256 "), 0u)
      << s.error().message;
}

TEST_F(OnDevice, TooMuchMemoryIsRefusedWithNumbers) {
  Options o = on_device(int64_t{1} << 31);
  const auto s = Session::open(model.plan, model.folder, o);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code, Code::bad_input);
  EXPECT_NE(s.error().message.find("MiB free of"), std::string::npos) << s.error().message;
  EXPECT_TRUE(Session::open(model.plan, model.folder, on_device()));
}

TEST(Devices, WhatIsNotThereIsNamed) {
  const TinyModel model;
  for (const char* name :
       {"", "x", "abacus", "cuda:", "cuda:x", "cuda:1x", "cuda0", "cuda:-1", "cuda:4096"}) {
    Options o = options();
    o.device = name;
    const auto s = Session::open(model.plan, model.folder, o);
    ASSERT_FALSE(s) << name;
    EXPECT_EQ(s.error().code, Code::bad_input);
    EXPECT_EQ(s.error().message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace invar::run
