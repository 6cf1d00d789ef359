// Helpers of tests: a receipt of the tiny model, and parties that compute or answer wrongly.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>

#include "dispute/judge.h"

namespace invar::dispute::testing {

// One element of one result, changed while it is computed: what follows is computed from it.
struct Corruption {
  int value;
  int64_t row, byte;
  uint8_t flip;
};
inline Observer corrupting(const plan::Plan& plan, const Corruption& c) {
  return [&plan, c](const run::NodeResults& r) {
    const auto& out = plan.nodes[r.node].out;
    for (size_t o = 0; o < out.size(); ++o)
      if (out[o] == c.value && c.row >= r.past && c.row < r.past + r.out[o].dim[1])
        r.out[o].as<uint8_t>()[(c.row - r.past) * row_bytes(plan.values[static_cast<size_t>(c.value)]) +
                               c.byte] ^= c.flip;
  };
}
inline Corruption random_corruption(const Subject& s, std::mt19937_64& random) {
  const plan::Node& node = s.plan.nodes[random() % s.plan.nodes.size()];
  const int value = node.out[random() % node.out.size()];
  const int64_t bytes = row_bytes(s.plan.values[static_cast<size_t>(value)]);
  return {value, static_cast<int64_t>(random() % static_cast<uint64_t>(s.of.positions)),
          static_cast<int64_t>(random() % static_cast<uint64_t>(bytes)),
          static_cast<uint8_t>(1u << random() % 8)};
}

// A party: how it computes, and what it does to its answers before it hands them over.
struct Party {
  Observer compute;
  std::function<std::string(const Question&, std::string)> hand_over;
};

// Asks until there is a verdict. The parties' answers stay in `a` and `b`.
inline Verdict hold(const Subject& s, const Party& party_a, const Party& party_b, Answers& a, Answers& b) {
  std::optional<Question> asked;
  for (int round = 1; round <= 4; ++round) {
    auto ruling = judge(s, a, b, asked ? &*asked : nullptr);
    if (!ruling) {
      ADD_FAILURE() << ruling.error().message;
      return {};
    }
    if (const auto* verdict = std::get_if<Verdict>(&*ruling)) return *verdict;
    asked = std::get<Question>(*ruling);
    for (auto [party, answers] : {std::pair(&party_a, &a), {&party_b, &b}}) {
      auto text = answer(s, *asked, party->compute);
      if (!text) {
        ADD_FAILURE() << text.error().message;
        return {};
      }
      answers->names.push_back(answers == &a ? "a/" + std::to_string(round) : "b/" + std::to_string(round));
      answers->texts.push_back(party->hand_over ? party->hand_over(*asked, *text) : *text);
    }
  }
  ADD_FAILURE() << "no verdict after four rounds";
  return {};
}
inline Verdict hold(const Subject& s, const Party& party_a, const Party& party_b) {
  Answers a, b;
  return hold(s, party_a, party_b, a, b);
}

// A lie in an answer alone, of many kinds: nothing that was computed stands behind it.
inline std::string lie(const std::string& text, std::mt19937_64& random) {
  auto change = [&](auto& bytes) { bytes[random() % bytes.size()] ^= 0x20; };
  Exchange file = *parse(text, "an answer");
  const uint64_t kind = random() % 5;
  if (kind == 0) return text.substr(0, random() % (text.size() - 2));
  if (kind == 1) return text.substr(0, 40) + text.substr(40 + random() % 400);
  if (auto* t = std::get_if<Trace>(&file)) {
    TracedValue& v = t->values[random() % t->values.size()];
    if (kind == 2) v.shape.push_back(1);
    if (kind == 3) change(v.root);
    if (kind == 4) t->values.pop_back();
    return print(*t);
  }
  if (auto* r = std::get_if<Rows>(&file)) {
    if (kind == 2) ++r->value;
    if (kind == 3) change(r->rows[random() % r->rows.size()]);
    if (kind == 4) r->rows.pop_back();
    return print(*r);
  }
  Values& v = std::get<Values>(file);
  if (kind == 2 || v.operands.empty())
    change(v.result);
  else if (kind == 3)
    change(v.operands[random() % v.operands.size()].rows.back());
  else if (v.operands.back().proof.empty())
    v.operands.pop_back();
  else
    change(v.operands.back().proof.back());
  return print(v);
}

// Holds `count` disputes, each with one dishonest party, either of the two: it corrupts an element
// while it computes, and in every third dispute also lies in the answer of some round. The honest
// party must win every one. Returns the largest share of the run that a judge computed.
inline double honest_party_wins(const Subject& s, int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  double most = 0;
  for (int i = 0; i < count; ++i) {
    const bool a_is_honest = random() % 2;
    const Corruption c = random_corruption(s, random);
    const int64_t lies_in = i % 3 == 2 ? static_cast<int64_t>(1 + random() % 3) : 0;
    const Party honest, dishonest{corrupting(s.plan, c), [&](const Question&q, std::string text) {
                                    return q.round == lies_in ? lie(text, random) : text;
                                  }};
    const Verdict v = a_is_honest ? hold(s, honest, dishonest) : hold(s, dishonest, honest);
    EXPECT_EQ(v.winner, a_is_honest ? Verdict::a : Verdict::b)
        << "dispute " << i << ", value " << c.value << ", row " << c.row << ", byte " << c.byte
        << ", lie in round " << lies_in << "\n"
        << report(v);
    most = std::max(
        most, static_cast<double>(v.cost.multiply_adds) / static_cast<double>(v.cost.run_multiply_adds));
  }
  return most;
}

}  // namespace invar::dispute::testing
