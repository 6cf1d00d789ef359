// A list of ranks (*.tiktoken) -> Tokenizer::Impl (spec/tokens.md tokens.18). A line is the base64
// of a token's bytes, a space, and its rank, which is its id.
#include <charconv>
#include <unordered_map>

#include "prompt/files/base64.h"
#include "prompt/files/fields.h"
#include "prompt/models/bpe.h"
#include "prompt/tokenizer_impl.h"

namespace invar::prompt {
namespace {

// The parts of an encoding that a list of ranks does not have.
struct RankEncoding {
  const char* name;
  const char* pattern;
  std::vector<std::pair<std::string, int32_t>> special;  // an id of -1: the next one
};

constexpr char kR50k[] =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++\z|\s+(?!\S)|\s)";
constexpr char kCl100k[] =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++\z|)"
    R"(\s*[\r\n]|\s+(?!\S)|\s)";
constexpr char kO200k[] =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kQwen[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|)"
    R"(\s+(?!\S)|\s+)";

using Specials = std::vector<std::pair<std::string, int32_t>>;

// prefix FIRST suffix, ... up to `last`
void number(Specials& list, const std::string& prefix, int first, int last, bool ids) {
  for (int i = first; i <= last; ++i)
    list.emplace_back("<|" + prefix + std::to_string(i) + "|>", ids ? i : -1);
}

Specials qwen_tokens() {
  Specials list{{"<|endoftext|>", -1}, {"<|im_start|>", -1}, {"<|im_end|>", -1}};
  number(list, "extra_", 0, 204, false);
  return list;
}

// The special tokens of gpt-oss. tiktoken has 200018 under two names, this one and <|endofprompt|>.
Specials harmony_tokens() {
  Specials list{{"<|startoftext|>", 199998}, {"<|endoftext|>", 199999}, {"<|return|>", 200002},
                {"<|constrain|>", 200003},   {"<|channel|>", 200005},   {"<|start|>", 200006},
                {"<|end|>", 200007},         {"<|message|>", 200008},   {"<|call|>", 200012}};
  number(list, "reserved_", 200000, 200001, true);
  number(list, "reserved_", 200004, 200004, true);
  number(list, "reserved_", 200009, 200011, true);
  number(list, "reserved_", 200013, 201087, true);
  list.emplace_back("<|endofprompt|>", 200018);
  return list;
}

const std::vector<RankEncoding>& encodings() {
  static const std::vector<RankEncoding> known{
      {"gpt2", kR50k, {{"<|endoftext|>", 50256}}},
      {"r50k_base", kR50k, {{"<|endoftext|>", 50256}}},
      {"p50k_base", kR50k, {{"<|endoftext|>", 50256}}},
      {"p50k_edit",
       kR50k,
       {{"<|endoftext|>", 50256},
        {"<|fim_prefix|>", 50281},
        {"<|fim_middle|>", 50282},
        {"<|fim_suffix|>", 50283}}},
      {"cl100k_base",
       kCl100k,
       {{"<|endoftext|>", 100257},
        {"<|fim_prefix|>", 100258},
        {"<|fim_middle|>", 100259},
        {"<|fim_suffix|>", 100260},
        {"<|endofprompt|>", 100276}}},
      {"o200k_base", kO200k, {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}},
      {"o200k_harmony", kO200k, harmony_tokens()},
      {"qwen", kQwen, qwen_tokens()}};
  return known;
}

class RankReader {
 public:
  RankReader(std::string_view file, const RankEncoding& encoding) : file_(file), encoding_(encoding) {}

