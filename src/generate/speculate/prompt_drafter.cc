// Drafts by prompt lookup: what followed the last tokens the last time.
#include <algorithm>

#include "generate/speculate/drafter.h"

namespace invar::generate {
namespace {

constexpr size_t kLeastMatch = 2, kLongestMatch = 16;  // tokens

class PromptDrafter final : public Drafter {
 public:
  std::vector<int32_t> propose(const sample::Context& known, const sample::Params&, int64_t most) override {
    tokens_.assign(known.prompt.begin(), known.prompt.end());
    tokens_.insert(tokens_.end(), known.answer.begin(), known.answer.end());
    const size_t size = tokens_.size();
    size_t longest = kLeastMatch - 1, at = 0;  // the draft begins at tokens_[at]
    for (size_t end = size; end-- > kLeastMatch;) {
      size_t match = 0;
      while (match < std::min(end, kLongestMatch) && tokens_[end - 1 - match] == tokens_[size - 1 - match])
        ++match;
      if (match > longest) longest = match, at = end;
      if (longest == kLongestMatch) break;
    }
    std::vector<int32_t> draft;
    if (longest < kLeastMatch) return draft;
    for (int64_t i = 0; i < most; ++i, ++at)  // a text that repeats goes on in its own draft
      draft.push_back(at < size ? tokens_[at] : draft[at - size]);
    return draft;
  }

 private:
  std::vector<int32_t> tokens_;
};

}  // namespace

std::unique_ptr<Drafter> prompt_drafter() {
  return std::make_unique<PromptDrafter>();
}

}  // namespace invar::generate
