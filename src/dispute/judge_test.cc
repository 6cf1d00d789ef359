// Disputes about the tiny model: the honest party wins, whatever the other one does.
#include "dispute/judge.h"

#include "dispute/testing.h"
#include "run/tiny_model.h"

namespace invar::dispute {
namespace {

using testing::hold;
using testing::Party;

// The tiny model and a receipt of it: 5 tokens, and 8 that are picked from its logits.
struct Case {
  run::TinyModel model;
  receipt::Receipt receipt;

  explicit Case(int layers = 1, bool hybrid = false) : model(true, layers, hybrid) {
    receipt.numerics = "invar-1", receipt.operation_set = "reproducible", receipt.recipe = "tiny";
    receipt.prompt_tokens = {3, 1, 4, 1, 5};
    receipt.max_new_tokens = 8, receipt.finish_reason = "length";
    run::Options options;
    options.capacity = 16, options.threads = 1;
    auto session = run::Session::open(model.plan, model.folder, options);
    std::vector<int32_t> next = receipt.prompt_tokens;
    for (uint64_t step = 0; step < 8; ++step) {
      const auto row = session->step(next);
      receipt.logits.push_back(receipt::commit(*row));
      receipt.tokens.push_back(*receipt::pick_token(receipt, *row, step));
      next = {receipt.tokens.back()};
    }
  }
  Subject subject() const {
    run::Options options;
    options.threads = 1, options.chunk = 5;
    auto s = subject_of(receipt, receipt, model.plan, model.folder, options);
    EXPECT_TRUE(s) << s.error().message;
    return *std::move(s);
  }
  int value_of(const std::string& op) const {
    for (const plan::Node& n : model.plan.nodes)
      if (n.op == op) return n.out[0];
    return -1;
  }
};

TEST(Dispute, honest_party_wins) {
  const Case c;
  testing::honest_party_wins(c.subject(), INVAR_EMULATED ? 40 : 400, 1);
}

// Every operation of the plan, in its first and last element, and a row behind the first chunk.
void every_operation_is_judged(const Case& c) {
  const Subject s = c.subject();
  for (const plan::Node& n : s.plan.nodes) {
    const int64_t bytes = row_bytes(s.plan.values[static_cast<size_t>(n.out[0])]);
    for (const testing::Corruption& corruption :
         {testing::Corruption{n.out[0], 0, 0, 1}, {n.out[0], 11, bytes - 1, 64}}) {
      const Verdict v = hold(s, {}, {testing::corrupting(s.plan, corruption), {}});
      EXPECT_EQ(v.winner, Verdict::a) << n.op << "\n" << report(v);
      ASSERT_GE(v.details.size(), 4u) << n.op << report(v);
      EXPECT_EQ(v.details[0].second.substr(0, n.op.size()), n.op);
      EXPECT_EQ(v.details[2].second, std::to_string(corruption.row));
    }
  }
}

TEST(Dispute, every_operation) {
  every_operation_is_judged(Case());
}
TEST(Dispute, every_operation_of_a_model_with_states_of_fixed_size) {
  every_operation_is_judged(Case(3, /*hybrid=*/true));
}

// The kernels of the party and of the judge are different ones: the answers of one instruction set
// are those of another.
TEST(Dispute, answers_do_not_depend_on_the_machine) {
  const Case c;
  Subject s = c.subject(), other = s;
  other.options.isa = "reference", other.options.chunk = 13, other.options.threads = 2;
  const int attention = c.value_of("attention");
  EXPECT_EQ(print(*trace(s)), print(*trace(other)));
  EXPECT_EQ(print(*rows(s, attention)), print(*rows(other, attention)));
  EXPECT_EQ(print(*values(s, attention, 9)), print(*values(other, attention, 9)));
}

TEST(Dispute, both_dishonest) {
  const Case c;
  const Subject s = c.subject();
  const int v = c.value_of("silu");
  const Verdict verdict = hold(s, {testing::corrupting(s.plan, {v, 6, 8, 1}), {}},
                               {testing::corrupting(s.plan, {v, 6, 8, 2}), {}});
  EXPECT_EQ(verdict.winner, Verdict::nobody) << report(verdict);
}

// Equal traces: then the receipt follows from them or not.
TEST(Dispute, forged_receipt) {
  Case c;
  EXPECT_EQ(hold(c.subject(), {}, {}).winner, Verdict::a);
  c.receipt.tokens.back() = (c.receipt.tokens.back() + 1) % run::TinyModel::kVocab;
  Verdict v = hold(c.subject(), {}, {});
  EXPECT_EQ(v.winner, Verdict::b);
  EXPECT_NE(v.reason.find("output.tokens[7]"), std::string::npos) << v.reason;
  Case other;
  other.receipt.logits[2][0] ^= 1;
  v = hold(other.subject(), {}, {});
  EXPECT_EQ(v.winner, Verdict::b);
  EXPECT_NE(v.reason.find("output.logits[2]"), std::string::npos) << v.reason;
}

// Party b objects although the receipt holds: with a row that is not in the trace, or at a step
// that follows.
TEST(Dispute, false_objection) {
  const Case c;
  const Subject s = c.subject();
  Case forged;
  forged.receipt.logits[2][0] ^= 1;
  const Objection made_up = *objection(forged.subject());
  for (const bool other_row : {false, true}) {
    const Verdict v = hold(s, {}, {{}, [&](const Question& q, std::string text) {
                                     if (q.asks != "objection") return text;
                                     Objection o = made_up;
                                     o.of = s.of;
                                     if (other_row) o.logits[5] ^= 1;
                                     return print(o);
                                   }});
    EXPECT_EQ(v.winner, Verdict::a) << report(v);
  }
}

TEST(Dispute, silence_and_second_thoughts_lose) {
  const Case c;
  const Subject s = c.subject();
  const std::string honest = print(*trace(s));
  const std::string other = print(*trace(s, testing::corrupting(s.plan, {c.value_of("add"), 3, 1, 1})));
  auto silent = judge(s, Answers{{"a/1"}, {honest}}, Answers{}, nullptr, true);
  ASSERT_TRUE(silent);
  EXPECT_EQ(std::get<Verdict>(*silent).winner, Verdict::a);
  auto waits = judge(s, Answers{{"a/1"}, {honest}}, Answers{}, nullptr, false);
  ASSERT_TRUE(waits);
  EXPECT_EQ(std::get<Question>(*waits).asks, "trace");

  auto asked = judge(s, Answers{{"a/1"}, {honest}}, Answers{{"b/1"}, {other}});
  ASSERT_TRUE(asked);
  const Question q = std::get<Question>(*asked);
  EXPECT_EQ(q.asks, "rows");
  auto changed = judge(s, Answers{{"a/1"}, {honest}}, Answers{{"b/1"}, {honest}}, &q);
  ASSERT_TRUE(changed);
  EXPECT_EQ(std::get<Verdict>(*changed).winner, Verdict::a);
  EXPECT_NE(std::get<Verdict>(*changed).reason.find("changed its answer"), std::string::npos);
}

// Each round gets a file that cannot be read, and one that is longer than its question asks for.
TEST(Dispute, unreadable_and_endless_answers_lose) {
  const Case c;
  const Subject s = c.subject();
  const Party liar{testing::corrupting(s.plan, {c.value_of("add"), 3, 1, 1}), {}};
  for (const int64_t bad_round : {1, 2, 3}) {
    Answers a, b;
    hold(s, {}, liar, a, b);
    ASSERT_EQ(a.texts.size(), 3u);
    const auto until = [&](const Answers& all, int64_t count) {
      return Answers{{all.names.begin(), all.names.begin() + count},
                     {all.texts.begin(), all.texts.begin() + count}};
    };
    const dispute::Party unreadable = [&](const Question& q, uint64_t most) -> std::optional<Answer> {
      if (q.round == bad_round) return Answer{"b", {}, "b: it is a pipe"};
      return b(q, most);
    };
    const auto ruling = judge(s, a, unreadable);
    ASSERT_TRUE(ruling);
    const auto* verdict = std::get_if<Verdict>(&*ruling);
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->winner, Verdict::a);
    EXPECT_NE(verdict->reason.find("party b fails: b: it is a pipe"), std::string::npos) << verdict->reason;

    const auto asked = judge(s, until(a, bad_round - 1), until(b, bad_round - 1));
    ASSERT_TRUE(asked);
    const uint64_t most = most_bytes(s, std::get<Question>(*asked));
    for (const bool fits : {true, false}) {
      Answers longer = b;
      longer.texts[static_cast<size_t>(bad_round - 1)].resize(most + (fits ? 0 : 1), ' ');
      const auto padded = judge(s, a, longer);
      ASSERT_TRUE(padded);
      EXPECT_EQ(std::get<Verdict>(*padded).reason.find("larger than an answer may be") != std::string::npos,
                !fits)
          << std::get<Verdict>(*padded).reason;
      EXPECT_EQ(std::get<Verdict>(*padded).winner, Verdict::a);
    }
  }
}

}  // namespace
}  // namespace invar::dispute
