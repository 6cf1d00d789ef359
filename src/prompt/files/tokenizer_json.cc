// tokenizer.json -> Tokenizer::Impl. Everything the file asks for is done, or refused by name.
#include <unordered_set>

#include "prompt/files/readers.h"
#include "prompt/models/bpe.h"

namespace invar::prompt {

Status Vocabulary::place(int32_t id, const std::string& content, const std::string& where) {
  if (static_cast<size_t>(id) >= most_ids_)
    return wrong(where, "the token id " + std::to_string(id) + " of \"" + excerpt(content) +
                            "\" is far above the number of tokens");
  if (static_cast<size_t>(id) >= tokens_.size()) tokens_.resize(id + 1);
  Tokenizer::Impl::Token& t = tokens_[id];
  if (t.exists) return wrong(where, "the token id " + std::to_string(id) + " is given twice");
  t.exists = true;
  t.text = content;
  ids_[content] = id;
  return {};
}

namespace {

class TokenizerReader {
 public:
  TokenizerReader(const Json& root, std::string_view file)
      : root_(root), file_(file), impl_(std::make_unique<Impl>()), vocabulary_(impl_->tokens) {}

  Result<std::unique_ptr<Tokenizer::Impl>> read() {
    if (!root_.is_object()) return wrong(file_, "a tokenizer must be a JSON object");
    if (const Json& v = member(root_, "version"); !v.is_null() && v != "1.0")
      return refused(file_, "version " + brief(v));
    PreTokenizerList pre;
    INVAR_CHECK_OK(read_pre_tokenizer(member(root_, "pre_tokenizer"), file_ + ": pre_tokenizer", pre));
    INVAR_TRY(impl_->model, read_model(member(root_, "model"), file_ + ": model", vocabulary_, pre));
    impl_->pre_tokenizers = std::move(pre.steps);
    INVAR_CHECK_OK(read_normalizer(member(root_, "normalizer"), file_ + ": normalizer", impl_->normalizers));
    INVAR_CHECK_OK(added_tokens());
    INVAR_CHECK_OK(decoder());
    INVAR_CHECK_OK(padding());
    INVAR_CHECK_OK(read_post_processor(member(root_, "post_processor"), file_ + ": post_processor",
                                       vocabulary_, *impl_));
    return std::move(impl_);
  }

 private:
  using Impl = Tokenizer::Impl;

  Status decoder() {
    DecoderList list;
    const Json& d = member(root_, "decoder");
    INVAR_CHECK_OK(read_decoder(d, file_ + ": decoder", list));
    if (d.is_null()) list.chain.push_back(make_join_with_spaces());
    impl_->decoders = std::move(list.chain);
    if (!list.bytes_first) return {};
    std::string bytes;
    for (Impl::Token& t : impl_->tokens)
      if (bytes_of_token(t.text, bytes)) t.text = bytes;
    return {};
  }

  // A token that the vocabulary lacks gets the next free id, in the order of the file, as in
  // Hugging Face tokenizers. They do so whatever id the file says; one that says another is
  // refused.
  Status added_tokens() {
    const Json& list = member(root_, "added_tokens");
    if (list.is_null()) return {};
    if (!list.is_array()) return wrong(file_ + ": added_tokens", "must be an array");
    const auto vocabulary = static_cast<int32_t>(vocabulary_.ids().size());
    int32_t next = vocabulary;
    std::vector<AddedToken> tokens;
    std::unordered_set<std::string> seen;
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string where = file_ + ": added_tokens[" + std::to_string(i) + "]";
      INVAR_TRY(AddedToken t, added_token(list.items[i], where));
      const std::string name = "\"" + excerpt(t.content) + "\"";
      if (!seen.insert(t.content).second) return wrong(where, name + " is given twice");
      const int32_t known = vocabulary_.find(t.content);
      const int32_t id = known != Model::kNone ? known : next;
      if (id != t.id)
        return wrong(where, name + " has the id " + std::to_string(t.id) + " here, but " +
                                (known != Model::kNone ? "in the vocabulary " : "the next free one is ") +
                                std::to_string(id));
      if (known == Model::kNone) {
        vocabulary_.expect(1);
        INVAR_CHECK_OK(vocabulary_.place(t.id, t.content, where));
      }
      if (t.id >= vocabulary) next = std::max(next, t.id + 1);
      tokens.push_back(std::move(t));
    }
    INVAR_CHECK_OK(match(tokens));
    impl_->added = std::move(tokens);
    return {};
  }

  // A token that is sought in normalized text is normalized itself, and decodes to that (tokens.8).
  Status match(const std::vector<AddedToken>& tokens) {
    std::unordered_set<std::string> special_texts;
    for (const AddedToken& t : tokens)
      if (t.special) special_texts.insert(t.content);
    Regex::Scratch scratch;
    for (const bool special :
         {true, false})  // of equal strings the first one counts, and special ones come first
      for (const AddedToken& t : tokens) {
        if (t.special != special) continue;
        Normalizer::Text text{t.content};
        if (t.normalized) {
          INVAR_CHECK_OK(impl_->normalize(text, scratch));
        }
        (t.normalized ? impl_->normalized : impl_->raw).add(t, text.text);
        impl_->tokens[t.id].text = std::move(text.text);
      }
    for (Impl::Token& t : impl_->tokens) t.special = t.exists && special_texts.contains(t.text);
    return {};
  }

  // Nothing is padded, but transformers makes this token a special one.
  Status padding() {
    const Json& token = member(member(root_, "padding"), "pad_token");
    if (!token.is_string() || token == "") return {};
    const std::string& content = token.text;
    for (const AddedToken& t : impl_->added)
      if (t.special && t.content == content) return {};
    return refused(file_ + ": padding",
                   "a pad_token \"" + excerpt(content) + "\" that is no special added token");
  }

  Result<AddedToken> added_token(const Json& o, const std::string& where) {
    AddedToken t;
    if (!o.is_object()) return wrong(where, "must be an object");
    const auto id = id_of(member(o, "id"));
    if (!id) return wrong(where, id.error().message);
    t.id = *id;
    INVAR_TRY(t.content, text_of(o, "content", where));
    if (t.content.empty()) return wrong(where, "an empty token");
    INVAR_TRY(t.special, flag_of(o, "special", where));
    INVAR_TRY(t.single_word, flag_of(o, "single_word", where));
    INVAR_TRY(t.lstrip, flag_of(o, "lstrip", where));
    INVAR_TRY(t.rstrip, flag_of(o, "rstrip", where));
    INVAR_TRY(t.normalized, flag_of(o, "normalized", where));
    return t;
  }

  const Json& root_;
  std::string file_;
  std::unique_ptr<Impl> impl_;
  Vocabulary vocabulary_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer::Impl>> read_tokenizer(std::string_view text, std::string_view file) {
  const std::string where(file);
  const size_t skipped = json::mark_length(text);
  json::Failure failure;
  auto root = json::parse(text.substr(skipped), file, &failure);
  if (!root && failure.why == json::Failure::depth) return wrong(where, "nested too deeply");
  if (!root && failure.why == json::Failure::count) return root.error();
  if (!root)
    return wrong(where, "not valid JSON at byte " + std::to_string(skipped + failure.byte) + " of " +
                            std::to_string(text.size()));
  if (!json::normalize(*root, json::Order::by_name, /*spell=*/false))
    return wrong(where, "not valid JSON: a number is out of range");
  return TokenizerReader(*root, file).read();
}

}  // namespace invar::prompt