  Result<std::unique_ptr<Tokenizer::Impl>> read(std::string_view text) {
    size_t line = 0;
    while (!text.empty()) {
      const std::string_view row = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), row.size() + 1));
      ++line;
      if (row.empty() || row == "\r") continue;
      INVAR_CHECK_OK(rank(row, file_ + ": line " + std::to_string(line)));
    }
    if (ids_.empty()) return wrong(file_, "no line of a token and its rank");
    auto bpe = std::make_unique<Bpe>();
    for (int b = 0; b < 256; ++b) {
      const auto it = ids_.find(std::string(1, static_cast<char>(b)));
      if (it == ids_.end()) return wrong(file_, "no token for the byte " + std::to_string(b));
      bpe->byte_id[b] = it->second;
    }
    bpe->whole_words = true;
    bpe->word_id = ids_;
    merges(*bpe);
    impl_->model = std::move(bpe);
    INVAR_CHECK_OK(special_tokens());
    INVAR_TRY(Regex regex, Regex::pattern(encoding_.pattern));
    impl_->pre_tokenizers.push_back(make_split(std::move(regex), Behavior::isolated, false, encoding_.name));
    impl_->decoders.push_back(make_byte_level_decoder(true));
    return std::move(impl_);
  }

 private:
  Status rank(std::string_view row, const std::string& where) {
    if (row.ends_with('\r')) row.remove_suffix(1);
    const size_t space = row.find(' ');
    int32_t id = -1;
    const char* end = row.data() + row.size();
    const auto number = std::from_chars(row.data() + std::min(space, row.size() - 1) + 1, end, id);
    const auto bytes = base64_decode(row.substr(0, std::min(space, row.size())));
    if (space == row.npos || number.ec != std::errc() || number.ptr != end || id < 0 || !bytes ||
        bytes->empty())
      return wrong(where, "\"" + excerpt(row) + "\" is not the base64 of a token, a space and its rank");
    if (static_cast<size_t>(id) > 2 * ids_.size() + 100000)
      return wrong(where, "the rank " + std::to_string(id) + " is far above the number of tokens");
    INVAR_CHECK_OK(place(id, *bytes, where));
    if (!ids_.emplace(*bytes, id).second)
      return wrong(where, "the token \"" + excerpt(*bytes) + "\" is given twice");
    return {};
  }

  Status place(int32_t id, const std::string& bytes, const std::string& where) {
    if (static_cast<size_t>(id) >= impl_->tokens.size()) impl_->tokens.resize(static_cast<size_t>(id) + 1);
    if (impl_->tokens[id].exists) return wrong(where, "the rank " + std::to_string(id) + " is given twice");
    impl_->tokens[id] = {bytes, true, false};
    return {};
  }

  // Any two tokens that make a third one merge with its rank.
  void merges(Bpe& bpe) const {
    std::string left, right;
    for (const auto& [bytes, id] : ids_)
      for (size_t at = 1; at < bytes.size() && bytes.size() <= kLongest; ++at) {
        left.assign(bytes, 0, at), right.assign(bytes, at);
        const auto l = ids_.find(left), r = ids_.find(right);
        if (l != ids_.end() && r != ids_.end())
          bpe.merges.set(l->second, r->second, {static_cast<uint32_t>(id), id});
      }
  }

  Status special_tokens() {
    for (const auto& [content, given] : encoding_.special) {
      const int32_t id = given >= 0 ? given : static_cast<int32_t>(impl_->tokens.size());
      // A second name of a special token is found in text, and is not what the token decodes to.
      const bool second = static_cast<size_t>(id) < impl_->tokens.size() && impl_->tokens[id].special;
      if (!second) {
        INVAR_CHECK_OK(place(id, content, file_ + ": " + encoding_.name + ": " + content));
      }
      impl_->tokens[id].special = true;
      AddedToken t{id, content};
      t.normalized = false, t.special = true;
      impl_->raw.add(t, content);
      impl_->added.push_back(std::move(t));
    }
    return {};
  }

  static constexpr size_t kLongest = 1024;  // bytes of a token that merges make
  std::string file_;
  const RankEncoding& encoding_;
  std::unique_ptr<Tokenizer::Impl> impl_ = std::make_unique<Tokenizer::Impl>();
  std::unordered_map<std::string, int32_t> ids_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer::Impl>> read_tiktoken(std::string_view text, std::string_view file,
                                                       std::string_view encoding) {
  std::string names;
  for (const RankEncoding& e : encodings()) {
    if (encoding == e.name) return RankReader(file, e).read(text);
    names += names.empty() ? e.name : std::string(", ") + e.name;
  }
  return refused(std::string(file), "the encoding \"" + excerpt(encoding) + "\" (only " + names + ")");
}

}  // namespace invar::prompt
