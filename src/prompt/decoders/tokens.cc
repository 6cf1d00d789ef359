// Decoders of tokens, see decoder.h.
#include "base/text/utf8.h"
#include "prompt/decoders/decoder.h"
#include "prompt/models/bpe.h"

namespace invar::prompt {
namespace {

constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// Joins the bytes of all tokens; every maximal ill-formed subpart becomes U+FFFD.
class ByteLevel : public Decoder {
 public:
  explicit ByteLevel(bool bytes_given) : bytes_given_(bytes_given) {}

  void push(std::string_view token, DecoderState& state, Next& next) const override {
    std::string bytes;
    if (bytes_given_ || !bytes_of_token(token, bytes)) {
      state.held += token;
    } else {
      state.held += bytes;
    }
    give(state, next, true);
  }
  bool alone(std::string& token) const override {
    std::string bytes;
    if (!bytes_given_ && bytes_of_token(token, bytes)) token = bytes;
    return true;
  }
  void finish(DecoderState& state, Next& next) const override { give(state, next, false); }

 private:
  static void give(DecoderState& state, Next& next, bool more_follow) {
    std::string text;
    state.held.erase(0, append_lossy(text, state.held, more_follow));
    if (!text.empty()) next.put(text);
  }
  bool bytes_given_;
};

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// A run of tokens <0xHH> becomes their bytes, or a U+FFFD for each of them if those are not valid
// UTF-8. A later one can make them so, and another one can undo it: the whole run is held.
class ByteFallback : public Decoder {
 public:
  void push(std::string_view token, DecoderState& state, Next& next) const override {
    const int byte = byte_of(token);
    if (byte >= 0) {
      state.held += static_cast<char>(byte);
    } else {
      finish(state, next);
      next.put(token);
    }
  }
  bool alone(std::string& token) const override {
    if (const int byte = byte_of(token); byte >= 0) token = static_cast<char>(byte);
    return true;
  }
  void finish(DecoderState& state, Next& next) const override {
    if (state.held.empty()) return;
    if (valid_prefix(state.held) == state.held.size()) {
      next.put(state.held);
    } else {
      for (size_t i = 0; i < state.held.size(); ++i) next.put(kReplacementCharacter);
    }
    state.held.clear();
  }

 private:
  static int byte_of(std::string_view token) {  // -1: not such a token
    if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
    if (token[3] == '+') return digit(token[4]);  // as Rust's parser of numbers does
    const int high = digit(token[3]), low = digit(token[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
  }
};

class Fuse : public Decoder {
 public:
  void push(std::string_view token, DecoderState&, Next& next) const override { next.put(token); }
  bool alone(std::string&) const override { return true; }
};

class MetaspaceDecoder : public Decoder {
 public:
  MetaspaceDecoder(uint32_t replacement, bool drops_first) : drops_first_(drops_first) {
    append_utf8(replacement_, replacement);
  }
  void push(std::string_view token, DecoderState& state, Next& next) const override {
    std::string text;
    size_t done = 0;
    for (size_t at; (at = token.find(replacement_, done)) != token.npos; done = at + replacement_.size()) {
      text += token.substr(done, at - done);
      if (state.tokens > 0 || !drops_first_) text += ' ';
    }
    next.put(text += token.substr(done));
  }
  bool alone(std::string& token) const override {
    for (size_t at = 0; (at = token.find(replacement_, at)) != token.npos;)
      token.replace(at, replacement_.size(), " ");
    return true;
  }

 private:
  std::string replacement_;
  bool drops_first_;
};

class ReplaceTokens : public Decoder {
 public:
  explicit ReplaceTokens(Replacement r) : replacement_(std::move(r)) {}
  void push(std::string_view token, DecoderState&, Next& next) const override {
    std::string text;
    Regex::Scratch scratch;
    if (!replacement_.apply(token, text, scratch)) text = token;  // a hopeless pattern matches nothing
    next.put(text);
  }
  bool alone(std::string& token) const override {
    std::string text;
    Regex::Scratch scratch;
    if (replacement_.apply(token, text, scratch)) token = text;
    return true;
  }

 private:
  Replacement replacement_;
};

class StripTokens : public Decoder {
 public:
  StripTokens(uint32_t content, size_t start, size_t stop) : start_(start), stop_(stop) {
    append_utf8(content_, content);
  }
  void push(std::string_view token, DecoderState&, Next& next) const override { next.put(stripped(token)); }
  bool alone(std::string& token) const override {
    token = stripped(std::string(token));
    return true;
  }

 private:
  std::string stripped(std::string_view token) const {
    for (size_t i = 0; i < start_ && token.starts_with(content_); ++i) token.remove_prefix(content_.size());
    for (size_t i = 0; i < stop_ && token.ends_with(content_); ++i) token.remove_suffix(content_.size());
    return std::string(token);
  }
  std::string content_;
  size_t start_, stop_;
};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
}

class WordPieceDecoder : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  void push(std::string_view token, DecoderState& state, Next& next) const override {
    std::string text;
    if (state.tokens > 0 && token.starts_with(prefix_)) {
      text = token.substr(prefix_.size());
    } else {
      if (state.tokens > 0) text = " ";
      text += token;
    }
    if (cleanup_) clean(text);
    next.put(text);
  }

 private:
  static void clean(std::string& text) {
    static constexpr const char* kSteps[][2] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [from, to] : kSteps) replace_all(text, from, to);
  }
  std::string prefix_;
  bool cleanup_;
};

// The suffix becomes a space, that of the last token nothing: a token waits for the next one.
class BpeDecoder : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}
  void push(std::string_view token, DecoderState& state, Next& next) const override {
    if (state.tokens > 0) give(state, next, " ");
    state.held = token;
  }
  void finish(DecoderState& state, Next& next) const override {
    if (state.tokens > 0) give(state, next, "");
  }

 private:
  void give(DecoderState& state, Next& next, std::string_view space) const {
    replace_all(state.held, suffix_, space);
    next.put(state.held);
    state.held.clear();
  }
  std::string suffix_;
};

// The decoder of a file that names none.
class JoinWithSpaces : public Decoder {
 public:
  void push(std::string_view token, DecoderState& state, Next& next) const override {
    if (state.tokens > 0) next.put(" ");
    next.put(token);
  }
};

}  // namespace

DecoderPtr make_byte_level_decoder(bool bytes_given) {
  return std::make_unique<ByteLevel>(bytes_given);
}
DecoderPtr make_byte_fallback() {
  return std::make_unique<ByteFallback>();
}
DecoderPtr make_fuse() {
  return std::make_unique<Fuse>();
}
DecoderPtr make_metaspace_decoder(uint32_t replacement, bool drops_first) {
  return std::make_unique<MetaspaceDecoder>(replacement, drops_first);
}
DecoderPtr make_replace_decoder(Replacement replacement) {
  return std::make_unique<ReplaceTokens>(std::move(replacement));
}
DecoderPtr make_strip_decoder(uint32_t content, size_t start, size_t stop) {
  return std::make_unique<StripTokens>(content, start, stop);
}
DecoderPtr make_wordpiece_decoder(std::string prefix, bool cleanup) {
  return std::make_unique<WordPieceDecoder>(std::move(prefix), cleanup);
}
DecoderPtr make_bpe_decoder(std::string suffix) {
  return std::make_unique<BpeDecoder>(std::move(suffix));
}
DecoderPtr make_join_with_spaces() {
  return std::make_unique<JoinWithSpaces>();
}

}  // namespace invar::prompt
