// Tokenizers of small models: texts and their tokens.
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "base/file/file.h"
#include "base/text/json.h"
#include "base/text/utf8.h"
#include "prompt/files/scores.h"
#include "prompt/models/bpe.h"
#include "prompt/prompt.h"

namespace invar::prompt {
namespace {

using Json = json::Value;
using Ids = std::vector<int32_t>;

// A byte-level tokenizer: the 256 bytes are the tokens 0..255, "ab" is 256, "abc" 257, <s> 258
// (special).
Json tiny() {
  Json vocab;
  for (int b = 0; b < 256; ++b) {
    std::string name;
    append_utf8(name, character_of_byte(static_cast<uint8_t>(b)));
    vocab[name] = b;
  }
  vocab["ab"] = 256, vocab["abc"] = 257, vocab["<s>"] = 258;
  return {{"version", "1.0"},
          {"added_tokens", json::list({{{"id", 258},
                                        {"content", "<s>"},
                                        {"single_word", false},
                                        {"lstrip", false},
                                        {"rstrip", false},
                                        {"normalized", false},
                                        {"special", true}}})},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model",
           {{"type", "BPE"}, {"vocab", vocab}, {"merges", json::list({"a b", json::list({"ab", "c"})})}}}};
}

Tokenizer made(const Json& j) {
  auto t = Tokenizer::parse(json::dump(j), "t.json");
  EXPECT_TRUE(t) << t.error().message;
  return *std::move(t);
}

Tokenizer shipped() {
  auto text = read_file(INVAR_SOURCE_DIR "/models/shakespeare-4m/tokenizer.json");
  EXPECT_TRUE(text);
  auto t = Tokenizer::parse(*text, "tokenizer.json");
  EXPECT_TRUE(t) << t.error().message;
  return *std::move(t);
}

Ids ids(const Tokenizer& t, std::string_view text, bool special = true) {
  auto r = t.encode(text, special);
  EXPECT_TRUE(r) << r.error().message;
  return *r;
}

// Ids as PyPI tokenizers 0.23.3 gives them.
TEST(Tokenizer, Shipped) {
  const Tokenizer t = shipped();
  EXPECT_EQ(t.vocab_size(), 2048);
  EXPECT_EQ(ids(t, "ROMEO:\n"), (Ids{0, 848, 270}));
  EXPECT_EQ(ids(t, "ROMEO:\n", false), (Ids{848, 270}));
  EXPECT_EQ(ids(t, "<|begin_of_text|>a<|end_of_text|>b"), (Ids{0, 0, 66, 1, 67}));
  EXPECT_TRUE(t.is_special(0) && t.is_special(1));
  EXPECT_FALSE(t.is_special(2) || t.is_special(-1) || t.is_special(1 << 30));
  EXPECT_EQ(t.decode(ids(t, "Caf\u00E9 \U0001F600\n")), "Caf\u00E9 \U0001F600\n");
  EXPECT_EQ(t.decode(Ids{0, 848, 1}), "ROMEO");
  EXPECT_EQ(t.decode(Ids{0, 848, 1}, false), "<|begin_of_text|>ROMEO<|end_of_text|>");
  EXPECT_EQ(t.decode(Ids{-1, 848, 1 << 30}), "ROMEO");
}

TEST(Tokenizer, MergesByRankFromTheLeft) {
  const Tokenizer t = made(tiny());
  EXPECT_EQ(ids(t, "abcab"), (Ids{257, 256}));
  EXPECT_EQ(ids(t, "aab<s>c"), (Ids{'a', 256, 258, 'c'}));
}

// Words of up to 24 symbols merge by scanning, longer ones by a heap: the definition, done naively,
// is the oracle.
TEST(Bpe, EveryLengthMergesAsDefined) {
  Bpe bpe;
  for (int b = 0; b < 256; ++b) bpe.byte_id[b] = b;
  uint32_t state = 1;
  const auto random = [&](uint32_t n) { return (state = state * 1664525u + 1013904223u) / 65536 % n; };
  std::map<std::pair<int32_t, int32_t>, Merge> merges;
  for (uint32_t rank = 0; rank < 120; ++rank) {
    const auto part = [&] {
      return static_cast<int32_t>(random(3) ? 'a' + random(3) : 1000 + random(rank + 1));
    };
    const std::pair<int32_t, int32_t> pair = {part(), part()};
    merges[pair] = {rank, static_cast<int32_t>(1000 + rank)};
    bpe.merges.set(pair.first, pair.second, merges[pair]);
  }
  Bpe::Scratch scratch;
  for (size_t length = 0; length < 200; ++length) {
    std::string word;
    for (size_t i = 0; i < length; ++i) word += static_cast<char>('a' + random(3));
    Ids naive(word.begin(), word.end());
    for (;;) {
      const Merge* best = nullptr;
      size_t at = 0;
      for (size_t i = 0; i + 1 < naive.size(); ++i) {
        auto m = merges.find({naive[i], naive[i + 1]});
        if (m != merges.end() && (!best || m->second.rank < best->rank)) best = &m->second, at = i;
      }
      if (!best) break;
      naive[at] = best->merged;
      naive.erase(naive.begin() + static_cast<ptrdiff_t>(at) + 1);
    }
    Ids out = {42};
    if (word.empty()) continue;
    ASSERT_TRUE(bpe.encode(word, out, scratch));
    ASSERT_EQ(out[0], 42);
    out.erase(out.begin());
    ASSERT_EQ(out, naive) << word;
  }
}

TEST(Tokenizer, IgnoreMergesTakesWholeWords) {
  Json j = tiny();
  j["model"]["vocab"]["xyz"] = 259;
  EXPECT_EQ(ids(made(j), "xyz"), (Ids{'x', 'y', 'z'}));
  j["model"]["ignore_merges"] = true;
  EXPECT_EQ(ids(made(j), "xyz"), (Ids{259}));
  EXPECT_EQ(ids(made(j), "xyzabc"), (Ids{'x', 'y', 'z', 257}));
}

TEST(Tokenizer, PrefixSpace) {
  Json j = tiny();
  j["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_EQ(ids(made(j), "a"), (Ids{' ', 'a'}));
  EXPECT_EQ(ids(made(j), " a<s>b"), (Ids{' ', 'a', 258, ' ', 'b'}));
  EXPECT_EQ(ids(made(j), ""), Ids{});
}

// A file of a megabyte that takes gigabytes: many steps with tables, or steps that double a text.
TEST(Tokenizer, StepsAreBounded) {
  const Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const auto with = [&](size_t steps) {
    Json j = tiny();
    j["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", Json::array}};
    for (size_t i = 0; i < steps; ++i) j["pre_tokenizer"]["pretokenizers"].add(bytes);
    return Tokenizer::parse(json::dump(j), "t.json");
  };
  const auto many = with(257);
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().code, Code::not_covered);
  EXPECT_NE(many.error().message.find("more than 256 steps"), std::string::npos) << many.error().message;
  const auto most = with(256);
  ASSERT_TRUE(most);
  const auto doubled = most->encode("\xc3\xa9");
  ASSERT_FALSE(doubled);
  EXPECT_NE(doubled.error().message.find("pre-tokenizers make this text too long"), std::string::npos)
      << doubled.error().message;
  EXPECT_EQ(ids(*most, "ab").size(), 1u);
}

