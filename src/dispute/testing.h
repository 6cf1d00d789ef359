// For tests: a receipt of the tiny model, and parties that compute or answer wrongly.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
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
        r.out[o].as<uint8_t>()[(c.row - r.past) * row_bytes(plan.values[static_cast<size_t>(c.value)]) + c.byte] ^=
            c.flip;
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

// A lie in an answer alone, of many kinds: a digit changed, the text cut short, bytes replaced,
// members dropped, another question answered.
inline std::string lie(std::string text, uint64_t kind, std::mt19937_64& random) {
  const size_t at = random() % text.size();
  switch (kind % 4) {
    case 0: return text.substr(0, at);
    case 1: {  // a hexadecimal digit of a digest or a value
      const size_t digit = text.find_first_of("0123456789abcdef", text.find("\"positions\"") + 20 + at % (text.size() / 2));
      const size_t quoted = text.find('"', digit == text.npos ? 0 : digit);
      if (quoted != text.npos && quoted + 1 < text.size()) {
        const size_t hex = text.find_last_of("0123456789abcdef", text.rfind('"') - 1);
        text[hex] = text[hex] == '0' ? '1' : '0';
      }
      return text;
    }
    case 2: text[at] = static_cast<char>(text[at] ^ 0x15); return text;
    default: return text.erase(at, 1 + random() % 100);
  }
}

}  // namespace invar::dispute::testing
