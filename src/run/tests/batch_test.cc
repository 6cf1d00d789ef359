// Batched decoding: a sequence gets the bytes that it gets alone, whichever sequences share its
// step.
#include <optional>

#include "base/opset.h"
#include "kernels/registry.h"
#include "run/partitions/prompt_passes.h"
#include "run/testing.h"

namespace invar::run {
namespace {

Options many(int64_t sequences, int threads = 1, std::string isa = "") {
  Options o = options(threads, std::move(isa));
  o.sequences = sequences;
  return o;
}

class SequencesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { model = new TinyModel; }
  static void TearDownTestSuite() { delete model; }
  static TinyModel* model;
};
TinyModel* SequencesTest::model;

TEST_F(SequencesTest, CompanyDoesNotShow) {
  const std::vector<Logits> truth = alone(*model);
  for (std::string_view isa : ops::isas()) {
    for (int threads : kThreads) {
      Session s = open(*model, many(kSequences, threads, std::string(isa)));
      for (int batch : {1, 2, 3, 17, kSequences}) {
        if (isa == "reference" && batch > 3) continue;  // slow
        SCOPED_TRACE(std::string(isa) + ", threads " + std::to_string(threads));
        company_does_not_show(s, batch, truth);
      }
    }
  }
}

TEST_F(SequencesTest, PromptsOfSmallChunks) {
  const std::vector<Logits> truth = alone(*model, 17);
  for (int64_t chunk : {1, 7, 40}) {
    Options o = many(17, 2);
    o.chunk = chunk;
    Session s = open(*model, o);
    company_does_not_show(s, 17, truth);
  }
}

// Similar lengths share a pass, and padding stays before the longest end.
TEST(PromptPassesTest, SimilarLengthsShareAPass) {
  const std::vector<int32_t> tokens(100, 3);
  const auto of = [&](int64_t sequence, size_t count) {
    return NewTokens{sequence, std::span(tokens).first(count)};
  };
  const NewTokens prompts[] = {of(0, 8), of(1, 2), of(2, 6), of(3, 45), of(4, 7)};
  const int64_t position[] = {0, 3, 45, 0, 0};  // sequence 2 ends last, at 51
  const PromptPasses all(prompts, position, 20);
  std::string shown;
  for (size_t p = 0; p < all.passes().size(); ++p) {
    const StagePass& pass = all.passes()[p];
    EXPECT_FALSE(pass.tail);
    shown += std::to_string(pass.rows()) + ":";
    for (const ops::Sequence& s : pass.sequences)
      shown += " " + std::to_string(s.slot) + "@" + std::to_string(s.past);
    shown += " (" + std::to_string(all.tokens(p)) + ")\n";
  }
  EXPECT_EQ(shown, "20: 3@0 (20)\n20: 3@20 (20)\n8: 0@0 4@0 (15)\n6: 2@45 3@40 (11)\n2: 1@3 (2)\n");
  EXPECT_EQ(all.tokens(), 68);
}

TEST_F(SequencesTest, ASequenceIsForgottenAlone) {
  Session s = open(*model, many(2)), one = open(*model, options());
  const int32_t a[] = {5, 6, 7}, b[] = {9};
  ASSERT_TRUE(s.step(a, false, 0));
  ASSERT_TRUE(s.step(a, false, 1));
  s.reset(1);
  EXPECT_EQ(s.position(0), 3);
  EXPECT_EQ(s.position(1), 0);
  const auto found = s.step(b, false, 1), expected = one.step(b);
  ASSERT_TRUE(found && expected);
  EXPECT_TRUE(same_bytes(*found, *expected));
}

TEST_F(SequencesTest, SequencesSharePages) {
  Session one = open(*model, options());
  const Logits truth = logits(one, kTokens, true);
  for (std::string_view isa : ops::isas()) {
    Session s = open(*model, many(3, 2, std::string(isa)));
    sequences_share_pages(s, truth);
  }
}

TEST_F(SequencesTest, PartsSharePagesAlike) {
  const TinyModel layers(true, 4);
  Session one = open(layers, options());
  const Logits truth = logits(one, kTokens, true);
  for (const auto& [partitions, ranks] : {std::pair{2, 1}, {4, 1}, {1, 2}, {2, 2}}) {
    SCOPED_TRACE(std::to_string(partitions) + " partitions, " + std::to_string(ranks) + " ranks");
    Options o = many(3, 2);
    o.partitions = partitions, o.ranks = ranks;
    Session s = open(layers, o);
    for (int round = 0; round < 2; ++round) sequences_share_pages(s, truth);
    o.state_memory = 5 * s.page_bytes() - 1;
    Session bounded = open(layers, o);
    EXPECT_EQ(bounded.most_pages(), 4);
    sequences_share_pages(bounded, truth);
    for (const int64_t sequence : {0, 1}) ASSERT_TRUE(bounded.step(prompt(), false, sequence));
    EXPECT_FALSE(bounded.step(prompt(), false, 2));
    EXPECT_EQ(bounded.used_pages(), 4);
    EXPECT_FALSE(bounded.has_room(1));
    bounded.reset(1);
    EXPECT_TRUE(bounded.step(prompt(), false, 2));
  }
}

// What is computed anew in every step has no pages to share.
TEST_F(SequencesTest, WithoutMemoryNothingIsShared) {
  Options o = options();
  o.use_cache = false;
  EXPECT_FALSE(open(*model, o).shares_pages());
  o.state_memory = uint64_t{1} << 30;
  const auto refused = Session::open(model->plan, model->folder, o);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::not_covered);
}

