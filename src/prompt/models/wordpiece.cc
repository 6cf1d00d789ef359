// WordPiece and WordLevel, see wordpiece.h.
#include "prompt/models/wordpiece.h"

#include <map>

#include "base/text/utf8.h"

namespace invar::prompt {

WordPiece::WordPiece(const std::unordered_map<std::string, int32_t>& vocabulary, int32_t unk,
                     std::string_view prefix, size_t longest)
    : unk_(unk), longest_(longest) {
  std::map<std::string_view, int32_t> ids;
  for (const auto& [token, id] : vocabulary)
    if (!token.empty()) ids.emplace(token, id);
  trie_ = Trie({ids.begin(), ids.end()});
  goes_on_ = trie_.walk(go_on_, prefix);
}

Status WordPiece::encode(std::string_view word, std::vector<int32_t>& out, Scratch&) const {
  const size_t first = out.size();
  size_t characters = 0;
  for (const char b : word) characters += (static_cast<uint8_t>(b) & 0xC0) != 0x80;
  bool made = characters <= longest_;
  for (size_t at = 0; made && at < word.size();) {
    uint32_t node = at == 0 ? Trie::kRoot : go_on_;
    int32_t id = Trie::kNone;
    size_t end = at;
    if (at == 0 || goes_on_) {
      for (size_t i = at; i < word.size() && trie_.step(node, static_cast<uint8_t>(word[i])); ++i)
        if (trie_.value(node) != Trie::kNone) id = trie_.value(node), end = i + 1;
    }
    made = id != Trie::kNone;
    if (made) out.push_back(id);
    at = end;
  }
  if (!made) {
    out.resize(first);
    out.push_back(unk_);
  }
  return {};
}

Status WordLevel::encode(std::string_view word, std::vector<int32_t>& out, Scratch& scratch) const {
  scratch.key.assign(word);
  const auto it = vocabulary_.find(scratch.key);
  out.push_back(it == vocabulary_.end() ? unk_ : it->second);
  return {};
}

}  // namespace invar::prompt
