// Pre-tokenizers, see pretokenize.h.
#include "prompt/pretokenize.h"

#include <algorithm>

#include "base/text/utf8.h"
#include "prompt/unicode/unicode.h"

namespace invar::prompt {
namespace {

// A split turns the text into stretches, matches and what lies between; the behavior says which of
// them are joined to their neighbour or dropped. Stretches arrive in order.
class Stretches {
 public:
  Stretches(Behavior behavior, bool invert, std::string_view text, std::vector<std::string_view>& out)
      : behavior_(behavior), invert_(invert), text_(text), out_(out) {}

  void add(size_t begin, size_t end, bool match) {
    match = match != invert_;
    bool join = false;
    switch (behavior_) {
      case Behavior::isolated: break;
      case Behavior::removed:
        if (match) return;
        break;
      case Behavior::merged_with_previous: join = match && !previous_; break;
      case Behavior::merged_with_next: join = !match && held_alone_; break;
      case Behavior::contiguous: join = match == previous_; break;
    }
    // Of several matches in a row only the last is merged with what follows.
    held_alone_ = match;
    previous_ = match;
    if (join && held_) {
      end_ = end;
      return;
    }
    flush();
    begin_ = begin, end_ = end, held_ = true;
  }
  void flush() {
    if (held_ && end_ > begin_) out_.push_back(text_.substr(begin_, end_ - begin_));
    held_ = false;
  }

 private:
  Behavior behavior_;
  bool invert_;
  std::string_view text_;
  std::vector<std::string_view>& out_;
  bool previous_ = false, held_alone_ = false, held_ = false;
  size_t begin_ = 0, end_ = 0;
};

// Where the text is its matches and the rest in alternation, `find(at)` giving the next match.
template <class Find>
void walk(std::string_view text, Stretches& stretches, Find&& find) {
  size_t done = 0;
  while (const auto m = find()) {
    if (m->begin > done) stretches.add(done, m->begin, false);
    stretches.add(m->begin, m->end, true);
    done = m->end;
  }
  if (done < text.size()) stretches.add(done, text.size(), false);
  stretches.flush();
}

}  // namespace

Status PreTokenizers::split(const PreTokenizer& step, std::string_view text, Regex::Scratch& scratch,
                            std::vector<std::string_view>& out) {
  if (const Digits* d = std::get_if<Digits>(&step)) {
    Stretches stretches(d->individual ? Behavior::isolated : Behavior::contiguous, false, text, out);
    size_t at = 0;
    walk(text, stretches, [&]() -> std::optional<Regex::Match> {
      while (at < text.size()) {
        const size_t begin = at;
        if (is_number(decode_utf8(text, at))) return Regex::Match{begin, at};
      }
      return std::nullopt;
    });
    return {};
  }
  const Split& s = std::get<Split>(step);
  Stretches stretches(s.behavior, s.invert, text, out);
  size_t at = 0;
  size_t last = SIZE_MAX;  // where the match before ended: an empty match is not accepted there
  scratch.steps = 10000 + 500 * static_cast<int64_t>(text.size());
  walk(text, stretches, [&]() -> std::optional<Regex::Match> {
    while (at <= text.size()) {
      const auto m = s.regex.find(text, at, scratch);
      if (!m) return std::nullopt;
      if (m->begin == m->end && m->end == last) {
        if (at == text.size()) return std::nullopt;
        decode_utf8(text, at);
        continue;
      }
      at = last = m->end;
      return m;
    }
    return std::nullopt;
  });
  if (scratch.steps < 0)
    return not_covered("pattern " + s.shown + ": searching this text takes too many steps");
  return {};
}

}  // namespace invar::prompt
