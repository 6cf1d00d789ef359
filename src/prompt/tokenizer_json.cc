// tokenizer.json -> Tokenizer::Impl. Everything the file asks for is done, or refused by name.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/text/display.h"
#include "base/text/utf8.h"
#include "prompt/tokenizer_model.h"
#include "prompt/unicode/unicode.h"

namespace invar::prompt {

namespace {

using Json = nlohmann::json;
using Vocabulary = std::unordered_map<std::string, int32_t>;
constexpr int kDeepest = 8;  // Sequence within Sequence

Error wrong(const std::string& where, const std::string& what) {
  return bad_input(where + ": " + what);
}
Error refused(const std::string& where, const std::string& what) {
  return not_covered(where + ": " + what + " is not supported");
}

// The member of an object, or null.
const Json& member(const Json& o, const char* name) {
  static const Json null;
  if (!o.is_object()) return null;
  auto it = o.find(name);
  return it == o.end() ? null : *it;
}

// A value within an error: never a whole tree, whose printing would recurse as deep as the file
// says.
std::string brief(const Json& v) {
  if (v.is_string()) return excerpt(v.get_ref<const std::string&>());
  return v.is_primitive() ? excerpt(v.dump()) : v.type_name();
}

Result<std::string> text_of(const Json& o, const char* name, const std::string& where) {
  const Json& v = member(o, name);
  if (!v.is_string()) return wrong(where, std::string(name) + " must be a string");
  return v.get<std::string>();
}

Result<bool> flag_of(const Json& o, const char* name, const std::string& where,
                     std::optional<bool> fallback = {}) {
  const Json& v = member(o, name);
  if (v.is_null() && fallback) return *fallback;
  if (!v.is_boolean()) return wrong(where, std::string(name) + " must be true or false");
  return v.get<bool>();
}

// A token id; otherwise what is wrong with the value.
Result<int32_t> id_of(const Json& v) {
  if (!v.is_number_integer()) return bad_input("a token id must be an integer");
  if (v.is_number_unsigned() ? v.get<uint64_t>() > INT32_MAX : v.get<int64_t>() < 0)
    return bad_input("the token id " + brief(v) + " is out of range");
  return static_cast<int32_t>(v.get<int64_t>());
}

class Reader {
 public:
  Reader(const Json& root, std::string_view file)
      : root_(root), file_(file), impl_(std::make_unique<Impl>()) {}

  Result<std::unique_ptr<Tokenizer::Impl>> read() {
    if (!root_.is_object()) return wrong(file_, "a tokenizer must be a JSON object");
    if (const Json& v = member(root_, "version"); !v.is_null() && v != "1.0")
      return refused(file_, "version " + brief(v));
    INVAR_CHECK_OK(model());
    INVAR_CHECK_OK(normalizer(member(root_, "normalizer"), file_ + ": normalizer", 0));
    INVAR_CHECK_OK(pre_tokenizer(member(root_, "pre_tokenizer"), file_ + ": pre_tokenizer", 0));
    if (!byte_level_) return refused(file_, "a pre_tokenizer without ByteLevel");
    INVAR_CHECK_OK(decoder());
    INVAR_CHECK_OK(added_tokens());
    INVAR_CHECK_OK(padding());
    INVAR_CHECK_OK(post_processor(member(root_, "post_processor"), file_ + ": post_processor", 0));
    return std::move(impl_);
  }

 private:
  using Impl = Tokenizer::Impl;

  Status model() {
    const std::string where = file_ + ": model";
    const Json& m = member(root_, "model");
    if (!m.is_object()) return wrong(where, "must be an object");
    if (const Json& type = member(m, "type"); !type.is_null() && type != "BPE")
      return refused(where, "type " + brief(type) + " (only BPE)");
    if (const Json& d = member(m, "dropout"); !d.is_null() && d != 0) return refused(where, "dropout");
    for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (const Json& v = member(m, name); !v.is_null() && v != "") return refused(where, name);
    INVAR_TRY(const bool fallback, flag_of(m, "byte_fallback", where, false));
    if (fallback) return refused(where, "byte_fallback");
    INVAR_TRY(impl_->bpe.whole_words, flag_of(m, "ignore_merges", where, false));
    INVAR_TRY(impl_->bpe.fuse_unk, flag_of(m, "fuse_unk", where, false));
    INVAR_CHECK_OK(vocabulary(member(m, "vocab"), where + ".vocab"));
    INVAR_CHECK_OK(merges(member(m, "merges"), where + ".merges"));
    if (const Json& unk = member(m, "unk_token"); !unk.is_null()) {
      INVAR_TRY(const std::string name, text_of(m, "unk_token", where));
      auto it = ids_.find(name);
      if (it == ids_.end())
        return wrong(where, "unk_token \"" + excerpt(name) + "\" is not in the vocabulary");
      impl_->bpe.unk = it->second;
    }
    return {};
  }

