// Sampling: known answers, exact frequencies, and what must not matter.
#include "sample/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "num/reference.h"
#include "sample/distribution.h"
#include "sample/logprobs.h"
#include "sample/philox.h"

namespace invar::sample {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Philox, Random123KnownAnswers) {
  using A4 = std::array<uint32_t, 4>;
  constexpr uint32_t f = 0xffffffff;
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}), (A4{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32_10({f, f, f, f}, {f, f}), (A4{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (A4{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, EveryArgumentHasItsOwnWords) {
  uint64_t base = random_u64(1, 2, 3);
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_NE(random_u64(1 ^ uint64_t{1} << bit, 2, 3), base);
    EXPECT_NE(random_u64(1, 2 ^ uint64_t{1} << bit, 3), base);
    EXPECT_NE(random_u64(1, 2, 3 ^ uint64_t{1} << bit), base);
  }
}

TEST(Fixed40, RoundsToNearestEven) {
  EXPECT_EQ(fixed40(1), uint64_t{1} << 40);
  EXPECT_EQ(fixed40(0), 0u);
  EXPECT_EQ(fixed40(0x1p-40f), 1u);
  EXPECT_EQ(fixed40(0x1p-41f), 0u);  // a tie, to even
  EXPECT_EQ(fixed40(0x1.000002p-41f), 1u);
  EXPECT_EQ(fixed40(0x1.8p-40f), 2u);  // a tie, to even
  EXPECT_EQ(fixed40(0x1.4p-39f), 2u);  // 2.5
  EXPECT_EQ(fixed40(0x1.400002p-39f), 3u);
  EXPECT_EQ(fixed40(0x1.fffffep-42f), 0u);
  EXPECT_EQ(fixed40(0x1p-140f), 0u);
  EXPECT_EQ(fixed40(0x1.fffffep-1f), 0xffffff0000u);
  EXPECT_EQ(fixed40(0x1.fffffep-18f), 0x800000u - 0u);  // 2^23 - 1/2: a tie, to even
}

struct Case {
  Params params;
  uint64_t position;
  std::vector<float> logits;
  std::vector<Choice> choices;
  int32_t token;
};

std::vector<Case> read_vectors() {
  std::vector<Case> cases;
  std::ifstream in(INVAR_SOURCE_DIR "/src/sample/vectors.txt");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    Case c;
    std::string temperature, top_p, word;
    words >> c.params.do_sample >> temperature >> c.params.top_k >> top_p >> c.params.seed >> c.position >>
        c.params.stream;
    auto f32 = [](const std::string& hex) {
      return std::bit_cast<float>(static_cast<uint32_t>(std::stoul(hex, nullptr, 16)));
    };
    c.params.temperature = f32(temperature), c.params.top_p = f32(top_p);
    words >> word;
    while (words >> word && word != "|") c.logits.push_back(f32(word));
    while (words >> word && word != "->")
      if (size_t colon = word.find(':'); colon != word.npos)
        c.choices.push_back({std::stoi(word), std::stoull(word.substr(colon + 1))});
    words >> c.token;
    cases.push_back(std::move(c));
  }
  return cases;
}

TEST(Sample, KnownAnswers) {
  auto cases = read_vectors();
  ASSERT_EQ(cases.size(), 215u);
  for (size_t n = 0; n < cases.size(); ++n) {
    const Case& c = cases[n];
    auto token = choose(c.logits, c.params, c.position);
    ASSERT_TRUE(token) << "line " << n + 1 << ": " << token.error().message;
    EXPECT_EQ(*token, c.token) << "line " << n + 1;
    if (!c.params.do_sample) continue;
    auto d = distribution(c.logits, c.params);
    ASSERT_TRUE(d);
    ASSERT_EQ(d->size(), c.choices.size()) << "line " << n + 1;
    for (size_t i = 0; i < d->size(); ++i) {
      EXPECT_EQ((*d)[i].token, c.choices[i].token) << "line " << n + 1;
      EXPECT_EQ((*d)[i].weight, c.choices[i].weight) << "line " << n + 1;
    }
  }
}

// The share of random numbers that draw a token is its weight, exactly, up to one part in 2^64:
// each choice owns the interval [ceil(2^64 s / W), ceil(2^64 (s + w) / W)), s the sum before it.
TEST(Draw, OwnsExactIntervals) {
  __extension__ using uint128 = unsigned __int128;
  for (const std::vector<Choice>& choices :
       std::vector<std::vector<Choice>>{{{3, 1}},
                                        {{0, 1}, {1, 2}, {7, 5}},
                                        {{0, 1}, {1, 1}, {2, 1}},
                                        {{1, uint64_t{1} << 40}, {2, 1}, {9, (uint64_t{1} << 40) - 1}},
                                        {{0, UINT64_MAX - 2}, {1, 1}, {2, 1}}}) {
    uint64_t total = 0, sum = 0;
    for (const Choice& c : choices) total += c.weight;
    auto start = [&](uint64_t s) { return ((uint128{s} << 64) + total - 1) / total; };
    for (const Choice& c : choices) {
      uint128 first = start(sum), end = start(sum += c.weight);
      ASSERT_LT(first, end);
      EXPECT_EQ(draw(choices, static_cast<uint64_t>(first)), c.token);
      EXPECT_EQ(draw(choices, static_cast<uint64_t>(end - 1)), c.token);
    }
    EXPECT_EQ(start(sum), uint128{1} << 64);
  }
}

TEST(Draw, EightEquidistantNumbers) {
  std::vector<Choice> choices{{4, 1}, {5, 2}, {6, 5}};
  std::vector<int32_t> drawn;
  for (uint64_t j = 0; j < 8; ++j) drawn.push_back(draw(choices, j << 61));
  EXPECT_EQ(drawn, (std::vector<int32_t>{4, 5, 5, 6, 6, 6, 6, 6}));
}

TEST(Sample, InvariantUnderWhatMustNotMatter) {
  for (const Case& c : read_vectors()) {
    auto expected = choose(c.logits, c.params, c.position);
    auto padded = c.logits;  // a longer vocabulary of impossible tokens
    padded.resize(padded.size() + 9, -kInf);
    EXPECT_EQ(*choose(padded, c.params, c.position), *expected);
    padded.back() = kNan;
    EXPECT_EQ(*choose(padded, c.params, c.position), *expected);
    Params p = c.params;
    if (p.top_k == 0) p.top_k = static_cast<int32_t>(c.logits.size());
    EXPECT_EQ(*choose(c.logits, p, c.position), *expected);
    p = c.params, p.do_sample = true, p.top_k = 1;
    Params greedy;
    EXPECT_EQ(*choose(c.logits, p, c.position), *choose(c.logits, greedy, 0));
  }
}

TEST(Sample, LargeVocabularyUniform) {
  std::vector<float> logits(300000, 0.25f);
  Params p{.do_sample = true, .top_p = 0.5f, .seed = 9};
  auto d = distribution(logits, p);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->size(), 150000u);
  EXPECT_EQ(d->back().token, 149999);
  p.top_k = 7, p.top_p = 1;
  d = distribution(logits, p);
  ASSERT_EQ(d->size(), 7u);
  EXPECT_EQ(d->back().token, 6);
}

// The order written out: every token sorted, then cut by top_k and top_p.
TEST(Sample, SelectionIsThatOfTheWholeOrder) {
  uint32_t state = 1;
  auto next = [&state](uint32_t n) { return (state = state * 1664525 + 1013904223) / 65536 % n; };
  for (int round = 0; round < 400; ++round) {
    std::vector<float> logits(1 + next(round % 4 ? 90 : 3000));
    const uint32_t distinct = 2 + next(300);  // mostly ties
    for (float& l : logits) {
      l = (static_cast<float>(next(distinct)) - static_cast<float>(distinct / 2)) / 16;
      if (next(40) == 0) l = next(2) ? kNan : -kInf;
      if (next(40) == 0) l = -0.0f;
    }
    logits[0] = 1;
    Params p{.do_sample = true, .top_k = static_cast<int32_t>(next(3) ? next(200) : 0)};
    if (next(3)) p.top_p = static_cast<float>(1 + next(1000)) / 1000;
    const auto all = distribution(logits, {.do_sample = true});
    ASSERT_TRUE(all);
    std::vector<Choice> order = *all;
    std::stable_sort(order.begin(), order.end(),
                     [&](const Choice& a, const Choice& b) { return logits[a.token] > logits[b.token]; });
    if (p.top_k) order.resize(std::min(order.size(), static_cast<size_t>(p.top_k)));
    __extension__ unsigned __int128 whole = 0, sum = 0;
    for (const Choice& c : order) whole += c.weight;
    size_t n = 0;
    do sum += order[n++].weight;
    while (p.top_p < 1 && n < order.size() && (sum << 40) < fixed40(p.top_p) * whole);
    if (p.top_p < 1) order.resize(n);
    std::sort(order.begin(), order.end(), [](const Choice& a, const Choice& b) { return a.token < b.token; });
    const auto found = distribution(logits, p);
    ASSERT_EQ(found->size(), order.size()) << round;
    for (size_t i = 0; i < order.size(); ++i) {
      ASSERT_EQ((*found)[i].token, order[i].token) << round;
      ASSERT_EQ((*found)[i].weight, order[i].weight) << round;
    }
  }
}

TEST(Sample, SaysHowItChooses) {
  EXPECT_EQ(describe(Params{}), "greedy");
  EXPECT_EQ(describe(Params{.do_sample = true, .temperature = 0.8f, .top_k = 50, .top_p = 0.95f, .seed = 7}),
            "temperature 0.8, top-k 50, top-p 0.95, seed 7");
  EXPECT_EQ(describe(Params{.do_sample = true}), "temperature 1, top-k all, top-p 1, seed 0");
}

TEST(Sample, Refusals) {
  auto message = [](Params p) {
    Status s = check(p);
    return s ? std::string() : s.error().message;
  };
  EXPECT_EQ(message(Params{}), "");
  EXPECT_EQ(message({.temperature = std::numeric_limits<float>::max()}), "");
  for (float t : {0.0f, -0.0f, -1.0f, kNan, kInf, 0x1p-130f})
    EXPECT_NE(message({.temperature = t}).find("temperature: "), std::string::npos) << t;
  for (float p : {0.0f, -0.5f, 1.0000001f, kNan, kInf})
    EXPECT_NE(message({.top_p = p}).find("top_p: "), std::string::npos) << p;
  EXPECT_EQ(message({.temperature = 1e-38f}).find("not a number"),
            std::string::npos);  // it is one, only too small
  EXPECT_EQ(
      message({.temperature = std::numeric_limits<float>::min(), .top_p = std::numeric_limits<float>::min()}),
      "");
  EXPECT_EQ(message({.top_k = -1}), "top_k: -1 is negative; use 0 for no limit");
  for (bool do_sample : {false, true})
    for (const std::vector<float>& logits :
         {std::vector<float>{}, {kNan, kNan}, {-kInf, -kInf, -kInf}, {-kInf, kNan}}) {
      auto r = choose(logits, {.do_sample = do_sample}, 0);
      ASSERT_FALSE(r);
      EXPECT_NE(r.error().message.find("no logit is above -Inf"), std::string::npos);
    }
}

// sampling.25, as the second reading has them.
TEST(Logprobs, KnownAnswers) {
  std::ifstream in(INVAR_SOURCE_DIR "/src/sample/logprob_vectors.txt");
  const auto f32 = [](const std::string& hex) {
    return std::bit_cast<float>(static_cast<uint32_t>(std::stoul(hex, nullptr, 16)));
  };
  int lines = 0;
  for (std::string line; std::getline(in, line); ++lines) {
    SCOPED_TRACE("line " + std::to_string(lines + 1));
    std::istringstream words(line);
    std::vector<float> logits;
    std::string word;
    if (line.starts_with("long")) {
      uint32_t state;
      size_t count;
      words >> word >> count >> state >> word;
      for (logits.resize(count); float& l : logits)
        state = state * 1664525 + 1013904223, l = static_cast<float>(state >> 16) / 2048 - 16;
    } else {
      while (words >> word && word != "|") logits.push_back(f32(word));
    }
    const RowLogprobs row(logits);
    for (int32_t token = 0; words >> word; ++token) {
      const size_t colon = word.find(':');
      if (colon != word.npos) token = std::stoi(word);
      const float expected = f32(word.substr(colon == word.npos ? 0 : colon + 1));
      EXPECT_EQ(std::bit_cast<uint32_t>(row.of(token)), std::bit_cast<uint32_t>(expected)) << token;
      EXPECT_EQ(std::bit_cast<uint32_t>(logprobs(logits, token, 0).chosen.logprob),
                std::bit_cast<uint32_t>(expected));
    }
  }
  EXPECT_EQ(lines, 79);
}

// Every 4096th number down to where weights vanish, and what is no weight of a row.
TEST(Logprobs, WeightsAreTheRoundedExponentials) {
  const auto expected = [](float d) {
    const float e = num::reference::exp(d);
    return e < std::numeric_limits<float>::min() ? 0 : e;
  };
  for (uint32_t u = std::bit_cast<uint32_t>(-0.0f); u < std::bit_cast<uint32_t>(-104.0f); u += 4093) {
    const auto d = std::bit_cast<float>(u);
    ASSERT_EQ(std::bit_cast<uint32_t>(stored_exp(d)), std::bit_cast<uint32_t>(expected(d))) << d;
  }
  EXPECT_EQ(stored_exp(0), 1);
  EXPECT_EQ(stored_exp(-kInf), 0);
  EXPECT_EQ(stored_exp(-std::numeric_limits<float>::max()), 0);
  EXPECT_TRUE(std::isnan(stored_exp(kNan)));
}

// The order of sampling.7: the greedy token comes first, and prints as it does as the token chosen.
TEST(Logprobs, TheMostLikely) {
  const auto ids = [](const std::vector<float>& logits, int32_t count) {
    std::vector<int32_t> found;
    for (const TokenLogprob& t : logprobs(logits, 0, count).top) found.push_back(t.token);
    return found;
  };
  using Ids = std::vector<int32_t>;
  const std::vector<float> logits{1, -0.0f, 3, 0, 3, -kInf, kNan};
  EXPECT_EQ(ids(logits, 0), Ids());
  EXPECT_EQ(ids(logits, 1), Ids{2});
  EXPECT_EQ(ids(logits, 4), (Ids{2, 4, 0, 1}));
  EXPECT_EQ(ids(logits, 20), (Ids{2, 4, 0, 1, 3}));
  EXPECT_EQ(ids({-kInf, -kInf}, 3), Ids());
  EXPECT_EQ(ids({}, 3), Ids());
  for (const Case& c : read_vectors()) {
    const auto greedy = choose(c.logits, {}, 0);
    const StepLogprobs step = logprobs(c.logits, *greedy, 5);
    ASSERT_FALSE(step.top.empty());
    EXPECT_EQ(step.top[0].token, *greedy);
    EXPECT_EQ(json_logprob(step.top[0].logprob), json_logprob(step.chosen.logprob));
    for (size_t i = 1; i < step.top.size(); ++i) EXPECT_FALSE(step.top[i].logprob > step.top[i - 1].logprob);
  }
}

TEST(Logprobs, Json) {
  EXPECT_EQ(json_logprob(0), "0");
  EXPECT_EQ(json_logprob(-0.1f), "-0.1");
  EXPECT_EQ(json_logprob(-1.1920929e-07f), "-1.1920929e-07");
  EXPECT_EQ(json_logprob(-std::numeric_limits<float>::max()), "-3.4028235e+38");
  EXPECT_EQ(json_logprob(-kInf), "-9999.0");
  EXPECT_EQ(json_logprob(kNan), "null");
  EXPECT_EQ(json_logprob(logprobs(std::vector<float>{1, 2}, 2, 0).chosen.logprob), "-9999.0");
}

// sampling.24
TEST(Sample, EveryStreamHasItsOwnNumbers) {
  std::vector<float> logits(1000, 0);
  std::vector<int32_t> drawn;
  for (const uint64_t stream : {0ull, 1ull, 2ull, 1ull << 32, 1ull << 63}) {
    const Params p{.do_sample = true, .seed = 5, .stream = stream};
    drawn.push_back(*choose(logits, p, 3));
    EXPECT_EQ(drawn.back(), draw(*distribution(logits, p), random_u64(5, 3, stream)));
  }
  std::ranges::sort(drawn);
  EXPECT_EQ(std::ranges::adjacent_find(drawn), drawn.end());
}

}  // namespace
}  // namespace invar::sample