TEST_F(SequencesTest, TheMemoryOfKeysAndValuesIsBounded) {
  const std::vector<int32_t> tokens = prompt();
  const auto page_bytes = open(*model, many(2)).page_bytes();
  Options o = many(2);
  o.state_memory = 3 * page_bytes;
  Session s = open(*model, o);
  EXPECT_EQ(s.most_pages(), 3);
  ASSERT_TRUE(s.step(tokens, false, 0));
  const auto refused = s.step(tokens, false, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "the memory of keys and values has 3 pages, and all are in use");
  s.reset(1), s.reset(0);
  EXPECT_TRUE(s.step(tokens, false, 1));
  o.state_memory = page_bytes;
  const auto none = Session::open(model->plan, model->folder, o);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "--kv-cache-memory-bytes " + std::to_string(page_bytes) +
                                      " holds 128 positions, and one sequence has 150, which take " +
                                      std::to_string(2 * page_bytes) +
                                      " bytes: give more, or a smaller context");
}

TEST_F(SequencesTest, BadUseIsRefused) {
  Session s = open(*model, many(3));
  auto message = [&](std::vector<NextToken> next) {
    const auto r = s.step_many(next);
    return r ? "accepted" : r.error().message;
  };
  EXPECT_EQ(message({}), "a step needs at least one token");
  EXPECT_EQ(message({{3, 1}}), "there is no sequence 3; the session has 3");
  EXPECT_EQ(message({{0, 1}, {-1, 1}}), "there is no sequence -1; the session has 3");
  EXPECT_EQ(message({{2, 1}, {0, 1}, {2, 4}}), "sequence 2 stands in one step twice");
  EXPECT_EQ(message({{0, 1}, {1, 61}}),
            "token 61 at position 0 of sequence 1 is outside the vocabulary of 61");
  ASSERT_TRUE(s.step(std::vector<int32_t>(kTokens, 2), false, 1));
  EXPECT_EQ(message({{0, 1}, {1, 1}}),
            "the memory of sequence 1 has 150 positions, 150 in use; 1 more do not fit");
  const int32_t two[] = {1, 1}, beyond[] = {1, 61};
  const auto appended = [&](std::vector<NewTokens> all) {
    const Status r = s.append_many(all);
    return r ? "accepted" : r.error().message;
  };
  EXPECT_EQ(appended({{0, two}, {2, {}}}), "a step needs at least one token");
  EXPECT_EQ(appended({{0, two}, {0, two}}), "sequence 0 stands in one step twice");
  EXPECT_EQ(appended({{0, two}, {2, beyond}}),
            "token 61 at position 1 of sequence 2 is outside the vocabulary of 61");
  EXPECT_EQ(s.position(0), 0);  // refused calls change nothing
  EXPECT_EQ(message({{0, 1}, {2, 1}}), "accepted");
}

std::string refusal(const plan::Plan& p, const TinyModel& m, Options o, Code code) {
  const auto s = Session::open(p, m.folder, std::move(o));
  if (s) return "opened";
  EXPECT_EQ(s.error().code, code) << s.error().message;
  return s.error().message;
}

TEST_F(SequencesTest, WhatMayMixSequencesIsRefusedByName) {
  EXPECT_EQ(refusal(model->plan, *model, many(0), Code::bad_input), "sequences must be 1 to 65536, not 0");
  Options o = many(2);
  o.use_cache = false;
  EXPECT_EQ(refusal(model->plan, *model, o, Code::not_covered),
            "several sequences need their memory between steps: run one sequence at a time");
  const TinyModel plain(false);
  EXPECT_EQ(refusal(plain.plan, plain, many(2), Code::not_covered),
            "several sequences need a plan with memory between steps: run one sequence at a time");

  // An operation that sums along the batch, and along the sequence.
  plan::Plan p = model->plan;
  size_t at = 0;
  while (p.nodes[at].op != "silu") ++at;
  p.nodes[at].op = "cumsum", p.nodes[at].version = op_info("cumsum")->version;
  p.nodes[at].attrs = {{"axis", int64_t{0}}, {"numerics", std::string(op_info("cumsum")->numerics)}};
  EXPECT_EQ(refusal(p, *model, many(1), Code::not_covered), "opened");
  EXPECT_EQ(refusal(p, *model, many(2), Code::not_covered),
            "operation " + std::to_string(at) +
                " of the plan, cumsum, does not keep sequences apart: run one sequence at a time");
  p.nodes[at].attrs["axis"] = int64_t{1};
  EXPECT_EQ(refusal(p, *model, many(2), Code::not_covered), "opened");

  // A constant batch of 1, in a value and in the inputs.
  p = model->plan;
  p.values[p.nodes[at].out[0]].shape[0] = {1, -1};
  EXPECT_EQ(
      refusal(p, *model, many(2), Code::not_covered),
      "operation " + std::to_string(at) +
          " of the plan, silu, does not keep sequences on the leading axis: run one sequence at a time");
  for (plan::Value& v : p.values)
    if (!v.shape.empty()) v.shape[0] = {1, -1};
  EXPECT_EQ(refusal(p, *model, many(1), Code::not_covered), "opened");
  EXPECT_EQ(refusal(p, *model, many(2), Code::not_covered),
            "the plan's input 'input_ids' does not have sequences on its leading axis: run one sequence at a "
            "time");
}

