// Helpers of the session tests: a prompt for the tiny model, and its logits, fed in chunks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <tuple>

#include "device/device.h"
#include "run/session.h"
#include "run/tiny_model.h"

namespace invar::run {

constexpr int64_t kVocab = TinyModel::kVocab;
constexpr int kTokens = 150;  // more than one block of 128 keys

inline std::vector<int32_t> prompt() {
  std::vector<int32_t> t(kTokens);
  for (int i = 0; i < kTokens; ++i) t[i] = (i * i * 7 + i * 3 + 1) % kVocab;
  return t;
}

// A GPU for a test. Null: there is none, and the test ends; it fails if the build was promised one.
inline void take_gpu(std::shared_ptr<Device>& device) {
  auto found = Device::open();
  if (found) {
    device = *std::move(found);
    return;
  }
#ifdef INVAR_GPU
  FAIL() << "a GPU is promised to this build: " << found.error().message;
#else
  GTEST_SKIP() << "no GPU here: " << found.error().message;
#endif
}

inline Options options(int threads = 1, std::string isa = "") {
  Options o;
  o.threads = threads;
  o.isa = std::move(isa);
  o.capacity = kTokens;
  return o;
}

inline Session open(const TinyModel& m, Options o) {
  auto s = Session::open(m.plan, m.folder, std::move(o));
  if (!s) {
    ADD_FAILURE() << s.error().message;
    std::abort();
  }
  return *std::move(s);
}

using Logits = std::vector<float>;

// Feeds the prompt in pieces. Returns the logits of every position with `all`, else of the last one
// of each piece.
inline Logits logits(Session& s, int piece, bool all) {
  const auto tokens = prompt();
  Logits r;
  for (int i = 0; i < kTokens; i += piece) {
    const int n = std::min(piece, kTokens - i);
    auto out = s.step({tokens.data() + i, static_cast<size_t>(n)}, all);
    if (!out) {
      ADD_FAILURE() << out.error().message;
      return r;
    }
    EXPECT_EQ(out->size(), (all ? n : 1) * kVocab);
    r.insert(r.end(), out->begin(), out->end());
  }
  return r;
}

inline bool same_bytes(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// Every number of last rows, from any position on, in whichever pieces they come.
inline void some_rows_have_their_bytes(Session& s, const Logits& truth) {
  const std::vector<int32_t> tokens = prompt();
  for (const auto& [begin, count, wanted] : {std::tuple{0, kTokens, 1},
                                             {0, kTokens, 9},
                                             {0, kTokens, kTokens},
                                             {0, 100, 99},
                                             {0, 8, 3},
                                             {40, 7, 7},
                                             {90, 60, 10},
                                             {0, 30, 10},
                                             {25, 100, 50},
                                             {149, 1, 1}}) {
    s.reset();
    if (begin) {
      ASSERT_TRUE(s.step(std::span(tokens).first(static_cast<size_t>(begin))));
    }
    int64_t next = count - wanted;
    const auto take = [&](int64_t first, std::span<const float> rows) {
      EXPECT_EQ(first, next);
      ASSERT_EQ(rows.size() % kVocab, 0u);
      EXPECT_TRUE(same_bytes(
          rows, std::span(truth).subspan(static_cast<size_t>((begin + first) * kVocab), rows.size())))
          << begin << ", " << count << ", " << wanted << ": row " << first;
      next += static_cast<int64_t>(rows.size()) / kVocab;
      std::vector<int> called(5);
      s.parallel_for(5, [&](int i) { called[static_cast<size_t>(i)] += i + 1; });
      EXPECT_EQ(called, (std::vector{1, 2, 3, 4, 5}));
    };
    const Status done = s.step_rows(
        std::span(tokens).subspan(static_cast<size_t>(begin), static_cast<size_t>(count)), wanted, take);
    EXPECT_TRUE(done);
    EXPECT_EQ(next, count);
    EXPECT_EQ(s.position(), begin + count);
  }
  for (const int64_t wanted : {0, -1, 4}) {
    s.reset();
    const Status refused = s.step_rows(std::span(tokens).first(3), wanted, [](int64_t, auto) { FAIL(); });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              "a step of 3 tokens has no logits of " + std::to_string(wanted) + " of them");
    EXPECT_EQ(s.position(), 0);
  }
}

// Sequences of different lengths, and the logits of all their positions, computed one sequence at a
// time by the reference rows.
constexpr int kSequences = INVAR_EMULATED ? 20 : 64;
// Sequences in one step of a divided session: a step costs a stage each.
constexpr int kCompany = INVAR_EMULATED ? 5 : 17;
// A sanitizer sees in the steps of one piece what it sees in those of another.
inline const std::vector<int> kThreads = INVAR_EMULATED ? std::vector{2, 5} : std::vector{1, 2, 5};
inline const std::vector<int> kPieces =
    INVAR_EMULATED ? std::vector{kTokens, 7} : std::vector{kTokens, 64, 7, 1};
inline std::vector<int32_t> tokens_of(int sequence) {
  std::vector<int32_t> t(20 + sequence * 37 % (kTokens - 20));
  for (int i = 0; i < static_cast<int>(t.size()); ++i)
    t[i] = static_cast<int32_t>((i * i * 7 + i * 3 + sequence * 11 + 1) % kVocab);
  return t;
}
inline std::vector<Logits> alone(const TinyModel& m, int sequences = kSequences) {
  Session s = open(m, options(1, "reference"));
  std::vector<Logits> all;
  for (int b = 0; b < sequences; ++b) {
    s.reset();
    const auto out = s.step(tokens_of(b), true);
    EXPECT_TRUE(out);
    all.emplace_back(out->begin(), out->end());
  }
  return all;
}

// plan.11: sequences join with different prompts, are at different positions, pause and leave, in
// changing order.
inline void company_does_not_show(Session& s, int batch, const std::vector<Logits>& truth) {
  struct Sequence {
    std::vector<int32_t> tokens;
    int joins, prompt;
    int64_t slot;
  };
  std::vector<Sequence> all;
  for (int b = 0; b < batch; ++b) {
    std::vector<int32_t> tokens = tokens_of(b);
    const int size = static_cast<int>(tokens.size());
    all.push_back({std::move(tokens), b % 5 * 3, b * 13 % size, s.sequences() - 1 - b});
    s.reset(all.back().slot);
  }
  auto same = [&](std::span<const float> found, int b, int64_t position) {
    EXPECT_TRUE(same_bytes(found, std::span(truth[b]).subspan(position * kVocab, kVocab)))
        << "sequence " << b << " of " << batch << ", position " << position;
  };
  for (int turn = 0;; ++turn) {
    std::vector<NewTokens> prompts;
    std::vector<NextToken> next;
    std::vector<int> who;
    int left = 0;
    for (int i = 0; i < batch; ++i) {
      const int b = (turn % 2 ? batch - 1 - i : i + turn) % batch;
      const Sequence& q = all[b];
      const int64_t at = s.position(q.slot);
      if (at == static_cast<int64_t>(q.tokens.size())) continue;
      ++left;
      if (turn < q.joins || (turn + b) % 7 == 6) continue;
      const int64_t several = at == 0 ? q.prompt : (turn + b) % 11 == 3 ? 2 + b % 5 : 1;
      const auto more = std::span(q.tokens).subspan(at).first(
          std::min<int64_t>(several, static_cast<int64_t>(q.tokens.size()) - at));
      if (more.size() > 1 && (at || b % 4)) {
        prompts.push_back({q.slot, more.first(more.size() - 1)});
        next.push_back({q.slot, more.back()}), who.push_back(b);
      } else if (at == 0 && q.prompt) {
        const auto out = s.step(std::span(q.tokens).first(q.prompt), false, q.slot);
        ASSERT_TRUE(out) << out.error().message;
        same(*out, b, q.prompt - 1);
      } else {
        next.push_back({q.slot, q.tokens[at]}), who.push_back(b);
      }
    }
    if (!left) return;
    if (next.empty()) continue;
    if (!prompts.empty()) {
      const Status appended = s.append_many(prompts);
      ASSERT_TRUE(appended) << appended.error().message;
    }
    const auto out = s.step_many(next);
    ASSERT_TRUE(out) << out.error().message;
    ASSERT_EQ(out->size(), next.size() * kVocab);
    for (size_t i = 0; i < who.size(); ++i)
      same(out->subspan(i * kVocab, kVocab), who[i], s.position(next[i].sequence) - 1);
  }
}

// The same of groups that are in flight at once, of a session that has several: sequences leave
// while others are in flight, and their memory is forgotten.
inline void groups_do_not_show(Session& s, int batch, const std::vector<Logits>& truth) {
  std::deque<std::vector<int>> flying;
  const auto next_of = [&](int b) { return NextToken{b, tokens_of(b)[static_cast<size_t>(s.position(b))]}; };
  const auto start = [&](const std::vector<int>& group) {
    std::vector<NextToken> next;
    for (const int b : group) next.push_back(next_of(b));
    const Status started = s.start_many(next);
    ASSERT_TRUE(started) << started.error().message;
    flying.push_back(group);
  };
  const size_t groups = s.groups(1000);
  ASSERT_GT(groups, 1u);
  std::vector<std::vector<int>> first(groups);
  for (int b = 0; b < batch; ++b) s.reset(b), first[static_cast<size_t>(b) % groups].push_back(b);
  for (const std::vector<int>& group : first) start(group);
  const NextToken again = next_of(first[1][0]);
  EXPECT_EQ(s.start_many({&again, 1}).error().message,
            "a step of sequence " + std::to_string(again.sequence) + " is in flight");
  EXPECT_FALSE(s.step({&again.token, 1}, false, batch));
  while (!flying.empty()) {
    const std::vector<int> group = flying.front();
    flying.pop_front();
    const auto out = s.take_many();
    ASSERT_TRUE(out) << out.error().message;
    ASSERT_EQ(out->size(), group.size() * kVocab);
    std::vector<int> rest;
    for (size_t i = 0; i < group.size(); ++i) {
      const int b = group[i];
      const int64_t position = s.position(b);
      EXPECT_TRUE(same_bytes(out->subspan(i * kVocab, kVocab),
                             std::span(truth[b]).subspan((position - 1) * kVocab, kVocab)))
          << "sequence " << b << ", position " << position - 1;
      if (position < static_cast<int64_t>(tokens_of(b).size()))
        rest.push_back(b);
      else
        s.reset(b);
    }
    if (!rest.empty()) start(rest);
  }
  EXPECT_FALSE(s.take_many());
}

// An embedding table without its last row: the token that needs it is an error, which leaves the
// session as it was.
inline void an_index_that_names_nothing_is_named(const TinyModel& model, Options o) {
  plan::Plan p = model.plan;
  plan::Weight table = p.weights[0];
  const uint64_t row = table.length / static_cast<uint64_t>(kVocab);
  table.name = "without its last row", table.shape[0] -= 1, table.length -= row;
  size_t at = 0;
  while (p.nodes[at].op != "gather") ++at;
  p.nodes[at].in[0].index = static_cast<int>(p.weights.size());
  p.weights.push_back(table);
  o.check_weights = false;
  auto s = Session::open(p, model.folder, o);
  ASSERT_TRUE(s) << s.error().message;
  const int32_t last[] = {0, static_cast<int32_t>(kVocab) - 2},
                beyond[] = {5, static_cast<int32_t>(kVocab) - 1};
  EXPECT_TRUE(s->step(last));
  const auto r = s->step(beyond);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().message, "operation " + std::to_string(at) + " of the plan, gather: index " +
                                   std::to_string(kVocab - 1) + " at [0, 1] of operand 1 is outside " +
                                   std::to_string(1 - kVocab) + " ... " + std::to_string(kVocab - 2));
  EXPECT_EQ(s->position(), 2);
  EXPECT_TRUE(s->step(last));
}

