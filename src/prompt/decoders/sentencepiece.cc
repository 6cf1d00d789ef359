// The decoder of SentencePiece files, see decoder.h (spec/tokens.md tokens.16).
#include "base/text/utf8.h"
#include "prompt/decoders/decoder.h"

namespace invar::prompt {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";

// The first byte of a text says what its piece is, see PieceKind.
class SentencePieceDecoder : public Decoder {
 public:
  SentencePieceDecoder(bool add_dummy_prefix, bool remove_extra_whitespaces, std::string unk_surface)
      : drops_first_(add_dummy_prefix || remove_extra_whitespaces),
        drops_all_(remove_extra_whitespaces),
        unk_surface_(std::move(unk_surface)) {}

  void push(std::string_view text, DecoderState& state, Next& next) const override {
    const char kind = text[0];
    text.remove_prefix(1);
    if (kind == kBytePiece) {
      state.held += text;
      give_bytes(state, next, true);
      return;
    }
    give_bytes(state, next, false);
    if (kind == kUnknownPiece) {
      put(unk_surface_, state, next);
    } else if (kind == kTextPiece) {
      const bool first = drops_first_ && !(state.count & kBegun);
      if (first && text.starts_with(kSpace)) {
        text.remove_prefix(kSpace.size());
        if (!drops_all_) state.count |= kBegun;
      }
      std::string plain;
      size_t done = 0;
      for (size_t at; (at = text.find(kSpace, done)) != text.npos; done = at + kSpace.size()) {
        plain += text.substr(done, at - done);
        plain += ' ';
      }
      put(plain += text.substr(done), state, next);
    }
  }
  bool alone(std::string& piece) const override {
    const char kind = piece.empty() ? static_cast<char>(kControlPiece) : piece[0];
    piece.erase(0, 1);
    if (kind == kUnknownPiece) piece = unk_surface_;
    if (kind == kControlPiece) piece.clear();
    if (kind == kTextPiece)
      for (size_t at = 0; (at = piece.find(kSpace, at)) != piece.npos;) piece.replace(at, kSpace.size(), " ");
    return true;
  }
  void finish(DecoderState& state, Next& next) const override { give_bytes(state, next, false); }

 private:
  static constexpr size_t kBegun = 1;  // in `count`: text or the first space has been seen

  static void put(std::string_view text, DecoderState& state, Next& next) {
    if (text.empty()) return;
    state.count |= kBegun;
    next.put(text);
  }
  // Each byte that begins no character becomes one U+FFFD.
  static void give_bytes(DecoderState& state, Next& next, bool more_follow) {
    std::string out;
    size_t at = 0;
    while (at < state.held.size()) {
      const Utf8Sequence s = sequence_at(state.held, at);
      if (s.kind == Utf8Sequence::cut && more_follow) break;
      const bool well = s.kind == Utf8Sequence::well;
      out += well ? std::string_view(state.held).substr(at, s.length) : std::string_view("\xEF\xBF\xBD");
      at += well ? s.length : 1;
    }
    state.held.erase(0, at);
    put(out, state, next);
  }

  bool drops_first_, drops_all_;
  std::string unk_surface_;
};

}  // namespace

DecoderPtr make_sentencepiece_decoder(bool add_dummy_prefix, bool remove_extra_whitespaces,
                                      std::string unk_surface) {
  return std::make_unique<SentencePieceDecoder>(add_dummy_prefix, remove_extra_whitespaces,
                                                std::move(unk_surface));
}

}  // namespace invar::prompt
