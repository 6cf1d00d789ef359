// A SentencePiece tokenizer.model -> Tokenizer::Impl (spec/tokens.md tokens.16). The file is a
// ModelProto of https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto.
#include <cmath>
#include <set>

#include "base/text/utf8.h"
#include "prompt/files/base64.h"
#include "prompt/files/fields.h"
#include "prompt/files/protobuf.h"
#include "prompt/models/sentencepiece.h"
#include "prompt/normalizers/sentencepiece.h"
#include "prompt/tokenizer_impl.h"

namespace invar::prompt {
namespace {

class SentencePieceReader {
 public:
  explicit SentencePieceReader(std::string_view file) : file_(file) {}

  Result<std::unique_ptr<Tokenizer::Impl>> read(std::string_view bytes, const EndTokens& ends) {
    if (is_rank_list(bytes))
      return not_covered(
          file_ +
          ": a list of tiktoken's ranks, as Llama 3 has it, and no SentencePiece model; it does not say how "
          "text is split. The repository of the model in transformers' format has a tokenizer.json: put it "
          "beside this file");
    ProtobufFields model(bytes);
    while (model.next()) switch (model.field()) {
        case 1: INVAR_CHECK_OK(piece(model.bytes())); break;
        case 2: INVAR_CHECK_OK(trainer(model.bytes())); break;
        case 3: INVAR_CHECK_OK(normalizer(model.bytes(), "normalizer_spec")); break;
        case 5: INVAR_CHECK_OK(denormalizer(model.bytes())); break;
        default: break;  // test data
      }
    if (model.damaged() || list_.empty()) return wrong(file_, "not a SentencePiece model, or cut short");
    INVAR_CHECK_OK(check_pieces());
    return made(ends);
  }

 private:
  enum ModelType : uint64_t { kUnigram = 1, kBpe = 2 };

  // Base64, a space and a rank in the first line.
  static bool is_rank_list(std::string_view bytes) {
    const std::string_view row = bytes.substr(0, std::min(bytes.find('\n'), size_t{1000}));
    const size_t space = row.find(' ');
    return space != row.npos && space + 1 < row.size() && base64_decode(row.substr(0, space)) &&
           row.find_first_not_of("0123456789\r", space + 1) == row.npos;
  }

  Error damaged(const std::string& part) const { return wrong(file_ + ": " + part, "is damaged"); }

  Status piece(std::string_view bytes) {
    Piece p;
    ProtobufFields f(bytes);
    uint64_t type = Piece::normal;
    while (f.next()) {
      if (f.field() == 1) p.text = f.bytes();
      if (f.field() == 2) p.score = f.real();
      if (f.field() == 3) type = f.number();
    }
    const std::string where = file_ + ": pieces[" + std::to_string(list_.size()) + "]";
    if (f.damaged()) return wrong(where, "is damaged");
    if (type < Piece::normal || type > Piece::byte) return refused(where, "type " + std::to_string(type));
    if (p.text.empty()) return wrong(where, "an empty piece");
    if (valid_prefix(p.text) != p.text.size()) return wrong(where, "is not UTF-8");
    if (!std::isfinite(p.score)) return wrong(where, "a score that is not a number");
    if (!seen_.insert(p.text).second) return wrong(where, "\"" + excerpt(p.text) + "\" is given twice");
    p.type = static_cast<Piece::Type>(type);
    list_.push_back(std::move(p));
    return {};
  }

  Status trainer(std::string_view bytes) {
    ProtobufFields f(bytes);
    while (f.next()) switch (f.field()) {
        case 3: type_ = f.number(); break;
        case 24:
          if (f.number()) return refused(file_ + ": trainer_spec", "treat_whitespace_as_suffix");
          break;
        case 35: byte_fallback_ = f.number() != 0; break;
        case 41: bos_ = static_cast<int32_t>(f.number()); break;
        case 42: eos_ = static_cast<int32_t>(f.number()); break;
        case 44: unk_surface_ = f.bytes(); break;
        default: break;  // how it was trained
      }
    if (f.damaged()) return damaged("trainer_spec");
    if (type_ != kUnigram && type_ != kBpe)
      return refused(file_ + ": trainer_spec",
                     "model_type " + std::to_string(type_) + " (only UNIGRAM and BPE)");
    return {};
  }

  Status normalizer(std::string_view bytes, const std::string& name) {
    ProtobufFields f(bytes);
    while (f.next()) switch (f.field()) {
        case 2: {
          auto map = Charsmap::parse(f.bytes());
          if (!map) return wrong(file_ + ": " + name, map.error().message);
          rules_.charsmap = *std::move(map);
          break;
        }
        case 3: rules_.add_dummy_prefix = f.number() != 0; break;
        case 4: rules_.remove_extra_whitespaces = f.number() != 0; break;
        case 5: rules_.escape_whitespaces = f.number() != 0; break;
        default: break;  // its name, and the rules that the map was made of
      }
    return f.damaged() ? Status(damaged(name)) : Status();
  }