// A page of keys and values serves several sequences, outlives the one that computed it, and is
// copied for a sequence that goes back into it. The session has three sequences; truth: all logits
// of the prompt.
inline void sequences_share_pages(Session& s, const Logits& truth) {
  constexpr int64_t kPage = ops::kPagePositions;
  const std::vector<int32_t> tokens = prompt();  // more than a page
  const auto row = [&](size_t at) { return std::span(truth).subspan(at * kVocab, kVocab); };
  ASSERT_TRUE(s.shares_pages());
  ASSERT_TRUE(s.step(tokens, false, 0));
  EXPECT_EQ(s.used_pages(), 2);
  const int64_t page = s.keep_page(0, 0);
  s.reset(0);
  EXPECT_EQ(s.used_pages(), 1);
  for (const int64_t sequence : {1, 2}) s.append_pages(sequence, {&page, 1});
  EXPECT_EQ(s.page_users(page), 3);
  EXPECT_EQ(s.used_pages(), 1);
  EXPECT_EQ(s.position(2), kPage);
  // 1 goes back into the page and writes other keys there; 2 goes on.
  s.reset(1, 100);
  const int32_t other[] = {4, 4, 4};
  ASSERT_TRUE(s.step(other, false, 1));
  EXPECT_EQ(s.page_users(page), 2);
  const auto rest = s.step(std::span(tokens).subspan(kPage), true, 2);
  ASSERT_TRUE(rest) << rest.error().message;
  EXPECT_TRUE(same_bytes(*rest, std::span(truth).subspan(kPage * kVocab)));
  s.reset(1, 100);
  const auto again = s.step(std::span(tokens).subspan(100), false, 1);
  ASSERT_TRUE(again);
  EXPECT_TRUE(same_bytes(*again, row(kTokens - 1)));
  for (const int64_t sequence : {0, 1, 2}) s.reset(sequence);
  EXPECT_EQ(s.used_pages(), 1);
  s.drop_page(page);
  EXPECT_EQ(s.used_pages(), 0);
}

}  // namespace invar::run
