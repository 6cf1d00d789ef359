// Decoders: token texts -> text, one token at a time (spec/tokens.md tokens.8, tokens.17).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "prompt/regex/replace.h"

namespace invar::prompt {

// The state that a decoder keeps between the tokens of a stream.
struct DecoderState {
  size_t tokens = 0;  // seen so far
  std::string held;   // text that later tokens can still change
  size_t count = 0;   // of the decoder's own use
};

// A decoder is given texts in order and gives texts on. Before Fuse or ByteLevel a text is a token;
// behind them all texts are parts of one.
class Decoder {
 public:
  class Next {  // where a decoder puts its texts
   public:
    virtual ~Next() = default;
    virtual void put(std::string_view text) = 0;
  };
  virtual ~Decoder() = default;
  virtual void push(std::string_view text, DecoderState& state, Next& next) const = 0;
  // What a text becomes wherever it stands, but for what is special of the first; false where that
  // depends on the texts around it.
  virtual bool alone(std::string&) const { return false; }
  // After the last text.
  virtual void finish(DecoderState&, Next&) const {}
};

// Makers of each kind, for tokens; what each does: tokens.17.
using DecoderPtr = std::unique_ptr<const Decoder>;
DecoderPtr make_byte_level_decoder(bool bytes_given);  // bytes_given: the tokens are bytes already
DecoderPtr make_byte_fallback();
DecoderPtr make_fuse();
DecoderPtr make_metaspace_decoder(uint32_t replacement, bool drops_first);
DecoderPtr make_replace_decoder(Replacement replacement);
DecoderPtr make_strip_decoder(uint32_t content, size_t start, size_t stop);
DecoderPtr make_wordpiece_decoder(std::string prefix, bool cleanup);
DecoderPtr make_bpe_decoder(std::string suffix);
DecoderPtr make_join_with_spaces();
// Kinds of pieces of a SentencePiece file: the first byte of a token's text.
enum PieceKind : char { kControlPiece = 'c', kUnknownPiece = 'u', kBytePiece = 'b', kTextPiece = 't' };
DecoderPtr make_sentencepiece_decoder(bool add_dummy_prefix, bool remove_extra_whitespaces,
                                      std::string unk_surface);
// These two decode parts of one text.
DecoderPtr make_fused_strip(uint32_t content, size_t start, size_t stop);
DecoderPtr make_fused_replace(std::string pattern, std::string content);

// A chain of decoders and its state.
class DecoderStream {
 public:
  explicit DecoderStream(const std::vector<DecoderPtr>& chain) : chain_(&chain), states_(chain.size()) {}
  // Appends to `out` what no later token can change.
  void push(std::string_view token, std::string& out) { put(0, token, out); }
  void finish(std::string& out);

 private:
  class Link;
  void put(size_t at, std::string_view text, std::string& out);
  const std::vector<DecoderPtr>* chain_;
  std::vector<DecoderState> states_;
};

}  // namespace invar::prompt
