// Numbers of JSON as automata (grammar.10).
#include <array>

#include "grammar/languages/languages.h"

namespace invar::grammar {
namespace {

constexpr size_t kMostDigits = 20;

void digit(NfaBuilder& b, uint32_t from, char first, char last, uint32_t to) {
  b.bytes(from, static_cast<uint8_t>(first), static_cast<uint8_t>(last), to);
}

// From one digit up to so many.
void digits(NfaBuilder& b, uint32_t from, size_t most, uint32_t to) {
  for (size_t i = 0; i < most; ++i) {
    const uint32_t next = b.add();
    digit(b, from, '0', '9', next);
    b.skip(next, to);
    from = next;
  }
}

// Numbers of the digits of `low` up to `high`, which are as long.
void between(NfaBuilder& b, uint32_t from, const std::string& low, const std::string& high, uint32_t to) {
  struct At {
    uint32_t state = 0;
    bool there = false;
  };
  enum { kBoth, kLow, kHigh, kFree };  // what the digits so far are equal to
  std::array<At, 4> now{};
  now[kBoth] = {from, true};
  for (size_t i = 0; i < low.size(); ++i) {
    std::array<At, 4> then{};
    const auto go = [&](uint32_t state, char first, char last, int kind) {
      if (first > last) return;
      At& next = then[static_cast<size_t>(kind)];
      if (!next.there) next = {i + 1 == low.size() ? to : b.add(), true};
      digit(b, state, first, last, next.state);
    };
    const char l = low[i], h = high[i];
    if (const auto [s, there] = now[kBoth]; there) {
      if (l == h) {
        go(s, l, l, kBoth);
      } else {
        go(s, l, l, kLow), go(s, h, h, kHigh);
        go(s, static_cast<char>(l + 1), static_cast<char>(h - 1), kFree);
      }
    }
    if (const auto [s, there] = now[kLow]; there)
      go(s, l, l, kLow), go(s, static_cast<char>(l + 1), '9', kFree);
    if (const auto [s, there] = now[kHigh]; there)
      go(s, h, h, kHigh), go(s, '0', static_cast<char>(h - 1), kFree);
    if (const auto [s, there] = now[kFree]; there) go(s, '0', '9', kFree);
    now = then;
  }
}

bool below(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// Those from `low` to `high`, which are not negative.
void magnitudes(NfaBuilder& b, uint32_t from, const std::string& low, const std::string& high, uint32_t to) {
  for (size_t n = low.size(); n <= high.size() && n <= kMostDigits; ++n) {
    std::string least = n == 1 ? "0" : "1" + std::string(n - 1, '0');
    std::string most(n, '9');
    if (n == low.size()) least = low;
    if (n == high.size()) most = high;
    if (!below(most, least)) between(b, from, least, most, to);
  }
}

}  // namespace

Status add_whole_number(NfaBuilder& b, uint32_t from, const WholeRange& range, uint32_t to) {
  const auto negative = [](const std::string& n) { return n.starts_with('-') && n != "-0"; };
  const auto magnitude = [](const std::string& n) { return n.starts_with('-') ? n.substr(1) : n; };
  const std::string greatest(kMostDigits, '9');
  const std::string &least = range.least, &most = range.most;
  for (const std::string* bound : {&least, &most})
    if (magnitude(*bound).size() > kMostDigits) return bad_input("a bound has at most 20 digits");
  if (!negative(most) || most.empty())
    magnitudes(b, from, least.empty() || negative(least) ? "0" : magnitude(least),
               most.empty() ? greatest : magnitude(most), to);
  if (least.empty() || negative(least))
    magnitudes(b, b.literal(from, "-"), negative(most) ? magnitude(most) : "1",
               least.empty() ? greatest : magnitude(least), to);
  return {};
}

void add_number(NfaBuilder& b, uint32_t from, uint32_t to) {
  const uint32_t first = b.literal(from, "-"), whole = b.add(), more = b.add();
  b.skip(from, first);
  digit(b, first, '0', '0', whole);
  digit(b, first, '1', '9', more);
  b.skip(more, whole);
  digits(b, more, kMostDigits - 1, whole);
  const uint32_t fraction = b.add();
  b.skip(whole, fraction);
  digits(b, b.literal(whole, "."), kMostDigits, fraction);
  const uint32_t exponent = b.add(), sign = b.add();
  for (const char e : {'e', 'E'}) digit(b, fraction, e, e, exponent);
  for (const char s : {'+', '-'}) digit(b, exponent, s, s, sign);
  b.skip(exponent, sign);
  digits(b, sign, 3, to);
  b.skip(fraction, to);
}

}  // namespace invar::grammar
