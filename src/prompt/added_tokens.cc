// Matching of added tokens, see added_tokens.h.
#include "prompt/added_tokens.h"

#include <algorithm>

#include "base/text/utf8.h"
#include "prompt/unicode/unicode.h"

namespace invar::prompt {
namespace {

bool ends_with_word(std::string_view s) {
  if (s.empty()) return false;
  size_t at = previous_utf8(s, s.size());
  return is_word(decode_utf8(s, at));
}

bool starts_with_word(std::string_view s) {
  size_t at = 0;
  return !s.empty() && is_word(decode_utf8(s, at));
}

size_t space_before(std::string_view s) {  // where the white space at the end begins
  size_t at = s.size();
  while (at > 0) {
    const size_t p = previous_utf8(s, at);
    size_t next = p;
    if (!is_white_space(decode_utf8(s, next))) break;
    at = p;
  }
  return at;
}

size_t space_after(std::string_view s) {  // where the white space at the start ends
  size_t at = 0;
  while (at < s.size()) {
    size_t next = at;
    if (!is_white_space(decode_utf8(s, next))) break;
    at = next;
  }
  return at;
}

}  // namespace

void AddedTokenMatcher::add(const AddedToken& token, std::string_view content) {
  uint32_t node = 0;
  for (char c : content) {
    const auto byte = static_cast<uint8_t>(c);
    if (const uint32_t* n = next_.find(node, byte)) {
      node = *n;
    } else {
      const auto fresh = static_cast<uint32_t>(token_of_.size());
      next_.set(node, byte, fresh);
      token_of_.push_back(kNoToken);
      node = fresh;
    }
  }
  if (content.empty() || token_of_[node] != kNoToken) return;  // of equal strings the first one counts
  begins_[static_cast<uint8_t>(content[0])] = true;
  token_of_[node] = static_cast<uint32_t>(tokens_.size());
  tokens_.push_back({token.id, token.single_word, token.lstrip, token.rstrip});
}

void AddedTokenMatcher::split(std::string_view text, std::vector<Piece>& out) const {
  size_t done = 0;  // up to here the text is in `out`
  for (size_t at = 0; at < text.size() && !tokens_.empty();) {
    if (!begins_[static_cast<uint8_t>(text[at])]) {
      ++at;
      continue;
    }
    uint32_t node = 0, token = kNoToken;
    size_t stop = at;
    for (size_t i = at; i < text.size(); ++i) {
      const uint32_t* n = next_.find(node, static_cast<uint8_t>(text[i]));
      if (!n) break;
      node = *n;
      if (token_of_[node] != kNoToken) token = token_of_[node], stop = i + 1;
    }
    if (token == kNoToken) {
      ++at;
      continue;
    }
    size_t start = at;
    at = stop;
    const Flags& f = tokens_[token];
    if (f.single_word && (ends_with_word(text.substr(0, start)) || starts_with_word(text.substr(stop))))
      continue;
    if (f.lstrip) start = std::max(space_before(text.substr(0, start)), done);
    if (f.rstrip) stop += space_after(text.substr(stop));
    if (done < start) out.push_back({text.substr(done, start - done), -1});
    out.push_back({text.substr(start, stop - start), f.id});
    done = stop;
  }
  if (done < text.size()) out.push_back({text.substr(done), -1});
}

}  // namespace invar::prompt
