#include "grammar/automaton/nfa.h"

#include <algorithm>
#include <array>
#include <string>

namespace invar::grammar {
namespace {

constexpr CodePoints kSurrogates{0xd800, 0xdfff};

int encoded(uint32_t c, uint8_t* out) {
  if (c < 0x80) return out[0] = static_cast<uint8_t>(c), 1;
  const int count = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (int i = count - 1; i > 0; --i, c >>= 6) out[i] = static_cast<uint8_t>(0x80 | (c & 0x3f));
  constexpr uint8_t kLead[] = {0, 0, 0xc0, 0xe0, 0xf0};
  out[0] = static_cast<uint8_t>(kLead[count] | c);
  return count;
}

}  // namespace

std::vector<CodePoints> normal(std::vector<CodePoints> list) {
  std::ranges::sort(list, {}, &CodePoints::first);
  std::vector<CodePoints> joined;
  for (const CodePoints& r : list) {
    if (!joined.empty() && r.first <= joined.back().last + 1)
      joined.back().last = std::max(joined.back().last, r.last);
    else
      joined.push_back(r);
  }
  std::vector<CodePoints> out;
  for (const CodePoints& r : joined) {
    if (r.first < kSurrogates.first) out.push_back({r.first, std::min(r.last, kSurrogates.first - 1)});
    if (r.last > kSurrogates.last) out.push_back({std::max(r.first, kSurrogates.last + 1), r.last});
  }
  return out;
}

std::vector<CodePoints> complement(std::vector<CodePoints> list) {
  std::vector<CodePoints> out;
  uint32_t next = 0;
  for (const CodePoints& r : normal(std::move(list))) {
    if (r.first > next) out.push_back({next, r.first - 1});
    next = r.last + 1;
  }
  if (next <= kLastCodePoint) out.push_back({next, kLastCodePoint});
  return normal(std::move(out));
}

uint32_t NfaBuilder::add() {
  if (nfa_.states.size() >= kMostStates) return full_ = true, 0;
  nfa_.states.emplace_back();
  return static_cast<uint32_t>(nfa_.states.size() - 1);
}

uint32_t NfaBuilder::literal(uint32_t from, std::string_view text) {
  for (const char c : text) {
    const uint32_t next = add();
    bytes(from, static_cast<uint8_t>(c), static_cast<uint8_t>(c), next);
    from = next;
  }
  return from;
}

void NfaBuilder::texts(uint32_t from, const std::vector<std::string>& texts, uint32_t to) {
  std::map<std::pair<uint32_t, char>, uint32_t> next;  // a tree, so that few states are reached at once
  for (const std::string& text : texts) {
    uint32_t at = from;
    for (const char c : text) {
      const auto [known, is_new] = next.try_emplace({at, c}, 0);
      if (is_new) known->second = literal(at, {&c, 1});
      at = known->second;
    }
    skip(at, to);
  }
}

uint32_t NfaBuilder::continuation(uint32_t to, int count) {
  if (count == 0) return to;
  const auto [known, is_new] = continuations_.try_emplace({to, count}, 0);
  if (!is_new) return known->second;
  const uint32_t next = continuation(to, count - 1), state = add();
  bytes(state, 0x80, 0xbf, next);
  return continuations_[{to, count}] = state;
}

// The sequences of `count` bytes from `low` to `high`, in the order of the bytes, which is that of
// the code points.
void NfaBuilder::sequences(uint32_t from, const uint8_t* low, const uint8_t* high, int count, uint32_t to) {
  static constexpr uint8_t kLow[] = {0x80, 0x80, 0x80}, kHigh[] = {0xbf, 0xbf, 0xbf};
  if (count == 1) return bytes(from, low[0], high[0], to);
  const auto one = [&](uint8_t byte, const uint8_t* a, const uint8_t* b) {
    const uint32_t next = add();
    bytes(from, byte, byte, next);
    sequences(next, a, b, count - 1, to);
  };
  if (low[0] == high[0]) return one(low[0], low + 1, high + 1);
  uint8_t first = low[0], last = high[0];
  if (!std::equal(low + 1, low + count, kLow)) one(first++, low + 1, kHigh);
  if (!std::equal(high + 1, high + count, kHigh)) one(last--, kLow, high + 1);
  if (first <= last) bytes(from, first, last, continuation(to, count - 1));
}

void NfaBuilder::utf8(uint32_t from, uint32_t first, uint32_t last, uint32_t to) {
  for (const uint32_t most : {0x7fu, 0x7ffu, 0xffffu, kLastCodePoint}) {
    if (first > most || first > last) continue;
    uint8_t low[4], high[4];
    const int count = encoded(first, low);
    encoded(std::min(last, most), high);
    sequences(from, low, high, count, to);
    first = most + 1;
  }
}

void NfaBuilder::code_point(uint32_t from, const std::vector<CodePoints>& list, Spelling spelling,
                            uint32_t to) {
  static constexpr std::string_view kShort = "\b\t\n\f\r", kLetters = "btnfr", kHex = "0123456789abcdef";
  for (auto [first, last] : list) {
    if (spelling == Spelling::raw) {
      utf8(from, first, last, to);
      continue;
    }
    for (uint32_t c = first; c <= std::min<uint32_t>(last, 0x5c); ++c) {
      const char byte = static_cast<char>(c);
      if (const size_t k = kShort.find(byte); k != kShort.npos) {
        literal(from, std::string("\\") + kLetters[k], to);
      } else if (c < 0x20) {
        literal(from, std::string("\\u00") + kHex[c >> 4] + kHex[c & 15], to);
      } else if (c == '"' || c == '\\') {
        literal(from, std::string("\\") + byte, to);
      }
    }
    for (const CodePoints& plain : {CodePoints{0x20, 0x21}, {0x23, 0x5b}, {0x5d, kLastCodePoint}})
      if (first <= plain.last && plain.first <= last)
        utf8(from, std::max(first, plain.first), std::min(last, plain.last), to);
  }
}

void NfaBuilder::hex_digits(uint32_t from, int count, uint32_t to) {
  for (int i = 0; i < count; ++i) {
    const uint32_t next = i + 1 == count ? to : add();
    for (const auto& [a, b] : {std::pair('0', '9'), std::pair('a', 'f'), std::pair('A', 'F')})
      bytes(from, static_cast<uint8_t>(a), static_cast<uint8_t>(b), next);
    from = next;
  }
}

void NfaBuilder::json_character(uint32_t from, uint32_t to) {
  static const std::vector<CodePoints> kPlain = normal({{0x20, 0x21}, {0x23, 0x5b}, {0x5d, kLastCodePoint}});
  code_point(from, kPlain, Spelling::raw, to);
  const uint32_t escape = literal(from, "\\");
  for (const char c : std::string_view("\"\\/bfnrt"))
    bytes(escape, static_cast<uint8_t>(c), static_cast<uint8_t>(c), to);
  const uint32_t hex = literal(escape, "u"), rest = add(), d = add();
  for (const auto& [a, b] : {std::pair('0', '9'), std::pair('a', 'c'), std::pair('A', 'C'),
                             std::pair('e', 'f'), std::pair('E', 'F')})
    bytes(hex, static_cast<uint8_t>(a), static_cast<uint8_t>(b), rest);
  hex_digits(rest, 3, to);
  // Surrogates come in pairs: a high one, then a low one.
  const uint32_t two = add(), high = add(), low = add(), low_two = add();
  for (const char c : {'d', 'D'}) bytes(hex, static_cast<uint8_t>(c), static_cast<uint8_t>(c), d);
  bytes(d, '0', '7', two);
  hex_digits(two, 2, to);
  const auto range = [&](uint32_t s, char a, char b, uint32_t next) {
    bytes(s, static_cast<uint8_t>(a), static_cast<uint8_t>(b), next);
  };
  const uint32_t end_of_high = add();
  range(d, '8', '9', high), range(d, 'a', 'b', high), range(d, 'A', 'B', high);
  hex_digits(high, 2, end_of_high);
  const uint32_t second = literal(end_of_high, "\\u");
  range(second, 'd', 'd', low), range(second, 'D', 'D', low);
  range(low, 'c', 'f', low_two), range(low, 'C', 'F', low_two);
  hex_digits(low_two, 2, to);
}

// The least number of levels with which a way leads to the end of the rule, from the ends on in
// ascending order of that number.
void NfaBuilder::find_needs() {
  std::vector<NfaState>& states = nfa_.states;
  struct Before {
    uint32_t state;
    const CallEdge* call;  // null: an edge without levels of its own
  };
  std::vector<std::vector<Before>> before(states.size());
  std::array<std::vector<uint32_t>, kMostJsonLevels + 1> waiting;
  for (uint32_t s = 0; s < states.size(); ++s) {
    for (const ByteEdge& e : states[s].bytes) before[e.to].push_back({s, nullptr});
    for (const uint32_t to : states[s].skips) before[to].push_back({s, nullptr});
    for (const CallEdge& e : states[s].calls) {
      before[e.to].push_back({s, &e});
      before[e.rule].push_back({s, &e});
    }
    if (states[s].end) states[s].need = 0, waiting[0].push_back(s);
  }
  for (int level = 0; level <= kMostJsonLevels; ++level)
    for (size_t i = 0; i < waiting[level].size(); ++i) {
      const uint32_t s = waiting[level][i];
      if (states[s].need != level) continue;
      for (const Before& b : before[s]) {
        int need = level;
        if (b.call) {
          const int rule = states[b.call->rule].need, to = states[b.call->to].need;
          if (rule == kNeverEnds || to == kNeverEnds) continue;
          need = std::max(rule + (b.call->level ? 1 : 0), to);
        }
        if (need > kMostJsonLevels || need >= states[b.state].need) continue;
        states[b.state].need = static_cast<uint8_t>(need);
        waiting[need].push_back(b.state);
      }
    }
}

// Whether a rule may call itself before any byte, directly or through others: it would have no
// first byte.
bool NfaBuilder::begins_with_itself() const {
  const std::vector<NfaState>& states = nfa_.states;
  std::vector<uint32_t> rules;
  for (const NfaState& s : states)
    for (const CallEdge& e : s.calls) rules.push_back(e.rule);
  std::ranges::sort(rules);
  rules.erase(std::ranges::unique(rules).begin(), rules.end());
  const auto number = [&](uint32_t rule) {
    return static_cast<size_t>(std::ranges::lower_bound(rules, rule) - rules.begin());
  };
  std::vector<std::vector<size_t>> calls(rules.size());
  std::vector<size_t> callers(rules.size());
  std::vector<uint32_t> seen(states.size(), UINT32_MAX);
  for (size_t r = 0; r < rules.size(); ++r) {
    std::vector<uint32_t> open{rules[r]};
    while (!open.empty()) {
      const uint32_t s = open.back();
      open.pop_back();
      if (std::exchange(seen[s], static_cast<uint32_t>(r)) == r) continue;
      open.insert(open.end(), states[s].skips.begin(), states[s].skips.end());
      for (const CallEdge& e : states[s].calls) calls[r].push_back(number(e.rule));
    }
    for (const size_t called : calls[r]) ++callers[called];
  }
  std::vector<size_t> free;
  size_t sorted = 0;
  for (size_t r = 0; r < rules.size(); ++r)
    if (callers[r] == 0) free.push_back(r);
  for (; !free.empty(); ++sorted) {
    const size_t r = free.back();
    free.pop_back();
    for (const size_t called : calls[r])
      if (--callers[called] == 0) free.push_back(called);
  }
  return sorted < rules.size();
}

Result<Nfa> NfaBuilder::finish(uint32_t start) {
  if (full_)
    return bad_input("it has more than " + std::to_string(kMostStates) +
                     " states: make it smaller, or its repeats shorter");
  if (begins_with_itself())
    return bad_input("a $ref leads back to itself before any text: take the circle out");
  find_needs();
  if (nfa_.states[start].need == kNeverEnds) return bad_input("no answer fits it: see what excludes all");
  nfa_.start = start;
  return std::move(nfa_);
}

}  // namespace invar::grammar
