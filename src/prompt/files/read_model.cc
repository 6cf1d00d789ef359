// The member model of tokenizer.json (spec/tokens.md tokens.6, tokens.13 to tokens.15).
#include "base/text/utf8.h"
#include "prompt/files/readers.h"
#include "prompt/files/scores.h"
#include "prompt/models/bpe.h"
#include "prompt/models/bpe_tables.h"
#include "prompt/models/unigram.h"
#include "prompt/models/wordpiece.h"

namespace invar::prompt {
namespace {

Status read_vocabulary(const Json& vocab, const std::string& where, Vocabulary& vocabulary) {
  if (!vocab.is_object() || vocab.empty()) return wrong(where, "must be an object of tokens and ids");
  vocabulary.expect(vocab.size());
  for (const auto& [token, value] : vocab.members) {
    const auto id = id_of(value);
    if (!id) return wrong(where + "[\"" + excerpt(token) + "\"]", id.error().message);
    INVAR_CHECK_OK(vocabulary.place(*id, token, where));
  }
  return {};
}

// The id of unk_token; kNone if it is absent and need not be there.
Result<int32_t> read_unk(const Json& m, const std::string& where, const Vocabulary& vocabulary, bool needed) {
  if (member(m, "unk_token").is_null() && !needed) return Model::kNone;
  INVAR_TRY(const std::string name, text_of(m, "unk_token", where));
  const int32_t id = vocabulary.find(name);
  if (id == Model::kNone) return wrong(where, "unk_token \"" + excerpt(name) + "\" is not in the vocabulary");
  return id;
}

// One of model.merges: two tokens. False: a comment.
Result<bool> read_pair(const Json& m, const std::string& where, std::string& left, std::string& right) {
  if (m.is_string()) {
    const std::string& s = m.text;
    if (s.starts_with("#version")) return false;
    const size_t space = s.find(' ');
    if (space == std::string::npos || s.find(' ', space + 1) != std::string::npos)
      return wrong(where, "\"" + excerpt(s) + "\" is not two tokens with one space between");
    left = s.substr(0, space), right = s.substr(space + 1);
  } else if (m.is_array() && m.size() == 2 && m.items[0].is_string() && m.items[1].is_string()) {
    left = m.items[0].text, right = m.items[1].text;
  } else {
    return wrong(where, "must be \"left right\" or [\"left\", \"right\"]");
  }
  return true;
}

Status read_merges(const Json& merges, const std::string& where, const Vocabulary& vocabulary, Bpe& bpe) {
  if (!merges.is_array()) return wrong(where, "must be an array");
  uint32_t rank = 0;
  for (size_t i = 0; i < merges.size(); ++i) {
    const auto here = [&] { return where + "[" + std::to_string(i) + "]"; };
    std::string left, right;
    INVAR_TRY(const bool is_pair, read_pair(merges.items[i], here(), left, right));
    if (!is_pair) continue;
    if (right.size() < bpe.prefix.size())
      return wrong(here(), "\"" + excerpt(right) + "\" is shorter than continuing_subword_prefix");
    int32_t id[3];
    const std::string parts[3] = {left, right, left + right.substr(bpe.prefix.size())};
    for (int k = 0; k < 3; ++k) {
      id[k] = vocabulary.find(parts[k]);
      if (id[k] == Model::kNone)
        return wrong(here(), "\"" + excerpt(parts[k]) + "\" is not in the vocabulary");
    }
    bpe.merges.set(id[0], id[1], {rank++, id[2]});
  }
  return {};
}

Result<std::unique_ptr<const Model>> read_bpe(const Json& m, const std::string& where, Vocabulary& vocabulary,
                                              PreTokenizerList& pre) {
  auto bpe = std::make_unique<Bpe>();
  if (const Json& d = member(m, "dropout"); !d.is_null() && d != 0) return refused(where, "dropout");
  if (!member(m, "continuing_subword_prefix").is_null()) {
    INVAR_TRY(bpe->prefix, text_of(m, "continuing_subword_prefix", where));
  }
  if (!member(m, "end_of_word_suffix").is_null()) {
    INVAR_TRY(bpe->suffix, text_of(m, "end_of_word_suffix", where));
  }
  INVAR_TRY(bpe->byte_fallback, flag_of(m, "byte_fallback", where, false));
  INVAR_TRY(bpe->whole_words, flag_of(m, "ignore_merges", where, false));
  INVAR_TRY(bpe->fuse_unk, flag_of(m, "fuse_unk", where, false));
  INVAR_CHECK_OK(read_vocabulary(member(m, "vocab"), where + ".vocab", vocabulary));
  INVAR_CHECK_OK(read_merges(member(m, "merges"), where + ".merges", vocabulary, *bpe));
  INVAR_TRY(bpe->unk, read_unk(m, where, vocabulary, false));
  bpe->of_bytes = pre.ends_with_bytes && !bpe->byte_fallback && bpe->prefix.empty() && bpe->suffix.empty();
  if (bpe->of_bytes) pre.steps.pop_back();
  fill_tables(vocabulary.ids(), *bpe);
  constexpr uint32_t kLowerBlock = 0x2581;  // SentencePiece's space
  if (!bpe->of_bytes && never_merges_before(kLowerBlock, vocabulary.ids(), *bpe))
    pre.steps.push_back(make_cut_before(kLowerBlock));
  return std::unique_ptr<const Model>(std::move(bpe));
}

Result<std::unique_ptr<const Model>> read_unigram(const Json& m, const std::string& where,
                                                  Vocabulary& vocabulary) {
  INVAR_TRY(const bool byte_fallback, flag_of(m, "byte_fallback", where, false));
  const Json& list = member(m, "vocab");
  const std::string place = where + ".vocab";
  if (!list.is_array() || list.empty()) return wrong(place, "must be an array of tokens and scores");
  std::vector<std::pair<std::string, double>> pieces;
  pieces.reserve(list.size());
  vocabulary.expect(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const Json& p = list.items[i];
    if (!p.is_array() || p.size() != 2 || !p.items[0].is_string() || !p.items[1].is_number())
      return wrong(place + "[" + std::to_string(i) + "]", "must be a token and its score");
    pieces.emplace_back(p.items[0].text, read_score(p.items[1]));
    INVAR_CHECK_OK(vocabulary.place(static_cast<int32_t>(i), pieces.back().first, place));
  }
  int32_t unk = Model::kNone;
  if (!member(m, "unk_id").is_null()) {
    INVAR_TRY(const size_t id, size_of(m, "unk_id", where));
    if (id >= pieces.size())
      return wrong(where, "unk_id " + std::to_string(id) + " is no token of the vocabulary");
    unk = static_cast<int32_t>(id);
  }
  return std::unique_ptr<const Model>(std::make_unique<Unigram>(pieces, unk, byte_fallback));
}

Result<std::unique_ptr<const Model>> read_word_piece(const Json& m, const std::string& where,
                                                     Vocabulary& vocabulary) {
  INVAR_TRY(const std::string prefix, text_of(m, "continuing_subword_prefix", where));
  INVAR_TRY(const size_t longest, size_of(m, "max_input_chars_per_word", where));
  INVAR_CHECK_OK(read_vocabulary(member(m, "vocab"), where + ".vocab", vocabulary));
  INVAR_TRY(const int32_t unk, read_unk(m, where, vocabulary, true));
  return std::unique_ptr<const Model>(std::make_unique<WordPiece>(vocabulary.ids(), unk, prefix, longest));
}

// Files of old versions do not say which model they hold.
std::string type_by_members(const Json& m) {
  if (m.contains("merges")) return "BPE";
  if (m.contains("max_input_chars_per_word")) return "WordPiece";
  return member(m, "vocab").is_array() ? "Unigram" : m.contains("unk_token") ? "WordLevel" : "BPE";
}

}  // namespace

Result<std::unique_ptr<const Model>> read_model(const Json& m, const std::string& where,
                                                Vocabulary& vocabulary, PreTokenizerList& pre) {
  if (!m.is_object()) return wrong(where, "must be an object");
  std::string type = type_by_members(m);
  if (!member(m, "type").is_null()) {
    INVAR_TRY(type, text_of(m, "type", where));
  }
  if (type == "BPE") return read_bpe(m, where, vocabulary, pre);
  if (type == "Unigram") return read_unigram(m, where, vocabulary);
  if (type == "WordPiece") return read_word_piece(m, where, vocabulary);
  if (type != "WordLevel")
    return refused(where, "type " + excerpt(type) + " (only BPE, Unigram, WordPiece and WordLevel)");
  INVAR_CHECK_OK(read_vocabulary(member(m, "vocab"), where + ".vocab", vocabulary));
  INVAR_TRY(const int32_t unk, read_unk(m, where, vocabulary, true));
  return std::unique_ptr<const Model>(std::make_unique<WordLevel>(vocabulary.ids(), unk));
}

}  // namespace invar::prompt
