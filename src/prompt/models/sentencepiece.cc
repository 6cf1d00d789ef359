// The models of SentencePiece files, see sentencepiece.h.
#include "prompt/models/sentencepiece.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>

#include "base/text/utf8.h"

namespace invar::prompt {
namespace {

// Appends pieces to ids: an unknown one becomes its bytes, or one token with those next to it.
class Output {
 public:
  Output(const Pieces& pieces, std::vector<int32_t>& ids) : pieces_(pieces), ids_(ids) {}
  void add(std::string_view text, int32_t id) {
    const bool unknown = id == pieces_.unk;
    if (unknown && pieces_.byte_fallback) {
      for (const char b : text) ids_.push_back(pieces_.byte_id[static_cast<uint8_t>(b)]);
    } else if (!unknown || !after_unknown_) {
      ids_.push_back(id);
    }
    after_unknown_ = unknown;
  }

 private:
  const Pieces& pieces_;
  std::vector<int32_t>& ids_;
  bool after_unknown_ = false;
};

class SentencePieceBpe : public Model {
 public:
  explicit SentencePieceBpe(std::shared_ptr<const Pieces> pieces) : pieces_(std::move(pieces)) {}
  Status encode(std::string_view word, std::vector<int32_t>& out, Scratch&) const override;

 private:
  struct Symbol {
    int32_t previous, next;
    size_t begin, length;  // length 0: joined to the one before
    bool frozen;
  };
  struct Pair {
    float score;
    int32_t left, right;
    size_t length;
    bool operator<(const Pair& o) const { return score < o.score || (score == o.score && left > o.left); }
  };
  using Splits = std::unordered_map<std::string_view, size_t>;  // of unused pieces: where they were joined

  int32_t id_of(std::string_view text) const {
    uint32_t node = Trie::kRoot;
    return pieces_->words.walk(node, text) ? pieces_->words.value(node) : kNone;
  }
  void give(std::string_view text, const Splits& splits, Output& out) const;

  std::shared_ptr<const Pieces> pieces_;
};

Status SentencePieceBpe::encode(std::string_view word, std::vector<int32_t>& out, Scratch&) const {
  std::vector<Symbol> s;
  for (size_t at = 0; at < word.size();) {
    size_t end = at;
    const size_t fixed = pieces_->user_defined_at(word.substr(at));
    if (fixed) {
      end = at + fixed;
    } else {
      decode_utf8(word, end);
    }
    const auto i = static_cast<int32_t>(s.size());
    s.push_back({i - 1, end == word.size() ? -1 : i + 1, at, end - at, fixed > 0});
    at = end;
  }
  std::priority_queue<Pair> pairs;
  Splits splits;
  const auto consider = [&](int32_t left, int32_t right) {
    if (left < 0 || right < 0 || s[left].frozen || s[right].frozen) return;
    const std::string_view joined = word.substr(s[left].begin, s[left].length + s[right].length);
    const int32_t id = id_of(joined);
    if (id == kNone) return;
    pairs.push({pieces_->list[id].score, left, right, joined.size()});
    if (pieces_->list[id].type == Piece::unused) splits[joined] = s[left].length;
  };
  for (int32_t i = 0; i + 1 < static_cast<int32_t>(s.size()); ++i) consider(i, i + 1);
  while (!pairs.empty()) {
    const Pair p = pairs.top();
    pairs.pop();
    Symbol &left = s[p.left], &right = s[p.right];
    if (left.length == 0 || right.length == 0 || left.length + right.length != p.length) continue;
    left.length = p.length, left.next = right.next;
    if (right.next >= 0) s[right.next].previous = p.left;
    right.length = 0;
    consider(left.previous, p.left);
    consider(p.left, left.next);
  }
  Output output(*pieces_, out);
  for (int32_t i = 0; i >= 0; i = s[i].next) give(word.substr(s[i].begin, s[i].length), splits, output);
  return {};
}

// An unused piece is taken apart again, the parts too.
void SentencePieceBpe::give(std::string_view text, const Splits& splits, Output& out) const {
  std::vector<std::string_view> open{text};
  while (!open.empty()) {
    const std::string_view t = open.back();
    open.pop_back();
    const int32_t id = id_of(t);
    const auto split = splits.find(t);
    if (id == kNone) {
      out.add(t, pieces_->unk);
    } else if (pieces_->list[id].type != Piece::unused || split == splits.end()) {
      out.add(t, id);
    } else {
      open.push_back(t.substr(split->second));
      open.push_back(t.substr(0, split->second));
    }
  }
}

class SentencePieceUnigram : public Model {
 public:
  explicit SentencePieceUnigram(std::shared_ptr<const Pieces> pieces) : pieces_(std::move(pieces)) {
    float least = std::numeric_limits<float>::max();
    for (const Piece& p : pieces_->list)
      if (p.type == Piece::normal) least = std::min(least, p.score);
    unk_score_ = least - 10.0f;
  }
  Status encode(std::string_view word, std::vector<int32_t>& out, Scratch& scratch) const override;