  Status vocabulary(const Json& vocab, const std::string& where) {
    if (!vocab.is_object() || vocab.empty()) return wrong(where, "must be an object of tokens and ids");
    ids_.reserve(vocab.size() + 64);
    // An id may be missing, but a hole of any size would let a few bytes of input ask for
    // gigabytes.
    most_ids_ = 2 * vocab.size() + 100000;
    for (const auto& [token, value] : vocab.items()) {
      const auto id = id_of(value);
      if (!id) return wrong(where + "[\"" + excerpt(token) + "\"]", id.error().message);
      INVAR_CHECK_OK(place(*id, token, where));
      ids_.emplace(token, *id);
    }
    std::string bytes;
    for (int b = 0; b < 256; ++b) {
      std::string name;
      append_utf8(name, character_of_byte(static_cast<uint8_t>(b)));
      auto it = ids_.find(name);
      impl_->bpe.byte_id[b] = it == ids_.end() ? Bpe::kNone : it->second;
    }
    for (const auto& [token, id] : ids_)
      if (impl_->bpe.whole_words && bytes_of_token(token, bytes)) impl_->bpe.word_id.emplace(bytes, id);
    return {};
  }

  // Makes `content` the token of this id.
  Status place(int32_t id, const std::string& content, const std::string& where) {
    if (static_cast<size_t>(id) >= most_ids_)
      return wrong(where, "the token id " + std::to_string(id) + " of \"" + excerpt(content) +
                              "\" is far above the number of tokens");
    if (static_cast<size_t>(id) >= impl_->tokens.size()) impl_->tokens.resize(id + 1);
    Impl::Token& t = impl_->tokens[id];
    if (t.exists) return wrong(where, "the token id " + std::to_string(id) + " is given twice");
    t.exists = true;
    if (!bytes_of_token(content, t.bytes)) t.bytes = content;
    return {};
  }

  Status merges(const Json& merges, const std::string& where) {
    if (!merges.is_array()) return wrong(where, "must be an array");
    uint32_t rank = 0;
    for (size_t i = 0; i < merges.size(); ++i) {
      const auto here = [&] { return where + "[" + std::to_string(i) + "]"; };
      const Json& m = merges[i];
      std::string left, right;
      if (m.is_string()) {
        const auto& s = m.get_ref<const std::string&>();
        if (s.starts_with("#version")) continue;
        const size_t space = s.find(' ');
        if (space == std::string::npos || s.find(' ', space + 1) != std::string::npos)
          return wrong(here(), "\"" + excerpt(s) + "\" is not two tokens with one space between");
        left = s.substr(0, space), right = s.substr(space + 1);
      } else if (m.is_array() && m.size() == 2 && m[0].is_string() && m[1].is_string()) {
        left = m[0].get<std::string>(), right = m[1].get<std::string>();
      } else {
        return wrong(here(), "must be \"left right\" or [\"left\", \"right\"]");
      }
      int32_t id[3];
      const std::string* part[3] = {&left, &right, nullptr};
      const std::string both = left + right;
      part[2] = &both;
      for (int k = 0; k < 3; ++k) {
        auto it = ids_.find(*part[k]);
        if (it == ids_.end()) return wrong(here(), "\"" + excerpt(*part[k]) + "\" is not in the vocabulary");
        id[k] = it->second;
      }
      impl_->bpe.merges.set(id[0], id[1], {rank++, id[2]});
    }
    return {};
  }

  Status normalizer(const Json& n, const std::string& where, int depth) {
    if (n.is_null()) return {};
    INVAR_TRY(const std::string type, text_of(n, "type", where));
    if (type == "NFC") return impl_->nfc = true, Status();
    if (type != "Sequence") return refused(where, "type " + excerpt(type));
    return each(n, "normalizers", where, depth,
                [&](const Json& v, const std::string& w) { return normalizer(v, w, depth + 1); });
  }

