// The member post_processor of tokenizer.json (spec/tokens.md tokens.7).
#include "prompt/files/readers.h"

namespace invar::prompt {
namespace {

constexpr int32_t kText = Tokenizer::Impl::kText, kSecond = Tokenizer::Impl::kSecond;
using PairPiece = Tokenizer::Impl::PairPiece;

Result<int32_t> known_id(const Json& v, const std::string& where, const Vocabulary& vocabulary) {
  const auto id = id_of(v);
  if (!id) return wrong(where, id.error().message);
  if (!vocabulary.has(*id)) return wrong(where, "the token id " + std::to_string(*id) + " does not exist");
  return *id;
}

Status template_piece(const Json& piece, const Json& special_tokens, const std::string& where,
                      const Vocabulary& vocabulary, std::vector<int32_t>& ids) {
  if (const Json& s = member(piece, "Sequence"); s.is_object()) {
    if (member(s, "id") != "A") return refused(where, "a sequence other than A");
    ids.push_back(kText);
    return {};
  }
  INVAR_TRY(const std::string name, text_of(member(piece, "SpecialToken"), "id", where));
  const Json& list = member(member(special_tokens, name), "ids");
  if (!list.is_array()) return wrong(where, "\"" + excerpt(name) + "\" is not among special_tokens");
  for (const Json& v : list.items) {
    INVAR_TRY(const int32_t id, known_id(v, where, vocabulary));
    ids.push_back(id);
  }
  return {};
}

// The member pair of a template; empty where it is not a text, then another one, among known
// tokens.
std::vector<PairPiece> pair_pieces(const Json& p, const Vocabulary& vocabulary) {
  std::vector<PairPiece> pieces;
  std::string texts;
  const Json& list = member(p, "pair");
  if (!list.is_array()) return {};
  for (const Json& piece : list.items) {
    const Json &text = member(piece, "Sequence"), &special = member(piece, "SpecialToken");
    const Json& type = member(text.is_object() ? text : special, "type_id");
    if (!type.is_unsigned() || type.to_uint64() > 1) return {};
    if (text.is_object()) {
      texts += member(text, "id") == "A" ? 'A' : member(text, "id") == "B" ? 'B' : '?';
      pieces.push_back({texts.back() == 'A' ? kText : kSecond, static_cast<int32_t>(type.to_int64())});
      continue;
    }
    const Json& name = member(special, "id");
    if (!name.is_string()) return {};
    for (const Json& v : member(member(member(p, "special_tokens"), name.text), "ids").items) {
      const auto id = id_of(v);
      if (!id || !vocabulary.has(*id)) return {};
      pieces.push_back({*id, static_cast<int32_t>(type.to_int64())});
    }
  }
  return texts == "AB" ? pieces : std::vector<PairPiece>();
}

// BertProcessing and RobertaProcessing: [token, id] of cls in front, of sep behind.
Result<int32_t> named_token(const Json& p, const char* name, const std::string& where,
                            const Vocabulary& vocabulary) {
  const Json& pair = member(p, name);
  if (!pair.is_array() || pair.size() != 2 || !pair.items[0].is_string())
    return wrong(where, std::string(name) + " must be a token and its id");
  return known_id(pair.items[1], where + "." + name, vocabulary);
}

}  // namespace

Status read_post_processor(const Json& p, const std::string& where, const Vocabulary& vocabulary,
                           Tokenizer::Impl& impl, int depth) {
  if (p.is_null()) return {};
  INVAR_TRY(const std::string type, text_of(p, "type", where));
  if (type == "ByteLevel") return {};  // changes offsets only
  if (type == "Sequence")
    return each(p, "processors", where, depth, [&](const Json& v, const std::string& w) {
      return read_post_processor(v, w, vocabulary, impl, depth + 1);
    });
  INVAR_CHECK_OK(expect_few(impl.templates.size() + 1, where));
  std::vector<int32_t> ids;
  std::vector<PairPiece> pair;
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    INVAR_TRY(const int32_t cls, named_token(p, "cls", where, vocabulary));
    INVAR_TRY(const int32_t sep, named_token(p, "sep", where, vocabulary));
    ids = {cls, kText, sep};
    pair = {{cls, 0}, {kText, 0}, {sep, 0}, {kSecond, 1}, {sep, 1}};
    if (type == "RobertaProcessing")
      pair = {{cls, 0}, {kText, 0}, {sep, 0}, {sep, 0}, {kSecond, 0}, {sep, 0}};
  } else if (type == "TemplateProcessing") {
    const Json& pieces = member(p, "single");
    if (!pieces.is_array()) return wrong(where, "single must be an array");
    for (size_t i = 0; i < pieces.size(); ++i)
      INVAR_CHECK_OK(template_piece(pieces.items[i], member(p, "special_tokens"),
                                    where + ".single[" + std::to_string(i) + "]", vocabulary, ids));
    pair = pair_pieces(p, vocabulary);
    const auto texts = std::count(ids.begin(), ids.end(), kText);
    if (texts != 1) return refused(where, "a template with the text " + std::to_string(texts) + " times");
  } else {
    return refused(where, "type " + excerpt(type));
  }
  impl.templates.push_back(std::move(ids));
  impl.pair_templates.push_back(std::move(pair));
  return {};
}

}  // namespace invar::prompt
