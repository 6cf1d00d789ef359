// Syntax tree -> the matcher's instructions.
#include "base/text/display.h"
#include "base/text/utf8.h"
#include "prompt/regex/regex.h"
#include "prompt/regex/syntax.h"

namespace invar::prompt {

class Regex::Compiler {
 public:
  explicit Compiler(Regex& r) : r_(r) {}

  void emit(const Node& n) {
    if (too_big()) return;
    switch (n.kind) {
      case Node::empty: return;
      case Node::set: put(Code::chars, set(n.chars)); return;
      case Node::sequence:
        for (size_t i = 0; i < n.kids.size(); ++i) {
          // A run whose next character can never be the start of what follows gains nothing by
          // giving back.
          const Node& k = n.kids[i];
          if (k.kind == Node::repeat && k.kids[0].kind == Node::set && k.greed == Greed::greedy &&
              i + 1 < n.kids.size() && !nullable(n.kids[i + 1]) &&
              (first_set(n.kids[i + 1]) & k.kids[0].chars).empty() && k.max < 0) {
            run(k, Code::run_possessive);
          } else {
            emit(k);
          }
        }
        return;
      case Node::choice: choice(n); return;
      case Node::repeat: repeat(n); return;
      case Node::look: {
        const uint32_t start = put(n.negative ? Code::look_not : Code::look);
        emit(n.kids[0]);
        put(Code::look_end);
        r_.code_[start].x = here();
        return;
      }
      case Node::atomic:
        put(Code::atomic);
        emit(n.kids[0]);
        put(Code::atomic_end);
        return;
      case Node::line_start: put(Code::line_start); return;
      case Node::line_end: put(Code::line_end); return;
      case Node::text_start: put(Code::text_start); return;
      case Node::text_end: put(Code::text_end); return;
    }
  }

  uint32_t put(Code::Op op, uint32_t x = 0) {
    r_.code_.push_back({.op = op, .x = x});
    return here() - 1;
  }
  bool too_big() const { return r_.code_.size() > 20000; }

 private:
  uint32_t here() const { return static_cast<uint32_t>(r_.code_.size()); }

  uint32_t set(const CharSet& s) {
    for (size_t i = 0; i < known_.size(); ++i)
      if (known_[i] == s) return static_cast<uint32_t>(i);
    known_.push_back(s);
    r_.sets_.emplace_back(s);
    return static_cast<uint32_t>(known_.size() - 1);
  }

  void run(const Node& n, Code::Op op) {
    Code& c = r_.code_[put(op, set(n.kids[0].chars))];
    c.n[0] = static_cast<uint32_t>(n.min);
    c.n[1] = n.max < 0 ? kNoBound : static_cast<uint32_t>(n.max);
  }

  void choice(const Node& n) {
    const uint32_t start = put(Code::choose, static_cast<uint32_t>(r_.branches_.size()));
    const uint32_t index = r_.code_[start].x;
    r_.branches_.emplace_back();
    std::vector<uint32_t> exits;
    for (size_t i = 0; i < n.kids.size(); ++i) {
      const Node& k = n.kids[i];
      const uint64_t bit = 1ull << i;
      const CharSet first = nullable(k) ? CharSet::all() : first_set(k);
      Branches& b = r_.branches_[index];
      for (uint32_t c = 0; c < 128; ++c)
        if (first.contains(c)) b.by_byte[c] |= bit;
      if (!first.empty() && first.ranges().back().last >= 0x80) b.other |= bit;
      if (nullable(k)) b.at_end |= bit;
      b.target.push_back(here());
      emit(k);
      exits.push_back(put(Code::jump));
    }
    for (uint32_t e : exits) r_.code_[e].x = here();
  }

  void repeat(const Node& n) {
    const Node& k = n.kids[0];
    if (k.kind == Node::set) {
      run(n, n.greed == Greed::greedy ? Code::run
             : n.greed == Greed::lazy ? Code::run_lazy
                                      : Code::run_possessive);
      return;
    }
    const Code::Op split = n.greed == Greed::lazy ? Code::defer : Code::prefer;
    if (n.greed == Greed::possessive) put(Code::atomic);
    for (int i = 0; i < n.min && !too_big(); ++i) emit(k);
    if (n.max < 0) {
      const uint32_t loop = put(split);
      emit(k);
      put(Code::jump, loop);
      r_.code_[loop].x = here();
    }
    std::vector<uint32_t> exits;
    for (int i = n.min; i < n.max && !too_big(); ++i) {
      exits.push_back(put(split));
      emit(k);
    }
    for (uint32_t e : exits) r_.code_[e].x = here();
    if (n.greed == Greed::possessive) put(Code::atomic_end);
  }

  Regex& r_;
  std::vector<CharSet> known_;
};

Result<Regex> Regex::compile(const Node& n, std::string_view text) {
  Regex r;
  Compiler c(r);
  c.emit(n);
  c.put(Code::match);
  if (c.too_big()) return not_covered("pattern " + excerpt(text) + ": its repeats make it too large");
  return r;
}

Result<Regex> Regex::pattern(std::string_view pattern) {
  if (const size_t valid = valid_prefix(pattern); valid < pattern.size())
    return bad_input("not UTF-8 at byte " + std::to_string(valid));
  INVAR_TRY(Node n, parse_pattern(pattern));
  return compile(n, pattern);
}

Result<Regex> Regex::literal(std::string_view text) {
  return compile(literal_pattern(text), text);
}

}  // namespace invar::prompt
