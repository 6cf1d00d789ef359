// The parser of regular expressions.
#include "prompt/regex/syntax.h"

#include <optional>
#include <string>

#include "base/text/display.h"
#include "base/text/utf8.h"

namespace invar::prompt {
namespace {

constexpr int kDeepest = 50;        // nested groups and classes
constexpr int kMostRepeats = 1000;  // in {m,n}
constexpr uint32_t kLongS = 0x17F, kKelvin = 0x212A;

bool is_letter(uint32_t c) {
  return (c | 0x20) - 'a' < 26;
}

// A character in either case. Besides the ASCII pairs, s and k have a third form each (Unicode
// CaseFolding.txt).
CharSet either_case(uint32_t c) {
  if (!is_letter(c)) return CharSet::one(c);
  const uint32_t lower = c | 0x20;
  CharSet out({{lower, lower}, {lower - 32, lower - 32}});
  if (lower == 's') out = out | CharSet::one(kLongS);
  if (lower == 'k') out = out | CharSet::one(kKelvin);
  return out;
}

class Parser {
 public:
  explicit Parser(std::string_view pattern) : p_(pattern) {}

  Result<Node> parse() {
    if (p_.starts_with("(?i)")) at_ = 4, fold_ = true;
    INVAR_TRY(Node n, choice());
    if (!done()) return refuse("an unmatched )");
    return n;
  }

 private:
  // One piece of a class or an escape: a set and, if it stands for a single character, that
  // character.
  struct Item {
    CharSet chars;
    std::optional<uint32_t> single;
  };

  bool done() const { return at_ == p_.size(); }
  char peek() const { return done() ? '\0' : p_[at_]; }
  bool see(std::string_view s) const { return p_.substr(at_).starts_with(s); }
  bool take(std::string_view s) {
    if (!see(s)) return false;
    at_ += s.size();
    return true;
  }
  Error refuse(const std::string& what) const {
    return not_covered("pattern " + excerpt(p_) + ": " + what + " at byte " + std::to_string(at_) +
                       " is outside the supported grammar (spec/tokens.md tokens.5)");
  }

  Result<Node> choice() {
    if (++depth_ > kDeepest) return refuse("nesting deeper than 50");
    Node all{.kind = Node::choice};
    do {
      INVAR_TRY(Node n, sequence());
      all.kids.push_back(std::move(n));
    } while (take("|"));
    --depth_;
    if (all.kids.size() > 64) return refuse("a choice of more than 64");
    if (all.kids.size() == 1) return Node(std::move(all.kids[0]));
    return all;
  }

  Result<Node> sequence() {
    Node all{.kind = Node::sequence};
    uint32_t before = 0;  // the literal before this one, where letter case is ignored
    while (!done() && peek() != '|' && peek() != ')') {
      literal_ = 0;
      INVAR_TRY(Node n, term());
      // These pairs also match one character (such as U+FB01), which a set per character cannot
      // say.
      const uint32_t now = literal_;
      if ((before == 's' && (now == 's' || now == 't')) ||
          (before == 'f' && (now == 'f' || now == 'i' || now == 'l')))
        return refuse("a pair of letters with a ligature where case is ignored");
      before = now;
      all.kids.push_back(std::move(n));
    }
    if (all.kids.empty()) return Node{};
    if (all.kids.size() == 1) return Node(std::move(all.kids[0]));
    return all;
  }

  Result<Node> term() {
    INVAR_TRY(Node n, atom());
    if (done()) return n;
    bool braces = false;
    INVAR_TRY(bool repeated, quantifier(n, braces));
    if (!repeated) return n;
    // After braces + is a second quantifier, not a possessive mark: {1,3}+ repeats without bound.
    if (braces && take("+")) {
      if (n.min > 1 || n.kids[0].kind != Node::set) return refuse("a + after braces");
      n.max = -1;
    } else if (braces && see("?") && n.min == n.max) {
      return refuse("{n}?");
    } else if (take("?")) {
      n.greed = Greed::lazy;
    } else if (take("+")) {
      n.greed = Greed::possessive;
    }
    if (!done() && (peek() == '*' || peek() == '+' || peek() == '?' || interval()))
      return refuse("a repeated repeat");
    return n;
  }

  struct Interval {
    int min, max;
    size_t length;
  };
  std::optional<Interval> interval() const {  // {m} {m,} {,n} {m,n}; anything else is a literal brace
    size_t i = at_;
    if (i >= p_.size() || p_[i++] != '{') return std::nullopt;
    const auto number = [&]() -> int {
      int v = -1;
      for (; i < p_.size() && p_[i] >= '0' && p_[i] <= '9'; ++i)
        v = std::min((v < 0 ? 0 : v) * 10 + (p_[i] - '0'), kMostRepeats + 1);
      return v;
    };
    const int low = number();
    int high = low;
    if (i < p_.size() && p_[i] == ',') {
      ++i;
      high = number();
      if (low < 0 && high < 0) return std::nullopt;
    }
    if (i >= p_.size() || p_[i] != '}') return std::nullopt;
    if (low < 0 && high < 0) return std::nullopt;
    return Interval{low < 0 ? 0 : low, high, i + 1 - at_};
  }