  // Calls f(element, its place) for every element of an array member of a Sequence.
  template <class F>
  Status each(const Json& o, const char* name, const std::string& where, int depth, F&& f) {
    const Json& list = member(o, name);
    if (!list.is_array()) return wrong(where, std::string(name) + " must be an array");
    if (depth >= kDeepest) return wrong(where, "Sequence is nested too deeply");
    for (size_t i = 0; i < list.size(); ++i)
      INVAR_CHECK_OK(f(list[i], where + "." + name + "[" + std::to_string(i) + "]"));
    return {};
  }

  Status pre_tokenizer(const Json& p, const std::string& where, int depth) {
    if (p.is_null()) return {};
    INVAR_TRY(const std::string type, text_of(p, "type", where));
    if (type == "Sequence")
      return each(p, "pretokenizers", where, depth,
                  [&](const Json& v, const std::string& w) { return pre_tokenizer(v, w, depth + 1); });
    if (byte_level_) return refused(where, type + " after ByteLevel");
    if (type == "ByteLevel") {
      byte_level_ = true;
      INVAR_TRY(impl_->pre.prefix_space, flag_of(p, "add_prefix_space", where));
      INVAR_TRY(const bool use_regex, flag_of(p, "use_regex", where, true));
      if (!use_regex) return {};
      static constexpr char kGpt2[] =
          R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
      INVAR_TRY(Regex regex, Regex::pattern(kGpt2));
      impl_->pre.byte_level.push_back(Split{std::move(regex), Behavior::isolated, false, "of ByteLevel"});
      return {};
    }
    if (type == "Digits") {
      INVAR_TRY(const bool individual, flag_of(p, "individual_digits", where));
      impl_->pre.steps.emplace_back(Digits{individual});
      return {};
    }
    if (type == "Split") return split(p, where);
    return refused(where, "type " + excerpt(type));
  }

  Status split(const Json& p, const std::string& where) {
    static const std::pair<const char*, Behavior> kBehaviors[] = {
        {"Isolated", Behavior::isolated},
        {"Removed", Behavior::removed},
        {"MergedWithPrevious", Behavior::merged_with_previous},
        {"MergedWithNext", Behavior::merged_with_next},
        {"Contiguous", Behavior::contiguous}};
    INVAR_TRY(const std::string behavior, text_of(p, "behavior", where));
    auto b = std::find_if(std::begin(kBehaviors), std::end(kBehaviors),
                          [&](auto& k) { return behavior == k.first; });
    if (b == std::end(kBehaviors)) return refused(where, "behavior " + excerpt(behavior));
    INVAR_TRY(const bool invert, flag_of(p, "invert", where));
    const Json& pattern = member(p, "pattern");
    const bool is_regex = pattern.is_object() && pattern.contains("Regex");
    INVAR_TRY(const std::string text, text_of(pattern, is_regex ? "Regex" : "String", where + ".pattern"));
    if (text.empty()) return refused(where, "an empty pattern");
    auto regex = is_regex ? Regex::pattern(text) : Regex::literal(text);
    if (!regex) return Error{regex.error().code, where + ": " + regex.error().message};
    impl_->pre.steps.emplace_back(Split{*std::move(regex), b->second, invert, excerpt(text)});
    return {};
  }

  Status decoder() {
    const std::string where = file_ + ": decoder";
    bool byte_level = false;
    INVAR_CHECK_OK(decoder(member(root_, "decoder"), where, 0, byte_level));
    return byte_level ? Status() : refused(where, "a decoder without ByteLevel");
  }

  Status decoder(const Json& d, const std::string& where, int depth, bool& byte_level) {
    if (d.is_null()) return {};
    INVAR_TRY(const std::string type, text_of(d, "type", where));
    if (type == "Sequence")
      return each(d, "decoders", where, depth,
                  [&](const Json& v, const std::string& w) { return decoder(v, w, depth + 1, byte_level); });
    if (type == "ByteLevel" && !byte_level) return byte_level = true, Status();
    if (type == "Fuse" && byte_level) return {};  // ByteLevel has already joined everything
    return refused(where, "type " + excerpt(type));
  }

