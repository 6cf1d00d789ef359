// Tables of BPE models, see bpe_tables.h.
#include "prompt/models/bpe_tables.h"

#include "base/text/utf8.h"

namespace invar::prompt {
namespace {

int32_t id_in(const std::unordered_map<std::string, int32_t>& ids, const std::string& name) {
  const auto it = ids.find(name);
  return it == ids.end() ? Bpe::kNone : it->second;
}

// The one character between the parts around it; false if that is not what the token is.
bool character_within(std::string_view token, std::string_view before, std::string_view after, uint32_t& c) {
  if (token.size() <= before.size() + after.size() || !token.starts_with(before) || !token.ends_with(after))
    return false;
  token = token.substr(before.size(), token.size() - before.size() - after.size());
  size_t at = 0;
  c = decode_utf8(token, at);
  return at == token.size();
}

void fill_characters(const std::unordered_map<std::string, int32_t>& ids, Bpe& bpe) {
  const bool placed = !bpe.prefix.empty() || !bpe.suffix.empty();
  for (const auto& [token, id] : ids)
    for (uint32_t place = 0; place < (placed ? 4 : 1); ++place) {
      uint32_t c;
      if (character_within(token, place & Bpe::kLater ? bpe.prefix : "", place & Bpe::kLast ? bpe.suffix : "",
                           c))
        bpe.characters.set(c, place, id);
    }
}

}  // namespace

void fill_tables(const std::unordered_map<std::string, int32_t>& ids, Bpe& bpe) {
  for (int b = 0; b < 256; ++b) {
    std::string name;
    append_utf8(name, character_of_byte(static_cast<uint8_t>(b)));
    bpe.byte_id[b] = id_in(ids, name);
    bpe.fallback_id[b] = id_in(ids, byte_token(static_cast<uint8_t>(b)));
  }
  if (!bpe.of_bytes) fill_characters(ids, bpe);
  if (!bpe.whole_words) return;
  std::string bytes;
  for (const auto& [token, id] : ids) {
    if (!bpe.of_bytes) {
      bpe.word_id.emplace(token, id);
    } else if (bytes_of_token(token, bytes)) {
      bpe.word_id.emplace(bytes, id);
    }
  }
}

bool never_merges_before(uint32_t character, const std::unordered_map<std::string, int32_t>& ids,
                         const Bpe& bpe) {
  std::string name;
  append_utf8(name, character);
  const bool plain = bpe.prefix.empty() && bpe.suffix.empty() && !bpe.whole_words;
  if (!plain || !bpe.characters.find(character, Bpe::kFirst)) return false;
  // The tokens that begin or end with it, by id.
  enum : uint8_t { kBegins = 1, kEnds = 2 };
  std::unordered_map<int32_t, uint8_t> how;
  for (const auto& [token, id] : ids) {
    if (token.starts_with(name)) how[id] |= kBegins;
    if (token.ends_with(name)) how[id] |= kEnds;
  }
  const auto has = [&](int32_t id, uint8_t bit) {
    const auto it = how.find(id);
    return it != how.end() && (it->second & bit);
  };
  if (bpe.unk != Bpe::kNone && has(bpe.unk, kEnds)) return false;  // it can stand for anything
  bool never = true;
  bpe.merges.each([&](uint32_t left, uint32_t right) {
    if (has(static_cast<int32_t>(right), kBegins) && !has(static_cast<int32_t>(left), kEnds)) never = false;
  });
  return never;
}

}  // namespace invar::prompt
