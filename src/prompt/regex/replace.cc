// Replacement of matches, see replace.h.
#include "prompt/regex/replace.h"

#include "base/text/display.h"
#include "prompt/regex/matches.h"

namespace invar::prompt {

Result<Replacement> Replacement::literal(std::string_view text, std::string content) {
  INVAR_TRY(Regex regex, Regex::literal(text));
  Replacement r(std::move(regex), std::move(content), excerpt(text));
  r.plain_ = text;
  return r;
}

Result<Replacement> Replacement::pattern(std::string_view pattern, std::string content) {
  INVAR_TRY(Regex regex, Regex::pattern(pattern));
  return Replacement(std::move(regex), std::move(content), excerpt(pattern));
}

Result<bool> Replacement::apply(std::string_view text, std::string& out, Regex::Scratch& scratch) const {
  bool at_start = false;
  size_t done = 0;
  const size_t most = most_rewritten(text.size());
  const auto too_long = [&] {
    return not_covered("pattern " + shown_ + ": its replacements make this text too long");
  };
  if (!plain_.empty()) {
    for (size_t at; (at = text.find(plain_, done)) != text.npos; done = at + plain_.size()) {
      if (out.size() > most) return too_long();
      at_start |= at == 0;
      out.append(text, done, at - done);
      out += content_;
    }
  } else {
    Matches matches(regex_, text, scratch);
    while (const auto m = matches.next()) {
      if (out.size() > most) return too_long();
      at_start |= m->begin == 0 && m->end > 0;
      out.append(text, done, m->begin - done);
      out += content_;
      done = m->end;
    }
    if (matches.gave_up())
      return not_covered("pattern " + shown_ + ": searching this text takes too many steps");
  }
  out.append(text, done);
  return at_start;
}

}  // namespace invar::prompt
