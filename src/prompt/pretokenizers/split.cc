// Split: cuts at the matches of a pattern.
#include "prompt/pretokenizers/stretches.h"
#include "prompt/regex/matches.h"

namespace invar::prompt {
namespace {

class Split : public PreTokenizer {
 public:
  Split(Regex regex, Behavior behavior, bool invert, std::string shown)
      : regex_(std::move(regex)), behavior_(behavior), invert_(invert), shown_(std::move(shown)) {}

  Status split(Word piece, Scratch& scratch, std::vector<Word>& out) const override {
    Stretches stretches(behavior_, invert_, piece, out);
    Matches matches(regex_, piece.text, scratch.regex);
    size_t done = 0;
    while (const auto m = matches.next()) {
      if (m->begin > done) stretches.add(done, m->begin, false);
      stretches.add(m->begin, m->end, true);
      done = m->end;
    }
    if (matches.gave_up())
      return not_covered("pattern " + shown_ + ": searching this text takes too many steps");
    if (done < piece.text.size()) stretches.add(done, piece.text.size(), false);
    stretches.flush();
    return {};
  }

 private:
  Regex regex_;
  Behavior behavior_;
  bool invert_;
  std::string shown_;  // the pattern, for errors
};

}  // namespace

PreTokenizerPtr make_split(Regex regex, Behavior behavior, bool invert, std::string shown) {
  return std::make_unique<Split>(std::move(regex), behavior, invert, std::move(shown));
}

}  // namespace invar::prompt
