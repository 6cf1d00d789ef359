// Byte-pair merges of one word, see bpe.h.
#include "prompt/models/bpe.h"

#include <algorithm>

#include "base/text/display.h"
#include "base/text/utf8.h"

namespace invar::prompt {
namespace {

constexpr size_t kShort = 24;  // symbols up to which a scan for the lowest rank beats a heap
constexpr uint32_t kNoRank = UINT32_MAX;

constexpr bool written_as_itself(uint32_t b) {
  return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
}

struct ByteTable {
  std::array<uint16_t, 256> character{};
  std::array<int16_t, 0x144> byte{};
  constexpr ByteTable() {
    for (int16_t& b : byte) b = -1;
    uint16_t next = 0x100;
    for (uint32_t b = 0; b < 256; ++b) {
      character[b] = static_cast<uint16_t>(written_as_itself(b) ? b : next++);
      byte[character[b]] = static_cast<int16_t>(b);
    }
  }
};
constexpr ByteTable kBytes;

}  // namespace

uint32_t character_of_byte(uint8_t b) {
  return kBytes.character[b];
}

int byte_of_character(uint32_t c) {
  return c < kBytes.byte.size() ? kBytes.byte[c] : -1;
}

bool bytes_of_token(std::string_view token, std::string& bytes) {
  bytes.clear();
  for (size_t i = 0; i < token.size();) {
    const int b = byte_of_character(decode_utf8(token, i));
    if (b < 0) return false;
    bytes += static_cast<char>(b);
  }
  return true;
}

std::string characters_of_bytes(std::string_view bytes) {
  std::string out;
  out.reserve(2 * bytes.size());
  for (const char b : bytes) append_utf8(out, character_of_byte(static_cast<uint8_t>(b)));
  return out;
}

std::string byte_token(uint8_t byte) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  return {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
}

Status Bpe::encode(std::string_view word, std::vector<int32_t>& out, Scratch& scratch) const {
  if (whole_words) {
    scratch.key.assign(word);
    if (auto it = word_id.find(scratch.key); it != word_id.end()) return out.push_back(it->second), Status();
  }
  const size_t first = out.size();
  if (!of_bytes) {
    INVAR_CHECK_OK(start_with_characters(word, out, scratch));
  } else if (const int byte = start_with_bytes(word, out); byte >= 0) {
    return bad_input("the tokenizer has no token for the byte " + std::to_string(byte) +
                     " of the text, and no unknown token");
  }
  if (out.size() - first <= kShort) {
    merge_short(out, first, scratch);
  } else {
    merge_long(out, first, scratch);
  }
  return {};
}

// Appends the token of each byte. Returns the first byte that has none, or -1.
int Bpe::start_with_bytes(std::string_view word, std::vector<int32_t>& out) const {
  bool after_unk = false;
  for (char c : word) {
    const auto b = static_cast<uint8_t>(c);
    const int32_t id = byte_id[b];
    if (id != kNone) {
      out.push_back(id);
    } else if (unk == kNone) {
      return b;
    } else if (!fuse_unk || !after_unk) {
      out.push_back(unk);
    }
    after_unk = id == kNone;
  }
  return -1;
}

// Appends the token of each character. As in tokenizers an unknown token waits for the next
// character that has a token, even where bytes stand between the two.
Status Bpe::start_with_characters(std::string_view word, std::vector<int32_t>& out, Scratch& scratch) const {
  const bool placed = !prefix.empty() || !suffix.empty();
  bool waiting = false;
  for (size_t at = 0; at < word.size();) {
    const size_t begin = at;
    const uint32_t c = decode_utf8(word, at);
    uint32_t place = kFirst;
    if (placed && begin > 0) place |= kLater;
    if (placed && at == word.size()) place |= kLast;
    if (const int32_t* id = characters.find(c, place)) {
      if (waiting) out.push_back(unk);
      waiting = false;
      out.push_back(*id);
    } else if (!byte_fallback || !fall_back(c, place, out, scratch)) {
      if (unk == kNone)
        return bad_input("the tokenizer has no token for the character \"" +
                         excerpt(word.substr(begin, at - begin)) + "\" of the text, and no unknown token");
      if (waiting && !fuse_unk) out.push_back(unk);
      waiting = true;
    }
  }
  if (waiting) out.push_back(unk);
  return {};
}

// Appends the tokens of the character's bytes, if all have one.
bool Bpe::fall_back(uint32_t c, uint32_t place, std::vector<int32_t>& out, Scratch& scratch) const {
  std::string& bytes = scratch.key;
  bytes.assign(place & kLater ? prefix : std::string());
  append_utf8(bytes, c);
  if (place & kLast) bytes += suffix;
  for (const char b : bytes)
    if (fallback_id[static_cast<uint8_t>(b)] == kNone) return false;
  for (const char b : bytes) out.push_back(fallback_id[static_cast<uint8_t>(b)]);
  return true;
}

// Both merge the pair of lowest rank, the leftmost among equals, until no pair is left.
void Bpe::merge_short(std::vector<int32_t>& out, size_t first, Scratch& scratch) const {
  auto& ranks = scratch.ranks;
  int32_t* ids = out.data() + first;
  size_t n = out.size() - first;
  const auto rank = [&](size_t i) {
    const Merge* m = i + 1 < n ? merges.find(ids[i], ids[i + 1]) : nullptr;
    return m ? m->rank : kNoRank;
  };
  ranks.resize(n);
  for (size_t i = 0; i < n; ++i) ranks[i] = rank(i);
  while (n > 1) {
    const size_t i = std::min_element(ranks.begin(), ranks.begin() + n - 1) - ranks.begin();
    if (ranks[i] == kNoRank) break;
    ids[i] = merges.find(ids[i], ids[i + 1])->merged;
    std::copy(ids + i + 2, ids + n, ids + i + 1);
    std::copy(ranks.begin() + i + 2, ranks.begin() + n, ranks.begin() + i + 1);
    --n;
    ranks[i] = rank(i);
    if (i > 0) ranks[i - 1] = rank(i - 1);
  }
  out.resize(first + n);
}

void Bpe::merge_long(std::vector<int32_t>& out, size_t first, Scratch& scratch) const {
  auto& s = scratch.symbols;
  auto& heap = scratch.heap;
  const auto later = [](const Scratch::Candidate& a, const Scratch::Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
  };
  const auto merge_at = [&](int32_t at) {
    return at < 0 || s[at].next < 0 ? nullptr : merges.find(s[at].id, s[s[at].next].id);
  };
  const auto consider = [&](int32_t at) {
    const Merge* m = merge_at(at);
    if (m) heap.push_back({m->rank, at, m->merged});
    return m != nullptr;
  };
  const auto n = static_cast<int32_t>(out.size() - first);
  s.resize(n);
  heap.clear();
  for (int32_t i = 0; i < n; ++i) s[i] = {out[first + i], i - 1, i + 1 < n ? i + 1 : -1};
  for (int32_t i = 0; i < n; ++i) consider(i);
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    const Scratch::Candidate c = heap.front();
    std::pop_heap(heap.begin(), heap.end(), later);
    heap.pop_back();
    const int32_t right = s[c.at].next;
    const Merge* m = s[c.at].id == kNone ? nullptr : merge_at(c.at);
    if (!m || m->merged != c.merged) continue;  // overtaken by another merge
    s[c.at].id = c.merged;
    s[c.at].next = s[right].next;
    if (s[right].next >= 0) s[s[right].next].previous = c.at;
    s[right].id = kNone;
    if (consider(s[c.at].previous)) std::push_heap(heap.begin(), heap.end(), later);
    if (consider(c.at)) std::push_heap(heap.begin(), heap.end(), later);
  }
  out.resize(first);
  for (int32_t i = 0; i >= 0; i = s[i].next) out.push_back(s[i].id);
}

}  // namespace invar::prompt