  Result<bool> quantifier(Node& n, bool& braces) {
    int min = 0, max = -1;
    if (take("?")) {
      max = 1;
    } else if (take("+")) {
      min = 1;
    } else if (!take("*")) {
      const auto i = interval();
      if (!i) return false;
      if (i->min > kMostRepeats || i->max > kMostRepeats || (i->max >= 0 && i->max < i->min))
        return refuse("this interval");
      min = i->min, max = i->max, at_ += i->length, braces = true;
    }
    if (n.kind != Node::set && nullable(n)) return refuse("the repeat of something that can match nothing");
    Node inner = std::move(n);
    n = Node{.kind = Node::repeat, .kids = {}, .min = min, .max = max};
    n.kids.push_back(std::move(inner));
    literal_ = 0;
    return true;
  }

  Result<Node> group() {
    Node outer;
    const bool fold = fold_;
    if (take("(?:")) {
    } else if (take("(?i:")) {
      fold_ = true;
    } else if (take("(?-i:")) {
      fold_ = false;
    } else if (take("(?=")) {
      outer.kind = Node::look;
    } else if (take("(?!")) {
      outer.kind = Node::look, outer.negative = true;
    } else if (take("(?>")) {
      outer.kind = Node::atomic;
    } else if (see("(?<=") || see("(?<!")) {
      return refuse("look-behind");
    } else if (see("(?")) {
      return refuse("this kind of group");
    } else {
      take("(");
    }
    INVAR_TRY(Node n, choice());
    if (!take(")")) return refuse("a missing )");
    fold_ = fold;
    literal_ = 0;
    if (outer.kind == Node::empty) return n;
    outer.kids.push_back(std::move(n));
    return outer;
  }

  Result<Node> atom() {
    switch (peek()) {
      case '(': return group();
      case '[': {
        INVAR_TRY(CharSet chars, char_class());
        return Node{.kind = Node::set, .chars = std::move(chars)};
      }
      case '.': ++at_; return Node{.kind = Node::set, .chars = ~CharSet::one('\n')};
      case '^': ++at_; return Node{.kind = Node::line_start};
      case '$': ++at_; return Node{.kind = Node::line_end};
      case '*':
      case '+':
      case '?': return refuse("a quantifier of nothing");
    }
    if (take("\\A")) return Node{.kind = Node::text_start};
    if (take("\\z")) return Node{.kind = Node::text_end};
    INVAR_TRY(Item item, character());
    if (item.single && fold_) {
      if (*item.single >= 0x80) return refuse("a letter that is not ASCII where case is ignored");
      literal_ = is_letter(*item.single) ? *item.single | 0x20 : *item.single;
      item.chars = either_case(*item.single);
    }
    return Node{.kind = Node::set, .chars = std::move(item.chars)};
  }

  Result<Item> character() {  // one character, escaped or not
    if (done()) return refuse("a class without ]");
    if (peek() != '\\') {
      const uint32_t c = decode_utf8(p_, at_);
      return Item{CharSet::one(c), c};
    }
    ++at_;
    if (done()) return refuse("a trailing backslash");
    const uint32_t c = decode_utf8(p_, at_);
    const auto single = [](uint32_t v) { return Item{CharSet::one(v), v}; };
    switch (c) {
      case 's': return Item{CharSet::white_space(), {}};
      case 'S': return Item{~CharSet::white_space(), {}};
      case 'd': return Item{CharSet::decimal_digits(), {}};
      case 'D': return Item{~CharSet::decimal_digits(), {}};
      case 'w': return Item{CharSet::word(), {}};
      case 'W': return Item{~CharSet::word(), {}};
      case 'p':
      case 'P': return property(c == 'P');
      case 'n': return single('\n');
      case 'r': return single('\r');
      case 't': return single('\t');
      case 'f': return single('\f');
      case 'v': return single('\v');
      case 'a': return single('\a');
      case 'e': return single(0x1B);
      case 'x':
      case 'u': return hexadecimal(c == 'u');
    }
    if (is_letter(c) || c - '0' < 10 || c >= 0x80) return at_ -= 1, refuse("this escape");
    return single(c);
  }

  Result<Item> property(bool negative) {
    if (!take("{")) return refuse("a property without braces");
    if (take("^")) negative = !negative;
    const size_t end = p_.find('}', at_);
    if (end == std::string_view::npos) return refuse("a property without closing brace");
    CharSet chars;
    const std::string_view name = p_.substr(at_, end - at_);
    if (fold_ || !CharSet::property(name, chars))
      return refuse("the property " + excerpt(name) + (fold_ ? " where case is ignored" : ""));
    at_ = end + 1;
    return Item{negative ? ~chars : std::move(chars), {}};
  }

