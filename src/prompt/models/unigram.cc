// The most likely cut of a word, see unigram.h.
#include "prompt/models/unigram.h"

#include <algorithm>
#include <map>

#include "base/text/display.h"
#include "base/text/utf8.h"

namespace invar::prompt {
namespace {

constexpr double kUnknownPenalty = 10;

}  // namespace

Unigram::Unigram(const std::vector<std::pair<std::string, double>>& pieces, int32_t unk, bool byte_fallback)
    : unk_(unk), byte_fallback_(byte_fallback) {
  std::map<std::string_view, int32_t> ids;  // of equal pieces the last one counts
  double least = 0;
  for (size_t id = 0; id < pieces.size(); ++id) {
    const auto& [piece, score] = pieces[id];
    if (!piece.empty()) ids[piece] = static_cast<int32_t>(id);
    scores_.push_back(score);
    least = id == 0 ? score : std::min(least, score);
  }
  unk_score_ = least - kUnknownPenalty;
  trie_ = Trie({ids.begin(), ids.end()});
  for (int b = 0; b < 256; ++b) {
    const auto it = ids.find(byte_token(static_cast<uint8_t>(b)));
    byte_id_[b] = it == ids.end() ? kNone : it->second;
  }
}

Status Unigram::encode(std::string_view word, std::vector<int32_t>& out, Scratch& scratch) const {
  INVAR_CHECK_OK(find_best(word, scratch));
  const auto& best = scratch.best;
  // Backwards: the ends of the pieces, a run of unknown characters being one piece.
  std::vector<int32_t>& ends = scratch.ids;
  ends.clear();
  bool after_unk = false;
  for (auto end = static_cast<int32_t>(word.size()); end > 0; end = best[end].from) {
    const bool is_unk = best[end].id == unk_;
    if (!is_unk || !after_unk) ends.push_back(end);
    after_unk = is_unk;
  }
  size_t begin = 0;
  for (size_t i = ends.size(); i-- > 0;) {
    const auto end = static_cast<size_t>(ends[i]);
    if (best[end].id != unk_) {
      out.push_back(best[end].id);
    } else {
      INVAR_CHECK_OK(append_unknown(word.substr(begin, end - begin), out));
    }
    begin = end;
  }
  return {};
}

// Fills best[end] for the end of every character. Paths are sums of doubles from the left, in the
// order of the text; of equal sums the one found first stays: shorter pieces come first
// (tokens.14).
Status Unigram::find_best(std::string_view word, Scratch& scratch) const {
  auto& best = scratch.best;
  best.assign(word.size() + 1, {0, kNone, 0});
  const auto consider = [&](size_t end, double score, size_t from, int32_t id) {
    Scratch::Best& b = best[end];
    if (b.from == kNone || score > b.score) b = {score, static_cast<int32_t>(from), id};
  };
  for (size_t at = 0; at < word.size();) {
    size_t next = at;
    decode_utf8(word, next);
    const double so_far = best[at].score;
    bool whole = false;  // the character is a piece by itself
    uint32_t node = Trie::kRoot;
    for (size_t i = at; i < word.size() && trie_.step(node, static_cast<uint8_t>(word[i])); ++i) {
      const int32_t id = trie_.value(node);
      if (id == Trie::kNone) continue;
      consider(i + 1, scores_[id] + so_far, at, id);
      whole = whole || i + 1 == next;
    }
    if (!whole) {
      if (unk_ == kNone)
        return bad_input("the tokenizer has no token for the character \"" +
                         excerpt(word.substr(at, next - at)) + "\" of the text, and no unknown token");
      consider(next, unk_score_ + so_far, at, unk_);
    }
    at = next;
  }
  return {};
}

// The piece itself where a run of unknown characters is one, else its bytes, else the unknown
// token.
Status Unigram::append_unknown(std::string_view text, std::vector<int32_t>& out) const {
  uint32_t node = Trie::kRoot;
  if (trie_.walk(node, text) && trie_.value(node) != Trie::kNone) {
    out.push_back(trie_.value(node));
    return {};
  }
  const auto has_token = [&](char b) { return byte_id_[static_cast<uint8_t>(b)] != kNone; };
  if (byte_fallback_ && std::all_of(text.begin(), text.end(), has_token)) {
    for (const char b : text) out.push_back(byte_id_[static_cast<uint8_t>(b)]);
  } else {
    out.push_back(unk_);
  }
  return {};
}

}  // namespace invar::prompt
