#include "generate/engine/stop_strings.h"

#include <algorithm>
#include <utility>

namespace invar::generate {

StopStrings::StopStrings(const prompt::Tokenizer& tokenizer, std::span<const std::string> texts,
                         std::span<const int32_t> prompt, bool in_answer)
    : stream_(tokenizer, /*skip_special_tokens=*/false), texts_(texts) {
  if (texts_.empty()) return;
  for (const int32_t token : prompt) ends(token);
  if (in_answer) recent_.clear();
}

bool StopStrings::ends(int32_t token) {
  if (texts_.empty()) return false;
  const size_t before = recent_.size();
  recent_ += stream_.push(token);
  size_t longest = 0;
  bool found = false;
  for (const std::string& text : texts_) {
    longest = std::max(longest, text.size());
    // The first place whose end lies within what is new.
    const size_t from = before >= text.size() ? before - text.size() + 1 : 0;
    found |= recent_.find(text, from) != std::string::npos;
  }
  if (recent_.size() >= longest) recent_.erase(0, recent_.size() - (longest - 1));
  return found;
}

std::string StopView::push(std::string_view piece) {
  if (found_) return "";
  std::string shown;
  for (const char byte : piece) {
    held_ += byte;
    size_t match = 0, begun = 0;  // of the texts, the longest that ends here, that may have begun here
    for (const std::string& text : texts_) {
      if (held_.ends_with(text)) match = std::max(match, text.size());
      for (size_t n = std::min(text.size() - 1, held_.size()); n > begun; --n)
        if (held_.ends_with(std::string_view(text).substr(0, n))) begun = n;
    }
    if (match > 0) {
      found_ = true, stop_ = held_.substr(held_.size() - match);
      return shown + held_.substr(0, include_ ? held_.size() : held_.size() - match);
    }
    shown += held_.substr(0, held_.size() - begun);
    held_.erase(0, held_.size() - begun);
  }
  return shown;
}

std::string StopView::finish() {
  return found_ ? "" : std::exchange(held_, "");
}

std::string stop_view(std::string_view text, std::span<const std::string> texts, bool include) {
  StopView view(texts, include);
  const std::string shown = view.push(text);
  return shown + view.finish();
}

size_t stop_string_length(const prompt::Tokenizer& tokenizer, std::span<const std::string> texts,
                          std::span<const int32_t> prompt, std::span<const int32_t> answer, bool in_answer) {
  StopStrings stop(tokenizer, texts, prompt, in_answer);
  const auto end = std::ranges::find_if(answer, [&](int32_t token) { return stop.ends(token); });
  return end == answer.end() ? 0 : static_cast<size_t>(end - answer.begin()) + 1;
}

}  // namespace invar::generate