  Status denormalizer(std::string_view bytes) {
    ProtobufFields f(bytes);
    while (f.next())
      if (f.field() == 2 && !f.bytes().empty()) return refused(file_, "denormalizer_spec");
    return f.damaged() ? Status(damaged("denormalizer_spec")) : Status();
  }

  Status check_pieces() {
    size_t unknown = 0, bytes = 0;
    for (const Piece& p : list_) unknown += p.type == Piece::unknown, bytes += p.type == Piece::byte;
    if (unknown != 1) return wrong(file_, std::to_string(unknown) + " unknown pieces; there must be one");
    if (byte_fallback_ && bytes != 256)
      return wrong(file_, "byte_fallback with " + std::to_string(bytes) + " byte pieces, not 256");
    return {};
  }

  Result<std::unique_ptr<Tokenizer::Impl>> made(const EndTokens& ends) {
    auto impl = std::make_unique<Tokenizer::Impl>();
    auto pieces = std::make_shared<Pieces>(std::move(list_));
    pieces->byte_fallback = byte_fallback_;
    for (size_t i = 0; i < pieces->list.size(); ++i) {
      const Piece& p = pieces->list[i];
      INVAR_TRY(std::string text, token_text(p, *pieces));
      const bool control = p.type == Piece::control;
      impl->tokens.push_back({std::move(text), true, control});
      if (!control && p.type != Piece::unknown && p.type != Piece::user_defined) continue;
      AddedToken t{static_cast<int32_t>(i), p.text};
      t.normalized = false, t.special = p.type != Piece::user_defined;
      impl->added.push_back(std::move(t));
    }
    impl->decoders.push_back(
        make_sentencepiece_decoder(rules_.add_dummy_prefix, rules_.remove_extra_whitespaces, unk_surface_));
    impl->normalizers.push_back(make_sentencepiece_normalizer(std::move(rules_), pieces));
    std::vector<int32_t> row;
    if (is_control(*pieces, bos_) && ends.begin) row.push_back(bos_);
    row.push_back(Tokenizer::Impl::kText);
    if (is_control(*pieces, eos_) && ends.end) row.push_back(eos_);
    if (row.size() > 1) impl->templates.push_back(std::move(row));
    if (type_ == kBpe) {
      constexpr uint32_t kSpace = 0x2581;
      if (cuts_before_spaces(*pieces)) impl->pre_tokenizers.push_back(make_cut_before(kSpace));
      impl->model = make_sentencepiece_bpe(std::move(pieces));
    } else {
      impl->model = make_sentencepiece_unigram(std::move(pieces));
    }
    return impl;
  }

  static bool is_control(const Pieces& pieces, int32_t id) {
    return id >= 0 && static_cast<size_t>(id) < pieces.list.size() && pieces.list[id].type == Piece::control;
  }

  // The token's text for the decoder, behind its kind.
  Result<std::string> token_text(const Piece& p, const Pieces& pieces) const {
    switch (p.type) {
      case Piece::control: return std::string(1, static_cast<char>(kControlPiece));
      case Piece::unknown: return std::string(1, kUnknownPiece);
      case Piece::byte:
        for (int b = 0; b < 256; ++b)
          if (pieces.byte_id[b] != Model::kNone && &pieces.list[pieces.byte_id[b]] == &p)
            return std::string{static_cast<char>(kBytePiece), static_cast<char>(b)};
        return wrong(file_, "\"" + excerpt(p.text) + "\" is no name of a byte");
      default: return std::string(1, kTextPiece) + p.text;
    }
  }

  // Whether no piece holds a space behind another character, so that nothing joins across.
  static bool cuts_before_spaces(const Pieces& pieces) {
    static constexpr std::string_view kSpace = "\xE2\x96\x81";
    uint32_t node = Trie::kRoot;
    if (!pieces.words.walk(node, kSpace) || pieces.words.value(node) == Trie::kNone) return false;
    for (const Piece& p : pieces.list) {
      std::string_view text = p.text;
      while (text.starts_with(kSpace)) text.remove_prefix(kSpace.size());
      if (text.find(kSpace) != text.npos) return false;
    }
    return true;
  }

  std::string file_;
  std::vector<Piece> list_;
  std::set<std::string> seen_;
  SentencePieceRules rules_;
  uint64_t type_ = kUnigram;
  bool byte_fallback_ = false;
  int32_t bos_ = 1, eos_ = 2;
  std::string unk_surface_ = " \xE2\x81\x87 ";
};

}  // namespace

Result<std::unique_ptr<Tokenizer::Impl>> read_sentencepiece(std::string_view bytes, std::string_view file,
                                                            const EndTokens& ends) {
  return SentencePieceReader(file).read(bytes, ends);
}

}  // namespace invar::prompt