  Result<Item> hexadecimal(bool four) {  // \xH \xHH \x{H...} \uHHHH
    const bool braces = !four && take("{");
    const size_t most = four ? 4 : braces ? 6 : 2;
    uint32_t value = 0;
    size_t digits = 0;
    for (; digits < most && !done(); ++digits, ++at_) {
      const char c = peek();
      const int d = c >= '0' && c <= '9'                     ? c - '0'
                    : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                             : -1;
      if (d < 0) break;
      value = value * 16 + d;
    }
    if (digits == 0 || (four && digits < 4) || (braces && !take("}")) || value > kLastCodePoint ||
        (!four && !braces && value >= 0x80))  // \x80.. is a byte there, not a character
      return refuse("this escape");
    return Item{CharSet::one(value), value};
  }

  Result<CharSet> char_class() {
    if (++depth_ > kDeepest) return refuse("nesting deeper than 50");
    take("[");
    const bool negative = take("^");
    if (see("]")) return refuse("an empty class");
    CharSet all, part;
    bool intersect = false;
    const auto close_part = [&] {
      all = intersect ? all & part : part;
      part = CharSet();
    };
    while (!take("]")) {
      if (done()) return refuse("a class without ]");
      if (see("[:")) return refuse("a bracket name such as [:alpha:]");
      if (take("&&")) {
        if (part.empty()) return refuse("an empty side of &&");
        close_part(), intersect = true;
        continue;
      }
      if (see("[")) {
        INVAR_TRY(CharSet inner, char_class());
        part = part | inner;
        continue;
      }
      INVAR_CHECK_OK(class_item(part));
    }
    if (intersect && part.empty()) return refuse("an empty side of &&");
    close_part();
    --depth_;
    return negative ? ~all : all;
  }

  Status class_item(CharSet& part) {
    const bool dash = peek() == '-';
    const bool first = p_[at_ - 1] == '[' || p_[at_ - 1] == '^';
    if (dash && !first && !p_.substr(at_ + 1).starts_with("]")) return refuse("this -");
    INVAR_TRY(Item low, character());
    if (!low.single || dash || !see("-") || see("-]")) {
      if (!low.single && see("-") && !see("-]")) return refuse("a range of sets");
      part = part | low.chars;
      return add_other_case(part, low);
    }
    take("-");
    if (see("[")) return refuse("a range of sets");
    INVAR_TRY(Item high, character());
    if (!high.single || *high.single < *low.single) return refuse("this range");
    for (uint32_t c = *low.single; fold_ && c <= *high.single; ++c)
      INVAR_CHECK_OK(add_other_case(part, Item{CharSet(), c}));
    part = part | CharSet({{*low.single, *high.single}});
    return {};
  }

  Status add_other_case(CharSet& part, const Item& item) {
    if (!fold_ || !item.single) return {};
    if (*item.single >= 0x80) return refuse("a letter that is not ASCII where case is ignored");
    part = part | either_case(*item.single);
    return {};
  }

  std::string_view p_;
  size_t at_ = 0;
  int depth_ = 0;
  bool fold_ = false;
  uint32_t literal_ = 0;  // the last atom, if it was a literal where case is ignored
};

}  // namespace

Result<Node> parse_pattern(std::string_view pattern) {
  return Parser(pattern).parse();
}

Node literal_pattern(std::string_view text) {
  Node all{.kind = Node::sequence};
  for (size_t i = 0; i < text.size();)
    all.kids.push_back({.kind = Node::set, .chars = CharSet::one(decode_utf8(text, i))});
  return all;
}

bool nullable(const Node& n) {
  switch (n.kind) {
    case Node::set: return false;
    case Node::sequence:
      for (const Node& k : n.kids)
        if (!nullable(k)) return false;
      return true;
    case Node::choice:
      for (const Node& k : n.kids)
        if (nullable(k)) return true;
      return false;
    case Node::repeat: return n.min == 0 || nullable(n.kids[0]);
    case Node::atomic: return nullable(n.kids[0]);
    default: return true;
  }
}

CharSet first_set(const Node& n) {
  CharSet out;
  switch (n.kind) {
    case Node::set: return n.chars;
    case Node::sequence:
      for (const Node& k : n.kids) {
        out = out | first_set(k);
        if (!nullable(k)) break;
      }
      return out;
    case Node::choice:
      for (const Node& k : n.kids) out = out | first_set(k);
      return out;
    case Node::repeat:
    case Node::atomic: return first_set(n.kids[0]);
    default: return out;
  }
}

}  // namespace invar::prompt
