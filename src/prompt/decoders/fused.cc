// Decoders of one text that arrives in parts, see decoder.h.
#include "base/text/utf8.h"
#include "prompt/decoders/decoder.h"

namespace invar::prompt {
namespace {

// Takes up to `start` of a character from the start of the text, up to `stop` from its end.
class FusedStrip : public Decoder {
 public:
  FusedStrip(uint32_t content, size_t start, size_t stop) : start_(start), stop_(stop) {
    append_utf8(content_, content);
  }

  // `count`: how many may still go from the start. `held`: the characters that may go from the end.
  void push(std::string_view text, DecoderState& state, Next& next) const override {
    if (state.tokens == 0) state.count = start_;
    for (; state.count > 0 && text.starts_with(content_); --state.count) text.remove_prefix(content_.size());
    if (!text.empty()) state.count = 0;
    state.held += text;
    size_t keep = state.held.size();
    for (size_t i = 0; i < stop_ && std::string_view(state.held).substr(0, keep).ends_with(content_); ++i)
      keep -= content_.size();
    if (keep > 0) next.put(std::string_view(state.held).substr(0, keep));
    state.held.erase(0, keep);
  }
  bool alone(std::string&) const override { return stop_ == 0; }

 private:
  std::string content_;
  size_t start_, stop_;
};

// Replaces a string by another one. What may begin a match is held.
class FusedReplace : public Decoder {
 public:
  FusedReplace(std::string pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void push(std::string_view text, DecoderState& state, Next& next) const override {
    state.held += text;
    std::string out;
    size_t done = 0;
    for (size_t at; (at = state.held.find(pattern_, done)) != std::string::npos;
         done = at + pattern_.size()) {
      out.append(state.held, done, at - done);
      out += content_;
    }
    size_t end = std::max(done, state.held.size() - std::min(state.held.size(), pattern_.size() - 1));
    while (!pattern_.starts_with(std::string_view(state.held).substr(end))) ++end;
    out.append(state.held, done, end - done);
    state.held.erase(0, end);
    if (!out.empty()) next.put(out);
  }
  void finish(DecoderState& state, Next& next) const override {
    if (!state.held.empty()) next.put(state.held);
  }

 private:
  std::string pattern_, content_;
};

}  // namespace

DecoderPtr make_fused_strip(uint32_t content, size_t start, size_t stop) {
  return std::make_unique<FusedStrip>(content, start, stop);
}
DecoderPtr make_fused_replace(std::string pattern, std::string content) {
  return std::make_unique<FusedReplace>(std::move(pattern), std::move(content));
}

}  // namespace invar::prompt
