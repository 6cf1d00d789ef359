// Encoding and decoding of texts, see prompt.h.
#include <algorithm>
#include <bit>
#include <deque>

#include "base/text/utf8.h"
#include "prompt/tokenizer_model.h"
#include "prompt/unicode/unicode.h"

namespace invar::prompt {
namespace {

uint64_t hash_of(std::string_view s) {
  uint64_t h = s.size();
  const char* p = s.data();
  size_t n = s.size();
  for (; n > 0; p += std::min<size_t>(n, 8), n -= std::min<size_t>(n, 8)) {
    uint64_t word = 0;
    __builtin_memcpy(&word, p, std::min<size_t>(n, 8));
    h = (std::rotl(h, 23) ^ word) * 0x9E3779B97F4A7C15u;
  }
  return h ^ h >> 29;
}

// Words seen before in this text: their tokens already stand in the output. Colliding words replace
// each other, so the size is bounded; it changes speed only.
class WordCache {
 public:
  explicit WordCache(size_t text_bytes)
      : slots_(std::bit_ceil(std::clamp<size_t>(text_bytes / 8, 16, size_t{1} << 16))) {}

  Status encode(const Bpe& bpe, std::string_view word, std::vector<int32_t>& out, Bpe::Scratch& scratch) {
    Slot* slot = nullptr;
    if (word.size() <= kLongest) {
      slot = &slots_[hash_of(word) & (slots_.size() - 1)];
      if (slot->word == word && slot->word.data()) {
        const size_t at = out.size();
        out.resize(at + slot->count);
        std::copy_n(out.begin() + slot->first, slot->count, out.begin() + at);
        return {};
      }
    }
    const size_t first = out.size();
    if (int byte = bpe.encode(word, out, scratch); byte >= 0)
      return bad_input("the tokenizer has no token for the byte " + std::to_string(byte) +
                       " of the text, and no unknown token");
    if (slot) *slot = {word, first, out.size() - first};
    return {};
  }

 private:
  static constexpr size_t kLongest = 128;
  struct Slot {
    std::string_view word;
    size_t first = 0, count = 0;
  };
  std::vector<Slot> slots_;
};

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::parse(std::string_view json, std::string_view file_name_for_errors) {
  INVAR_TRY(auto impl, read_tokenizer(json, file_name_for_errors));
  return Tokenizer(std::move(impl));
}

int32_t Tokenizer::vocab_size() const {
  return static_cast<int32_t>(impl_->tokens.size());
}

bool Tokenizer::is_special(int32_t token) const {
  return token >= 0 && token < vocab_size() && impl_->tokens[token].special;
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  if (const size_t at = valid_prefix(text); at != text.size())
    return bad_input("the text is not valid UTF-8: byte " + std::to_string(at) + " of " +
                     std::to_string(text.size()) + "; convert it to UTF-8");
  if (text.size() > INT32_MAX / 2) return bad_input("the text is longer than 1 GiB");

  std::vector<int32_t> out;
  out.reserve(text.size() / 3 + 16);
  WordCache cache(text.size());
  Bpe::Scratch bpe_scratch;
  PreTokenizers::Scratch pre_scratch;
  std::deque<std::string> normalized_texts;  // the cache refers to words in them
  std::vector<AddedTokenMatcher::Piece> pieces, inner;
  impl_->raw.split(text, pieces);
  for (const AddedTokenMatcher::Piece& piece : pieces) {
    inner.clear();
    if (piece.id >= 0) {
      inner.push_back(piece);
    } else if (impl_->nfc) {
      impl_->normalized.split(normalized_texts.emplace_back(nfc(piece.text)), inner);
    } else {
      impl_->normalized.split(piece.text, inner);
    }
    for (const AddedTokenMatcher::Piece& p : inner) {
      if (p.id >= 0) {
        out.push_back(p.id);
      } else {
        INVAR_CHECK_OK(impl_->pre.run(p.text, pre_scratch, [&](std::string_view word) {
          return cache.encode(impl_->bpe, word, out, bpe_scratch);
        }));
      }
    }
  }
  for (const std::vector<int32_t>& t : impl_->templates) {
    std::vector<int32_t> whole;
    whole.reserve(out.size() + t.size());
    for (int32_t id : t) {
      if (id == Impl::kText) {
        whole.insert(whole.end(), out.begin(), out.end());
      } else if (add_special_tokens) {
        whole.push_back(id);
      }
    }
    out = std::move(whole);
  }
  return out;
}

std::string Tokenizer::decode(std::span<const int32_t> tokens, bool skip_special_tokens) const {
  Stream stream(*this, skip_special_tokens);
  std::string text;
  for (int32_t t : tokens) text += stream.push(t);
  return text += stream.finish();
}

Stream::Stream(const Tokenizer& t, bool skip_special_tokens)
    : tokenizer_(&t), skip_special_(skip_special_tokens) {}

std::string Stream::push(int32_t token) {
  const auto& tokens = tokenizer_->impl_->tokens;
  std::string text;
  if (token < 0 || static_cast<size_t>(token) >= tokens.size()) return text;
  if (skip_special_ && tokens[token].special) return text;
  pending_ += tokens[token].bytes;
  pending_.erase(0, append_lossy(text, pending_, true));
  return text;
}

std::string Stream::finish() {
  std::string text;
  append_lossy(text, pending_, false);
  pending_.clear();
  return text;
}

}  // namespace invar::prompt