  // What the vocabulary lacks gets the next free id, in the order of the file, as in Hugging Face
  // tokenizers. They do so whatever id the file says; one that says another is refused.
  Status added_tokens() {
    const Json& list = member(root_, "added_tokens");
    if (list.is_null()) return {};
    if (!list.is_array()) return wrong(file_ + ": added_tokens", "must be an array");
    const auto vocabulary = static_cast<int32_t>(ids_.size());
    int32_t next = vocabulary;
    std::vector<AddedToken> tokens;
    std::unordered_set<std::string> seen;
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string where = file_ + ": added_tokens[" + std::to_string(i) + "]";
      INVAR_TRY(AddedToken t, added_token(list[i], where));
      const std::string name = "\"" + excerpt(t.content) + "\"";
      if (!seen.insert(t.content).second) return wrong(where, name + " is given twice");
      auto known = ids_.find(t.content);
      const int32_t id = known != ids_.end() ? known->second : next;
      if (id != t.id)
        return wrong(where, name + " has the id " + std::to_string(t.id) + " here, but " +
                                (known != ids_.end() ? "in the vocabulary " : "the next free one is ") +
                                std::to_string(id));
      if (known == ids_.end()) {
        most_ids_ += 2;
        INVAR_CHECK_OK(place(t.id, t.content, where));
        ids_.emplace(t.content, t.id);
      }
      if (t.id >= vocabulary) next = std::max(next, t.id + 1);
      tokens.push_back(std::move(t));
    }
    for (const AddedToken& t : tokens)
      if (t.special) impl_->tokens[t.id].special = true;
    for (const bool special :
         {true, false})  // of equal strings the first one counts, and special ones come first
      for (const AddedToken& t : tokens)
        if (t.special == special) {
          AddedTokenMatcher& m = t.normalized ? impl_->normalized : impl_->raw;
          m.add(t, t.normalized && impl_->nfc ? nfc(t.content) : t.content);
        }
    impl_->added = std::move(tokens);
    return {};
  }

  // Nothing is padded, but transformers makes this token a special one.
  Status padding() {
    const Json& token = member(member(root_, "padding"), "pad_token");
    if (!token.is_string() || token == "") return {};
    const auto& content = token.get_ref<const std::string&>();
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

  Status post_processor(const Json& p, const std::string& where, int depth) {
    if (p.is_null()) return {};
    INVAR_TRY(const std::string type, text_of(p, "type", where));
    if (type == "ByteLevel") return {};  // changes offsets only
    if (type == "Sequence")
      return each(p, "processors", where, depth,
                  [&](const Json& v, const std::string& w) { return post_processor(v, w, depth + 1); });
    if (type != "TemplateProcessing") return refused(where, "type " + excerpt(type));
    std::vector<int32_t> ids;
    const Json& pieces = member(p, "single");
    if (!pieces.is_array()) return wrong(where, "single must be an array");
    for (size_t i = 0; i < pieces.size(); ++i)
      INVAR_CHECK_OK(template_piece(pieces[i], member(p, "special_tokens"),
                                    where + ".single[" + std::to_string(i) + "]", ids));
    const auto texts = std::count(ids.begin(), ids.end(), Impl::kText);
    if (texts != 1) return refused(where, "a template with the text " + std::to_string(texts) + " times");
    impl_->templates.push_back(std::move(ids));
    return {};
  }

  Status template_piece(const Json& piece, const Json& special_tokens, const std::string& where,
                        std::vector<int32_t>& ids) {
    if (const Json& s = member(piece, "Sequence"); s.is_object()) {
      if (member(s, "id") != "A") return refused(where, "a sequence other than A");
      ids.push_back(Impl::kText);
      return {};
    }
    INVAR_TRY(const std::string name, text_of(member(piece, "SpecialToken"), "id", where));
    const Json& list = member(member(special_tokens, name.c_str()), "ids");
    if (!list.is_array()) return wrong(where, "\"" + excerpt(name) + "\" is not among special_tokens");
    for (const Json& v : list) {
      const auto id = id_of(v);
      if (!id) return wrong(where, id.error().message);
      if (static_cast<size_t>(*id) >= impl_->tokens.size() || !impl_->tokens[*id].exists)
        return wrong(where, "the token id " + std::to_string(*id) + " does not exist");
      ids.push_back(*id);
    }
    return {};
  }

  const Json& root_;
  std::string file_;
  std::unique_ptr<Impl> impl_;
  Vocabulary ids_;
  size_t most_ids_ = 0;
  bool byte_level_ = false;
};

}  // namespace

Result<std::unique_ptr<Tokenizer::Impl>> read_tokenizer(std::string_view json, std::string_view file) {
  Json root;
  try {
    root = Json::parse(json);
  } catch (const Json::parse_error& e) {
    return bad_input(std::string(file) + ": not valid JSON at byte " + std::to_string(e.byte) + " of " +
                     std::to_string(json.size()));
  } catch (const Json::exception& e) {  // a number out of range
    return bad_input(std::string(file) + ": not valid JSON: a number is out of range");
  }
  return Reader(root, file).read();
}

}  // namespace invar::prompt