 private:
  std::shared_ptr<const Pieces> pieces_;
  float unk_score_;
};

// Works as tokens.14, but rounds every sum to 32 bits (tokens.16).
Status SentencePieceUnigram::encode(std::string_view word, std::vector<int32_t>& out,
                                    Scratch& scratch) const {
  auto& best = scratch.best;
  best.assign(word.size() + 1, {0, kNone, 0});
  const auto consider = [&](size_t end, float score, size_t from, int32_t id) {
    Scratch::Best& b = best[end];
    if (b.from == kNone || score > b.score) b = {score, static_cast<int32_t>(from), id};
  };
  for (size_t at = 0; at < word.size();) {
    size_t next = at;
    decode_utf8(word, next);
    const double so_far = best[at].score;
    bool whole = false;
    uint32_t node = Trie::kRoot;
    for (size_t i = at; i < word.size() && pieces_->words.step(node, static_cast<uint8_t>(word[i])); ++i) {
      const int32_t id = pieces_->words.value(node);
      if (id == Trie::kNone || pieces_->list[id].type == Piece::unused) continue;
      const Piece& p = pieces_->list[id];
      const float score = p.type == Piece::user_defined ? 0.1f * static_cast<float>(i - at) : p.score;
      consider(i + 1, score + static_cast<float>(so_far), at, id);
      whole = whole || i + 1 == next;
    }
    if (!whole) consider(next, unk_score_ + static_cast<float>(so_far), at, pieces_->unk);
    at = next;
  }
  std::vector<int32_t>& ends = scratch.ids;
  ends.clear();
  for (auto end = static_cast<int32_t>(word.size()); end > 0; end = best[end].from) ends.push_back(end);
  Output output(*pieces_, out);
  size_t begin = 0;
  for (size_t i = ends.size(); i-- > 0; begin = static_cast<size_t>(ends[i]))
    output.add(word.substr(begin, static_cast<size_t>(ends[i]) - begin), best[ends[i]].id);
  return {};
}

}  // namespace

Pieces::Pieces(std::vector<Piece> pieces) : list(std::move(pieces)) {
  std::map<std::string_view, int32_t> all, fixed;
  byte_id.fill(Model::kNone);
  for (size_t i = 0; i < list.size(); ++i) {
    const Piece& p = list[i];
    const auto id = static_cast<int32_t>(i);
    if (p.type == Piece::unknown) unk = id;
    if (p.type == Piece::user_defined) fixed.emplace(p.text, id);
    if (p.type == Piece::normal || p.type == Piece::user_defined || p.type == Piece::unused)
      all.emplace(p.text, id);
    for (int b = 0; p.type == Piece::byte && b < 256; ++b)
      if (p.text == byte_token(static_cast<uint8_t>(b))) byte_id[b] = id;
  }
  words = Trie({all.begin(), all.end()});
  user_defined = Trie({fixed.begin(), fixed.end()});
}

size_t Pieces::user_defined_at(std::string_view text) const {
  size_t length = 0;
  uint32_t node = Trie::kRoot;
  for (size_t i = 0; i < text.size() && user_defined.step(node, static_cast<uint8_t>(text[i])); ++i)
    if (user_defined.value(node) != Trie::kNone) length = i + 1;
  return length;
}

std::unique_ptr<const Model> make_sentencepiece_bpe(std::shared_ptr<const Pieces> pieces) {
  return std::make_unique<SentencePieceBpe>(std::move(pieces));
}
std::unique_ptr<const Model> make_sentencepiece_unigram(std::shared_ptr<const Pieces> pieces) {
  return std::make_unique<SentencePieceUnigram>(std::move(pieces));
}

}  // namespace invar::prompt
