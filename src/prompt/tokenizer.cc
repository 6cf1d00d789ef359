// Encoding and decoding of texts, see prompt.h.
#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text/json.h"
#include "base/text/utf8.h"
#include "prompt/tokenizer_impl.h"
#include "prompt/word_cache.h"

namespace invar::prompt {

struct EncodeScratch {
  WordCache cache;
  Model::Scratch model;
  PreTokenizer::Scratch pre;
  std::vector<AddedTokenMatcher::Piece> pieces, inner;
};

namespace {

// A scratch memory of the tokenizer's, given back at the end.
class Borrowed {
 public:
  explicit Borrowed(const Tokenizer::Impl& impl) : impl_(impl) {
    const std::lock_guard lock(impl_.scratch_mutex);
    if (impl_.scratch.empty()) {
      scratch_ = std::make_unique<EncodeScratch>();
    } else {
      scratch_ = std::move(impl_.scratch.back());
      impl_.scratch.pop_back();
    }
  }
  ~Borrowed() {
    const std::lock_guard lock(impl_.scratch_mutex);
    impl_.scratch.push_back(std::move(scratch_));
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  EncodeScratch* operator->() { return scratch_.get(); }

 private:
  const Tokenizer::Impl& impl_;
  std::unique_ptr<EncodeScratch> scratch_;
};

// The tokens with those of a post-processor around them.
std::vector<int32_t> applied(const std::vector<int32_t>& t, const std::vector<int32_t>& tokens,
                             bool special) {
  std::vector<int32_t> whole;
  whole.reserve(tokens.size() + t.size());
  for (int32_t id : t) {
    if (id == Tokenizer::Impl::kText) {
      whole.insert(whole.end(), tokens.begin(), tokens.end());
    } else if (special) {
      whole.push_back(id);
    }
  }
  return whole;
}

// The ids that a text names in decimal digits (tokens.19).
Result<std::vector<int32_t>> read_ids(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::vector<int32_t> ids;
  for (size_t at = 0; (at = text.find_first_not_of(kSpace, at)) != text.npos;) {
    const std::string_view word = text.substr(at, text.find_first_of(kSpace, at) - at);
    int32_t& id = ids.emplace_back();
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size() || id < 0)
      return bad_input("the model has no tokenizer, so a prompt is token ids, as \"1 15 300\"; " +
                       json::quote(word.substr(0, 40)) + " is none");
    at += word.size();
  }
  return ids;
}

}  // namespace

Tokenizer::Impl::Impl() = default;
Tokenizer::Impl::~Impl() = default;

Status Tokenizer::Impl::normalize(Normalizer::Text& text, Regex::Scratch& scratch_memory) const {
  const size_t most = most_rewritten(text.text.size());
  for (const NormalizerPtr& n : normalizers) {
    INVAR_CHECK_OK(n->apply(text, scratch_memory));
    if (text.text.size() > most) return not_covered("the tokenizer's normalizers make this text too long");
  }
  return {};
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::parse(std::string_view json, std::string_view file_name_for_errors) {
  INVAR_TRY(auto impl, read_tokenizer(json, file_name_for_errors));
  return Tokenizer(std::move(impl));
}

Result<Tokenizer> Tokenizer::parse_sentencepiece(std::string_view bytes,
                                                 std::string_view file_name_for_errors,
                                                 const EndTokens& ends) {
  INVAR_TRY(auto impl, read_sentencepiece(bytes, file_name_for_errors, ends));
  return Tokenizer(std::move(impl));
}

Result<Tokenizer> Tokenizer::parse_tiktoken(std::string_view text, std::string_view file_name_for_errors,
                                            std::string_view encoding) {
  INVAR_TRY(auto impl, read_tiktoken(text, file_name_for_errors, encoding));
  return Tokenizer(std::move(impl));
}

Tokenizer Tokenizer::of_ids() {
  auto impl = std::make_unique<Impl>();
  impl->of_ids = true;
  return Tokenizer(std::move(impl));
}

int32_t Tokenizer::vocab_size() const {
  return impl_->of_ids ? INT32_MAX : static_cast<int32_t>(impl_->tokens.size());
}

bool Tokenizer::is_special(int32_t token) const {
  return token >= 0 && static_cast<size_t>(token) < impl_->tokens.size() && impl_->tokens[token].special;
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  if (const size_t at = valid_prefix(text); at != text.size())
    return bad_input("the text is not valid UTF-8: byte " + std::to_string(at) + " of " +
                     std::to_string(text.size()) + "; convert it to UTF-8");
  if (text.size() > INT32_MAX / 2) return bad_input("the text is longer than 1 GiB");
  if (impl_->of_ids) return read_ids(text);

  std::vector<int32_t> out;
  out.reserve(text.size() / 3 + 16);
  Borrowed scratch(*impl_);
  Normalizer::Text normal;
  scratch->pieces.clear();
  impl_->raw.split(text, scratch->pieces);
  for (const AddedTokenMatcher::Piece& piece : scratch->pieces) {
    if (piece.id >= 0) {
      out.push_back(piece.id);
      continue;
    }
    std::string_view piece_text = piece.text;
    bool from_start = piece.text.data() == text.data();
    if (!impl_->normalizers.empty()) {
      normal.text.assign(piece.text);
      normal.from_start = from_start;
      INVAR_CHECK_OK(impl_->normalize(normal, scratch->pre.regex));
      piece_text = normal.text, from_start = normal.from_start;
    }
    scratch->inner.clear();
    impl_->normalized.split(piece_text, scratch->inner);
    for (const AddedTokenMatcher::Piece& p : scratch->inner) {
      if (p.id >= 0) {
        out.push_back(p.id);
        continue;
      }
      const Word word{p.text, from_start && p.text.data() == piece_text.data()};
      INVAR_CHECK_OK(pre_tokenize(impl_->pre_tokenizers, word, scratch->pre, [&](std::string_view w) {
        return scratch->cache.encode(*impl_->model, w, out, scratch->model);
      }));
      scratch->pre.texts.clear();
    }
  }
  for (const std::vector<int32_t>& t : impl_->templates) out = applied(t, out, add_special_tokens);
  return out;
}

Result<std::vector<std::optional<std::string>>> Tokenizer::token_bytes() const {
  std::vector<std::optional<std::string>> all(impl_->tokens.size());
  if (impl_->of_ids) return not_covered("the model has no tokenizer, so no token has bytes");
  for (size_t i = 0; i < all.size(); ++i) {
    const Impl::Token& t = impl_->tokens[i];
    if (!t.exists || t.special) continue;
    all[i] = t.text;
    for (const DecoderPtr& decoder : impl_->decoders)
      if (!decoder->alone(*all[i]))
        return not_covered("the bytes of this tokenizer's tokens depend on the tokens around them");
  }
  return all;
}

std::string Tokenizer::decode(std::span<const int32_t> tokens, bool skip_special_tokens) const {
  Stream stream(*this, skip_special_tokens);
  std::string text;
  for (int32_t t : tokens) stream.push(t, text);
  return text += stream.finish();
}

Stream::Stream(const Tokenizer& t, bool skip_special_tokens)
    : tokenizer_(&t),
      skip_special_(skip_special_tokens),
      decoders_(std::make_unique<DecoderStream>(t.impl_->decoders)) {}
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;
Stream::~Stream() = default;

void Stream::push(int32_t token, std::string& text) {
  if (tokenizer_->impl_->of_ids) {
    if (std::exchange(began_, true)) text += ' ';
    text += std::to_string(token);
    return;
  }
  const auto& tokens = tokenizer_->impl_->tokens;
  if (token < 0 || static_cast<size_t>(token) >= tokens.size()) return;
  const Tokenizer::Impl::Token& t = tokens[token];
  if (t.exists && !(skip_special_ && t.special)) decoders_->push(t.text, text);
}

std::string Stream::push(int32_t token) {
  std::string text;
  push(token, text);
  return text;
}

std::string Stream::finish() {
  std::string text;
  decoders_->finish(text);
  return text;
}

}  // namespace invar::prompt