TEST(Tokenizer, Template) {
  Json j = tiny();
  j["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", json::list({{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
                             {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
                             {{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}}})},
      {"special_tokens",
       {{"<s>", {{"id", "<s>"}, {"ids", json::list({258})}, {"tokens", json::list({"<s>"})}}}}}};
  EXPECT_EQ(ids(made(j), "a"), (Ids{258, 'a', 258}));
  EXPECT_EQ(ids(made(j), "a", false), (Ids{'a'}));
}

TEST(Tokenizer, InvalidUtf8IsRefusedWithItsPlace) {
  auto r = made(tiny()).encode("ab\xC3(");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, Code::bad_input);
  EXPECT_NE(r.error().message.find("byte 2 of 4"), std::string::npos) << r.error().message;
}

TEST(Tokenizer, MissingByte) {
  Json j = tiny();
  j["model"]["vocab"].erase("q");
  auto r = made(j).encode("aq");
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().message.find("byte 113"), std::string::npos) << r.error().message;
  j["model"]["vocab"]["<unk>"] = 259;
  j["model"]["unk_token"] = "<unk>";
  EXPECT_EQ(ids(made(j), "aqqb"), (Ids{'a', 259, 259, 'b'}));
  j["model"]["fuse_unk"] = true;
  EXPECT_EQ(ids(made(j), "aqqb"), (Ids{'a', 259, 'b'}));
}

TEST(Stream, HoldsBackIncompleteCharacters) {
  const Tokenizer t = made(tiny());
  Stream s(t);
  const auto after = [&](Ids row) {
    std::string out;
    for (int32_t id : row) out += s.push(id);
    return out;
  };
  EXPECT_EQ(after({0xF0, 0x9F, 0x98}), "");
  EXPECT_EQ(after({0x80}), "\U0001F600");
  EXPECT_EQ(after({0xE2, 'a'}), "\uFFFDa");
  EXPECT_EQ(after({258, 0xC3}), "");
  EXPECT_EQ(s.finish(), "\uFFFD");
  EXPECT_EQ(s.finish(), "");
}

TEST(Stream, PiecesJoinedEqualDecode) {
  const Tokenizer t = made(tiny());
  uint32_t state = 7;
  for (int round = 0; round < 2000; ++round) {
    Ids row;
    for (int i = 0; i < 12; ++i) row.push_back((state = state * 1664525u + 1013904223u) >> 24);
    Stream s(t);
    std::string joined;
    for (int32_t id : row) joined += s.push(id);
    joined += s.finish();
    std::string bytes, whole;
    for (int32_t id : row) bytes += static_cast<char>(id);
    append_lossy(whole, bytes, false);
    ASSERT_EQ(joined, whole);
    ASSERT_EQ(t.decode(row), whole);
  }
}

