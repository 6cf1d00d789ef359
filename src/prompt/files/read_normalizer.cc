// The member normalizer of tokenizer.json (spec/tokens.md tokens.12).
#include "prompt/files/base64.h"
#include "prompt/files/readers.h"

namespace invar::prompt {
namespace {

Error at_place(const std::string& where, const Error& e) {
  return Error{e.code, where + ": " + e.message};
}

Result<NormalizerPtr> read_replace_normalizer(const Json& n, const std::string& where) {
  INVAR_TRY(const PatternText pattern, pattern_of(n, where));
  INVAR_TRY(std::string content, text_of(n, "content", where));
  auto replacement = pattern.is_regex ? Replacement::pattern(pattern.text, std::move(content))
                                      : Replacement::literal(pattern.text, std::move(content));
  if (!replacement) return at_place(where, replacement.error());
  return make_replace(*std::move(replacement));
}

Result<NormalizerPtr> read_precompiled(const Json& n, const std::string& where) {
  INVAR_TRY(const std::string text, text_of(n, "precompiled_charsmap", where));
  const auto bytes = base64_decode(text);
  if (!bytes) return wrong(where, "precompiled_charsmap is not base64");
  auto map = Charsmap::parse(*bytes);
  if (!map) return at_place(where + ".precompiled_charsmap", map.error());
  return make_precompiled(*std::move(map));
}

Result<NormalizerPtr> read_bert(const Json& n, const std::string& where) {
  BertOptions o;
  INVAR_TRY(o.clean_text, flag_of(n, "clean_text", where));
  INVAR_TRY(o.handle_chinese_chars, flag_of(n, "handle_chinese_chars", where));
  INVAR_TRY(o.lowercase, flag_of(n, "lowercase", where));
  INVAR_TRY(o.strip_accents, flag_of(n, "strip_accents", where, o.lowercase));
  return make_bert_normalizer(o);
}

Result<NormalizerPtr> read_one_normalizer(const std::string& type, const Json& n, const std::string& where) {
  if (type == "NFC") return make_unicode_normalizer(Form::nfc);
  if (type == "NFD") return make_unicode_normalizer(Form::nfd);
  if (type == "NFKC") return make_unicode_normalizer(Form::nfkc);
  if (type == "NFKD") return make_unicode_normalizer(Form::nfkd);
  if (type == "Lowercase") return make_lowercase();
  if (type == "StripAccents") return make_strip_accents();
  if (type == "Nmt") return make_nmt();
  if (type == "ByteLevel") return make_byte_level_normalizer();
  if (type == "Replace") return read_replace_normalizer(n, where);
  if (type == "Precompiled") return read_precompiled(n, where);
  if (type == "BertNormalizer") return read_bert(n, where);
  if (type == "Prepend") {
    INVAR_TRY(std::string prefix, text_of(n, "prepend", where));
    return make_prepend(std::move(prefix));
  }
  if (type == "Strip") {
    INVAR_TRY(const bool left, flag_of(n, "strip_left", where));
    INVAR_TRY(const bool right, flag_of(n, "strip_right", where));
    return make_strip(left, right);
  }
  return refused(where, "type " + excerpt(type));
}

}  // namespace

Status read_normalizer(const Json& n, const std::string& where, std::vector<NormalizerPtr>& out, int depth) {
  if (n.is_null()) return {};
  INVAR_TRY(const std::string type, text_of(n, "type", where));
  if (type == "Sequence")
    return each(n, "normalizers", where, depth,
                [&](const Json& v, const std::string& w) { return read_normalizer(v, w, out, depth + 1); });
  INVAR_CHECK_OK(expect_few(out.size() + 1, where));
  INVAR_TRY(NormalizerPtr normalizer, read_one_normalizer(type, n, where));
  out.push_back(std::move(normalizer));
  return {};
}

Result<PatternText> pattern_of(const Json& o, const std::string& where) {
  const Json& pattern = member(o, "pattern");
  const bool is_regex = pattern.is_object() && pattern.contains("Regex");
  INVAR_TRY(std::string text, text_of(pattern, is_regex ? "Regex" : "String", where + ".pattern"));
  if (text.empty()) return refused(where, "an empty pattern");
  return PatternText{std::move(text), is_regex};
}

}  // namespace invar::prompt
