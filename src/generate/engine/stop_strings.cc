#include "generate/engine/stop_strings.h"

#include <algorithm>

namespace invar::generate {

StopStrings::StopStrings(const prompt::Tokenizer& tokenizer, std::span<const std::string> texts,
                         std::span<const int32_t> prompt)
    : stream_(tokenizer, /*skip_special_tokens=*/false), texts_(texts) {
  if (texts_.empty()) return;
  for (const int32_t token : prompt) ends(token);
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

size_t stop_string_length(const prompt::Tokenizer& tokenizer, std::span<const std::string> texts,
                          std::span<const int32_t> prompt, std::span<const int32_t> answer) {
  StopStrings stop(tokenizer, texts, prompt);
  const auto end = std::ranges::find_if(answer, [&](int32_t token) { return stop.ends(token); });
  return end == answer.end() ? 0 : static_cast<size_t>(end - answer.begin()) + 1;
}

}  // namespace invar::generate