TEST(Tokenizer, UnicodeVersion) {
  EXPECT_EQ(unicode_version(), "16.0.0");
}

TEST(Tokenizer, AConfigThatSaysAnotherTokenIsRefused) {
  Json j = tiny();
  j["added_tokens"].add({{"id", 259},
                         {"content", "<t>"},
                         {"single_word", false},
                         {"lstrip", true},
                         {"rstrip", false},
                         {"normalized", true},
                         {"special", false}});
  const Tokenizer t = made(j);
  const Json start = {{"content", "<s>"}, {"special", true}}, plain = {{"content", "<t>"}, {"lstrip", true}};
  for (const Json& config :
       {Json(Json::object), Json{{"bos_token", "<s>"}}, Json{{"bos_token", start}},
        Json{{"pad_token", nullptr}}, Json{{"pad_token", ""}}, Json{{"add_bos_token", true}},
        Json{{"auto_map", Json::object}}, Json{{"extra_special_tokens", json::list({"<s>", "<t>"})}},
        Json{{"split_special_tokens", false}},
        Json{{"added_tokens_decoder", {{"258", start}, {"259", plain}}}}}) {
    const Status s = t.check_config(json::dump(config), "c.json");
    EXPECT_TRUE(s) << json::dump(config) << s.error().message;
  }
  Json other = plain;
  other["lstrip"] = false;
  for (const auto& [key, value] : std::map<std::string, Json>{
           {"bos_token", "<new>"},
           {"image_token", "<new>"},
           {"pad_token", "<t>"},  // transformers would make it special
           {"extra_special_tokens", {{"image_token", "<new>"}}},
           {"additional_special_tokens", json::list({"abc"})},  // in the vocabulary alone
           {"added_tokens_decoder", {{"259", other}}},
           {"split_special_tokens", true},
           {"auto_map", {{"AutoTokenizer", "code.Class"}}}}) {
    const Status s = t.check_config(json::dump({{key, value}}), "c.json");
    ASSERT_FALSE(s) << key;
    EXPECT_EQ(s.error().code, Code::not_covered);
    EXPECT_TRUE(s.error().message.starts_with("c.json: " + key + ": ")) << s.error().message;
  }
}

// serde_json of tokenizers 0.23.3 prints these back; the first two are not the nearest doubles.
TEST(Scores, AreReadAsTokenizersReadsThem) {
  EXPECT_EQ(score_of("-7.3865954196200425"), -7.386595419620043);
  EXPECT_EQ(score_of("-5.911534350013039e-08"), -5.9115343500130396e-08);
  EXPECT_EQ(score_of("-3.5"), -3.5);
  EXPECT_EQ(score_of("184467440737095516150000"), 184467440737095516150000.0);
  EXPECT_EQ(score_of("1E+2"), 100);
  EXPECT_EQ(score_of("1.5e-320"), 1.5e-320);
  EXPECT_EQ(score_of("0.0e-999999999999"), 0);
}

// The bytes of tokens, joined, are the text, but for what decoders do to its first token.
TEST(Tokenizer, TokensHaveBytes) {
  const auto bytes = made(tiny()).token_bytes();
  ASSERT_TRUE(bytes);
  for (size_t b = 0; b < 256; ++b) EXPECT_EQ((*bytes)[b], std::string(1, static_cast<char>(b)));
  EXPECT_EQ((*bytes)[257], "abc");
  EXPECT_EQ((*bytes)[258], std::nullopt);
  Json llama = tiny();
  llama["model"]["vocab"]["<0x0A>"] = 259, llama["model"]["vocab"]
                                                ["\xe2\x96\x81"
                                                 "a"] = 260;
  llama["decoder"] = {
      {"type", "Sequence"},
      {"decoders",
       json::list({{{"type", "Replace"}, {"pattern", {{"String", "\xe2\x96\x81"}}}, {"content", " "}},
                   {{"type", "ByteFallback"}},
                   {{"type", "Fuse"}},
                   {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}})}};
  const auto of_llama = made(llama).token_bytes();
  ASSERT_TRUE(of_llama);
  EXPECT_EQ((*of_llama)[259], "\n");
  EXPECT_EQ((*of_llama)[260], " a");
  Json words = tiny();
  words["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  EXPECT_EQ(made(words).token_bytes().error().code, Code::not_covered);
  EXPECT_EQ(Tokenizer::of_ids().token_bytes().error().code, Code::not_covered);
  for (const char* name : {"bpe.model", "unigram.model"}) {
    const auto file = read_file(std::string(INVAR_SOURCE_DIR "/tests/tokenizer/vectors/") + name);
    const auto pieces = Tokenizer::parse_sentencepiece(*file, name);
    ASSERT_TRUE(pieces);
    const auto all = pieces->token_bytes();
    ASSERT_TRUE(all);
    const Ids text = ids(*pieces, "the caf\u00e9 \u4e2d 12\n");
    std::string joined;
    for (const int32_t t : text) joined += (*all)[static_cast<size_t>(t)].value_or("");
    EXPECT_TRUE(joined.ends_with(pieces->decode(text))) << joined;
  }
}

}  // namespace
}  // namespace invar::prompt