// A second session with the same weights reads those that the first has packed, also after it.
TEST_F(SequencesTest, PackedWeightsAreInMemoryOnce) {
  std::optional<Session> first = open(*model, many(1));
  const size_t alone = first->peak_bytes();
  const Logits truth = logits(*first, kTokens, true);
  Session second = open(*model, many(1));
  const bool packs = first->isa() == "avx2" || first->isa() == "avx512";
  if (packs) EXPECT_LT(second.peak_bytes(), alone);
  first.reset();
  EXPECT_TRUE(same_bytes(logits(second, kTokens, true), truth));
  second = open(*model, many(1));  // nobody else has them when it is closed
  EXPECT_TRUE(same_bytes(logits(second, kTokens, true), truth));
}

// A page has 128 positions of one sequence; one that is given back serves any other.
TEST_F(SequencesTest, PagesAreTakenWhenAStepNeedsThem) {
  Options o = many(3);
  o.capacity = 4096, o.chunk = 1;
  Session s = open(*model, o);
  const size_t empty = s.peak_bytes();
  const std::vector<int32_t> tokens(129, 1);
  ASSERT_TRUE(s.step(std::span(tokens).first(3)));
  const size_t page = s.peak_bytes() - empty;
  EXPECT_GT(page, 0u);
  const auto pages = [&] { return (s.peak_bytes() - empty) / page; };
  ASSERT_TRUE(s.step(std::span(tokens).first(125)));
  EXPECT_EQ(pages(), 1u);  // 128 positions
  ASSERT_TRUE(s.step(std::span(tokens).first(1)));
  EXPECT_EQ(pages(), 2u);
  ASSERT_TRUE(s.step(tokens, false, 1));
  EXPECT_EQ(pages(), 4u);
  s.reset(0, 128);
  s.reset(1);
  ASSERT_TRUE(s.step(tokens, false, 2));  // those of sequence 1
  ASSERT_TRUE(s.step(std::span(tokens).first(1)));
  EXPECT_EQ(pages(), 4u);
}

// The second layer attends to the keys and values of the first (decoder.36).
TEST(SharedKeysTest, LayersThatShareKeysHaveOneState) {
  const TinyModel two(true, 2);
  plan::Plan shared = two.plan;
  std::vector<plan::Node*> attention;
  for (plan::Node& n : shared.nodes)
    if (n.state >= 0) attention.push_back(&n);
  ASSERT_EQ(attention.size(), 2u);
  for (size_t i : {1, 2}) {
    attention[1]->in[i] = attention[0]->in[i];
    shared.values[attention[0]->in[i].index].slot = shared.slots++;  // it lives longer now
  }
  plan::Plan apart = shared;  // no query sees more than it did
  for (plan::Node& n : apart.nodes)
    if (n.state == attention[1]->state) n.attrs["left"] = int64_t{1} << 20;
  const auto run = [&](const plan::Plan& plan, int64_t chunk) {
    Options o = options(2);
    o.chunk = chunk;
    auto s = Session::open(plan, two.folder, o);
    EXPECT_TRUE(s) << s.error().message;
    const size_t empty = s->peak_bytes();
    Logits found = logits(*s, kTokens, true);
    const size_t of_logits = found.size() * sizeof(found[0]);
    return std::pair(std::move(found), s->peak_bytes() - empty - of_logits);
  };
  const size_t state = run(shared, 1).second;  // longer chunks need memory beside
  EXPECT_GT(state, 0u);
  for (int64_t chunk : {1, 7, 64, kTokens}) {
    const auto [one, bytes] = run(shared, chunk);
    const auto [both, more] = run(apart, chunk);
    EXPECT_TRUE(same_bytes(one, both)) << chunk;
    EXPECT_EQ(more - bytes, state) << chunk;
  }
}

TEST_F(SequencesTest, TooMuchMemoryIsRefusedWithSizes) {
  Options o = many(1 << 16);
  o.capacity = 1 << 28, o.chunk = 1;
  const std::string wrong = refusal(model->plan, *model, o, Code::bad_input);
  EXPECT_NE(wrong.find("memory between steps (65536 x 268435456 positions)"), std::string::npos) << wrong;
}

}  // namespace
}  // namespace invar::run
