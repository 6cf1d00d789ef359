// Readers of the parts of tokenizer.json: each does all that its part asks for, or refuses it by
// name.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "prompt/decoders/decoder.h"
#include "prompt/files/fields.h"
#include "prompt/models/model.h"
#include "prompt/normalizers/normalizer.h"
#include "prompt/pretokenizers/pretokenizer.h"
#include "prompt/tokenizer_impl.h"

namespace invar::prompt {

// Tokens and their ids, checked as they come.
class Vocabulary {
 public:
  explicit Vocabulary(std::vector<Tokenizer::Impl::Token>& tokens) : tokens_(tokens) {}

  // An id may be missing, but a hole of any size would let a few bytes of input ask for gigabytes.
  void expect(size_t tokens) { most_ids_ += 2 * tokens; }
  // Makes `content` the token of this id.
  Status place(int32_t id, const std::string& content, const std::string& where);
  int32_t find(const std::string& content) const {
    const auto it = ids_.find(content);
    return it == ids_.end() ? Model::kNone : it->second;
  }
  bool has(int32_t id) const { return static_cast<size_t>(id) < tokens_.size() && tokens_[id].exists; }
  const std::unordered_map<std::string, int32_t>& ids() const { return ids_; }

 private:
  std::vector<Tokenizer::Impl::Token>& tokens_;
  std::unordered_map<std::string, int32_t> ids_;
  size_t most_ids_ = 100000;
};

Status read_normalizer(const Json& n, const std::string& where, std::vector<NormalizerPtr>& out,
                       int depth = 0);

struct PreTokenizerList {
  std::vector<PreTokenizerPtr> steps;
  bool ends_with_bytes = false;  // the last step writes bytes as characters
};
Status read_pre_tokenizer(const Json& p, const std::string& where, PreTokenizerList& out, int depth = 0);

// Places the tokens of the model. Where its words are bytes the last pre-tokenizer is taken away.
Result<std::unique_ptr<const Model>> read_model(const Json& m, const std::string& where,
                                                Vocabulary& vocabulary, PreTokenizerList& pre);

// `bytes_first`: the first decoder takes bytes, see make_byte_level_decoder.
struct DecoderList {
  std::vector<DecoderPtr> chain;
  bool bytes_first = false;
  bool fused = false;  // all texts are parts of one
};
Status read_decoder(const Json& d, const std::string& where, DecoderList& out, int depth = 0);

Status read_post_processor(const Json& p, const std::string& where, const Vocabulary& vocabulary,
                           Tokenizer::Impl& impl, int depth = 0);

// A pattern of Split or Replace, as the members String or Regex of `pattern`.
struct PatternText {
  std::string text;
  bool is_regex;
};
Result<PatternText> pattern_of(const Json& o, const std::string& where);

}  // namespace invar::prompt
