// Fuzzes tokenizer files: tokenizer.json, SentencePiece models, lists of ranks. What opens must
// encode and decode any text, a token by itself as all at once. An input: the file, texts.
#include <algorithm>

#include "fuzz/parsers/parts.h"
#include "prompt/prompt.h"

namespace invar {
namespace {

using prompt::Stream;
using prompt::Tokenizer;

constexpr std::string_view kText =
    "The cafe\u0301 don't  12345\n\t<s>\u4e2d\u6587 \U0001f600</s><|endoftext|>";

void decode(const Tokenizer& t, std::vector<int32_t> ids) {
  for (const bool skip : {true, false}) {
    const std::string whole = t.decode(ids, skip);
    Stream stream(t, skip);
    std::string text;
    for (const int32_t id : ids) text += stream.push(id);
    text += stream.finish();
    if (text != whole) defect("a stream says \"" + text + "\", decode says \"" + whole + "\"");
  }
}

void encode(const Tokenizer& t, std::string_view text) {
  for (const bool special : {true, false}) {
    const auto ids = t.encode(text, special);
    if (!ids) return expect(ids.error());
    if (ids->size() > 100 * text.size() + 1000) defect("too many tokens");
    for (const int32_t id : *ids)
      if (id < 0 || id >= t.vocab_size()) defect("no token " + std::to_string(id));
    decode(t, *ids);
  }
}

void try_tokenizer(const Result<Tokenizer>& t, const std::vector<std::string_view>& parts) {
  if (!t) return expect(t.error());
  encode(*t, kText);
  for (size_t i = 1; i < std::min<size_t>(parts.size(), 4); ++i) {
    encode(*t, parts[i]);
    std::vector<int32_t> ids;
    for (const char c : parts[i])
      ids.push_back(static_cast<unsigned char>(c) * 37 % (t->vocab_size() + 2) - 1);
    decode(*t, ids);
    if (const auto status = t->check_config(parts[i], "tokenizer_config.json"); !status)
      expect(status.error());
  }
}

}  // namespace
}  // namespace invar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace invar;
  const auto parts = parts_of(data, size);
  if (parts[0].starts_with('{')) {
    try_tokenizer(Tokenizer::parse(parts[0], "tokenizer.json"), parts);
  } else if (parts[0].starts_with("IQ==") || parts[0].starts_with("AA==")) {
    for (const char* encoding : {"qwen", "cl100k_base", "o200k_base", "r50k_base"})
      try_tokenizer(Tokenizer::parse_tiktoken(parts[0], "f.tiktoken", encoding), parts);
  } else {
    // A model may hold U+001E.
    const std::string_view all(reinterpret_cast<const char*>(data), size);
    try_tokenizer(Tokenizer::parse_sentencepiece(all, "tokenizer.model", {true, size % 2 == 0}),
                  {all, kText});
  }
  return 0;
}
