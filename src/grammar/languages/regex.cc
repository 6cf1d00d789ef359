// Regular expressions of the closed subset of ECMAScript's that grammar.12 lists.
#include <algorithm>
#include <optional>

#include "base/text/utf8.h"
#include "grammar/languages/languages.h"

namespace invar::grammar {
namespace {

using List = std::vector<CodePoints>;

constexpr int kMostRepeats = 4096, kMostGroups = 64;
constexpr size_t kMostParsed = 1 << 17;  // parts, those of repeats as often as they are repeated

const List kDigits{{'0', '9'}}, kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
    kSpace{{9, 13},          {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
           {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}},
    kLineEnds{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

class PatternReader {
 public:
  PatternReader(NfaBuilder& b, std::u32string text, Spelling spelling)
      : b_(b), text_(std::move(text)), spelling_(spelling) {}

  // Alternatives at the outside, where alone ^ and $ may be.
  Status whole(uint32_t from, bool searched, uint32_t to) {
    do {
      uint32_t begin = b_.add();
      b_.skip(from, begin);
      if (!take('^') && searched) add_any(begin);
      uint32_t state = begin;
      INVAR_CHECK_OK(sequence(state, 0));
      if (!take('$') && searched) {
        const uint32_t rest = b_.add();
        b_.skip(state, rest);
        add_any(state = rest);
      }
      b_.skip(state, to);
    } while (take('|'));
    return at_ < text_.size() ? refused("what it is") : Status();
  }

 private:
  // Any text goes on here.
  void add_any(uint32_t state) {
    b_.code_point(state, complement({}), spelling_, state);
    if (spelling_ == Spelling::json) b_.at(state).room = kAnyRoom;
  }
  bool ends() const { return at_ >= text_.size(); }
  char32_t next() const { return ends() ? U'\0' : text_[at_]; }
  bool take(char32_t c) {
    if (ends() || text_[at_] != c) return false;
    return ++at_, true;
  }
  bool take(std::u32string_view s) {
    if (text_.compare(at_, s.size(), s) != 0) return false;
    return at_ += s.size(), true;
  }
  Error refused(const std::string& what) const {
    std::string from;
    for (size_t i = at_; i < std::min(text_.size(), at_ + 12); ++i) append_utf8(from, text_[i]);
    return bad_input("a regular expression: " + what + " at character " + std::to_string(at_ + 1) +
                     (from.empty() ? ", its end" : ", " + json::quote(from)) +
                     ", is not among what is covered: characters, classes, groups, |, ?, *, +, {m,n}, and "
                     "^ and $ at the ends");
  }

  Status alternatives(uint32_t from, int depth, uint32_t to) {
    if (depth > kMostGroups) return bad_input("a regular expression: groups in more than 64 levels");
    do {
      uint32_t state = from;
      INVAR_CHECK_OK(sequence(state, depth));
      b_.skip(state, to);
    } while (take('|'));
    return {};
  }
  Status sequence(uint32_t& state, int depth) {
    while (!ends() && next() != '|' && next() != ')' && next() != '$') {
      if (b_.full() || ++parsed_ > kMostParsed) return too_large();
      INVAR_CHECK_OK(repeated(state, depth));
    }
    return {};
  }
  // An atom and how often it is there. What is repeated is read as often.
  Status repeated(uint32_t& state, int depth) {
    const size_t atom_at = at_;
    uint32_t last = b_.add();  // behind the copies so far
    const uint32_t begin = b_.add(), out = b_.add();
    b_.skip(state, begin);
    INVAR_CHECK_OK(atom(begin, depth, last));
    int least = 1, most = 1;
    const size_t quantifier = at_;
    INVAR_CHECK_OK(take_repeats(least, most));
    if (at_ > quantifier) take('?');  // lazy: the same texts
    const size_t behind = at_;
    const auto once_more = [&](uint32_t to) {
      if (b_.full() || ++parsed_ > kMostParsed) return too_large();
      at_ = atom_at;
      return atom(last, depth, to);
    };
    if (least == 0) b_.skip(begin, out);
    for (int copies = 1; most != 0; ++copies) {
      if (copies >= least) b_.skip(last, out);
      if (copies == std::max(most, std::max(least, 1))) break;
      const uint32_t next = b_.add();
      INVAR_CHECK_OK(once_more(next));
      last = next;
    }
    if (most < 0) {
      INVAR_CHECK_OK(once_more(last));
    }
    at_ = behind, state = out;
    return {};
  }
  static Status too_large() { return bad_input("a regular expression: too large: make its repeats shorter"); }
  // most: -1 where there is no bound.
  Status take_repeats(int& least, int& most) {
    if (take('?')) return least = 0, most = 1, Status();
    if (take('*')) return least = 0, most = -1, Status();
    if (take('+')) return least = 1, most = -1, Status();
    if (next() != '{') return {};
    const size_t begin = at_++;
    const auto number = [&]() -> std::optional<int> {
      if (next() < '0' || next() > '9') return std::nullopt;
      int n = 0;
      for (; next() >= '0' && next() <= '9'; ++at_) n = std::min(n * 10 + int(next() - '0'), 1 << 20);
      return n;
    };
    const auto a = number();
    if (a && take('}')) return least = most = *a, bounds(least, most);
    if (a && take(',')) {
      const auto b = number();
      if (take('}')) return least = *a, most = b ? *b : -1, bounds(least, most);
    }
    at_ = begin;
    return refused("a brace");
  }
  static Status bounds(int least, int most) {
    if (least > kMostRepeats || most > kMostRepeats || (most >= 0 && least > most))
      return bad_input("a regular expression: repeats are {m,n} with m <= n <= " +
                       std::to_string(kMostRepeats));
    return {};
  }

  Status atom(uint32_t from, int depth, uint32_t to) {
    if (take('(')) {
      if (!take(U"?:") && next() == '?') return refused("a group");
      INVAR_CHECK_OK(alternatives(from, depth + 1, to));
      return take(')') ? Status() : refused("a group that does not end,");
    }
    if (take('.')) return b_.code_point(from, complement(kLineEnds), spelling_, to), Status();
    if (take('[')) return character_class(from, to);
    if (take('\\')) {
      List list;
      INVAR_CHECK_OK(escape(list, false));
      return b_.code_point(from, normal(std::move(list)), spelling_, to), Status();
    }
    if (std::u32string_view(U"^*+?{}]").find(next()) != std::u32string_view::npos) return refused("what is");
    const uint32_t c = text_[at_++];
    return b_.code_point(from, normal({{c, c}}), spelling_, to), Status();
  }
  Status character_class(uint32_t from, uint32_t to) {
    const bool excludes = take('^');
    List list;
    while (!take(']')) {
      if (ends()) return refused("a class that does not end,");
      List first;
      INVAR_CHECK_OK(class_member(first));
      if (next() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        List last;
        INVAR_CHECK_OK(class_member(last));
        const auto single = [](const List& l) { return l.size() == 1 && l[0].first == l[0].last; };
        if (!single(first) || !single(last) || first[0].first > last[0].first)
          return refused("a range before that");
        first[0].last = last[0].last;
      }
      list.insert(list.end(), first.begin(), first.end());
    }
    list = excludes ? complement(std::move(list)) : normal(std::move(list));
    b_.code_point(from, list, spelling_, to);
    return {};
  }
  Status class_member(List& list) {
    if (take('\\')) return escape(list, true);
    if (next() == '[') return refused("a bracket within a class,");
    const uint32_t c = text_[at_++];
    return list.push_back({c, c}), Status();
  }
  // Behind the backslash.
  Status escape(List& list, bool in_class) {
    static constexpr std::u32string_view kLetters = U"tnvfr", kMeanings = U"\t\n\v\f\r",
                                         kPlain = U"^$\\.*+?()[]{}|/-\"'#&,:;<=>@_`~!% ";
    if (ends()) return refused("a backslash");
    const char32_t c = text_[at_++];
    if (const size_t k = kLetters.find(c); k != kLetters.npos)
      return list.push_back({kMeanings[k], kMeanings[k]}), Status();
    if (c == 'd') return list = kDigits, Status();
    if (c == 'D') return list = complement(kDigits), Status();
    if (c == 'w') return list = kWord, Status();
    if (c == 'W') return list = complement(kWord), Status();
    if (c == 's') return list = kSpace, Status();
    if (c == 'S') return list = complement(kSpace), Status();
    if (c == 'b' && in_class) return list.push_back({8, 8}), Status();
    if (c == '0' && !(next() >= '0' && next() <= '9')) return list.push_back({0, 0}), Status();
    if (c == 'x' || c == 'u') {
      uint32_t value = 0;
      for (int i = 0; i < (c == 'x' ? 2 : 4); ++i, ++at_) {
        const char32_t h = next() | 0x20;
        if (next() >= '0' && next() <= '9')
          value = value * 16 + (next() - '0');
        else if (h >= 'a' && h <= 'f')
          value = value * 16 + (h - 'a' + 10);
        else
          return refused("an escape");
      }
      return list.push_back({value, value}), Status();
    }
    if (kPlain.find(c) != kPlain.npos) return list.push_back({c, c}), Status();
    --at_;
    return refused("an escape");
  }

  NfaBuilder& b_;
  const std::u32string text_;
  const Spelling spelling_;
  size_t at_ = 0, parsed_ = 0;
};

}  // namespace

Status add_pattern(NfaBuilder& b, uint32_t from, std::string_view pattern, Spelling spelling, bool searched,
                   uint32_t to) {
  if (valid_prefix(pattern) != pattern.size()) return bad_input("a regular expression: not UTF-8");
  std::u32string text;
  for (size_t at = 0; at < pattern.size();) text += decode_utf8(pattern, at);
  return PatternReader(b, std::move(text), spelling).whole(from, searched, to);
}

}  // namespace invar::grammar
