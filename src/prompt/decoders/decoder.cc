// The chain of decoders, see decoder.h.
#include "prompt/decoders/decoder.h"

namespace invar::prompt {

class DecoderStream::Link : public Decoder::Next {
 public:
  Link(DecoderStream& stream, size_t at, std::string& out) : stream_(stream), at_(at), out_(out) {}
  void put(std::string_view text) override { stream_.put(at_, text, out_); }

 private:
  DecoderStream& stream_;
  size_t at_;
  std::string& out_;
};

void DecoderStream::put(size_t at, std::string_view text, std::string& out) {
  if (at == chain_->size()) {
    out += text;
    return;
  }
  Link next(*this, at + 1, out);
  (*chain_)[at]->push(text, states_[at], next);
  ++states_[at].tokens;
}

void DecoderStream::finish(std::string& out) {
  for (size_t at = 0; at < chain_->size(); ++at) {
    Link next(*this, at + 1, out);
    (*chain_)[at]->finish(states_[at], next);
    states_[at] = {};
  }
}

}  // namespace invar::prompt
