// The tokenizer of a GGUF file as the files of transformers (spec/weights.md weights.15).
#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "base/text/utf8.h"
#include "checkpoint/gguf/gguf_model.h"
#include "checkpoint/gguf/gguf_pretokenizers.h"
#include "onnx/error_text.h"

namespace invar::checkpoint {
namespace {

using json::Value;
using onnx::quote;

// tokenizer.ggml.token_type, numbered as SentencePiece's types.
enum TokenKind {
  kNormal = 1,
  kUnknown = 2,
  kControlToken = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByteToken = 6
};

constexpr std::string_view kSpaces = "gemma4";  // tokenizer.ggml.model of such merges
struct GgufTokens {
  std::string model, pre;
  std::vector<std::string_view> texts, merges;
  std::vector<int> kinds;      // by id
  std::vector<double> scores;  // by id; empty: none
};

Error wrong_tokenizer(const Gguf& g, const std::string& what) {
  return bad_input(g.path + ": tokenizer: " + what);
}

std::string text_key(const Gguf& g, const char* key) {
  const GgufValue* v = g.find(key);
  return v && v->string() ? std::string(*v->string()) : "";
}

std::optional<bool> flag_key(const Gguf& g, const char* key) {
  const GgufValue* v = g.find(key);
  return v ? v->flag() : std::nullopt;
}

// The id under `key`; -1: none.
int64_t token_key(const Gguf& g, const std::string& key, size_t tokens) {
  const GgufValue* v = g.find(key);
  const auto id = v ? v->size() : std::nullopt;
  return id && *id < tokens ? static_cast<int64_t>(*id) : -1;
}

Result<GgufTokens> read_gguf_tokens(const Gguf& g) {
  GgufTokens t;
  t.model = text_key(g, "tokenizer.ggml.model");
  t.pre = text_key(g, "tokenizer.ggml.pre");
  const GgufValue *texts = g.find("tokenizer.ggml.tokens"), *kinds = g.find("tokenizer.ggml.token_type"),
                  *scores = g.find("tokenizer.ggml.scores"), *merges = g.find("tokenizer.ggml.merges");
  if (texts) t.texts = texts->strings();
  if (t.texts.empty()) return wrong_tokenizer(g, "there is no list of texts tokenizer.ggml.tokens");
  const auto numbers = kinds ? kinds->numbers() : std::vector<double>(t.texts.size(), kNormal);
  if (!numbers || numbers->size() != t.texts.size())
    return wrong_tokenizer(
        g, "tokenizer.ggml.token_type is no list of " + std::to_string(t.texts.size()) + " numbers");
  for (const double kind : *numbers) {
    if (kind != std::floor(kind) || kind < 1 || kind > 6)
      return wrong_tokenizer(g, "tokenizer.ggml.token_type has another number than 1 to 6");
    t.kinds.push_back(static_cast<int>(kind));
  }
  if (scores) {
    const auto given = scores->numbers();
    if (!given || given->size() != t.texts.size())
      return wrong_tokenizer(
          g, "tokenizer.ggml.scores is no list of " + std::to_string(t.texts.size()) + " numbers");
    t.scores = *given;
  }
  if (merges) t.merges = merges->strings();
  for (const std::string_view text : t.texts)
    if (valid_prefix(text) != text.size()) return wrong_tokenizer(g, "a token is not UTF-8");
  return t;
}

// The wire format of protocol buffers, as far as a SentencePiece model needs it.
void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
void put_number(std::string& out, uint32_t field, uint64_t value) {
  put_varint(out, field << 3);
  put_varint(out, value);
}
void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_varint(out, field << 3 | 2);
  put_varint(out, bytes.size());
  out += bytes;
}
void put_real(std::string& out, uint32_t field, float value) {
  put_varint(out, field << 3 | 5);
  for (int i = 0; i < 4; ++i) out += static_cast<char>(std::bit_cast<uint32_t>(value) >> 8 * i);
}

// A ModelProto of SentencePiece.
Result<std::string> sentencepiece_model(const Gguf& g, const GgufTokens& t) {
  if (t.scores.empty()) return wrong_tokenizer(g, "there is no list of numbers tokenizer.ggml.scores");
  std::string out;
  int64_t unknown = token_key(g, "tokenizer.ggml.unknown_token_id", t.texts.size());
  if (unknown < 0 || t.kinds[static_cast<size_t>(unknown)] != kUnknown)
    unknown = std::ranges::find(t.kinds, kUnknown) - t.kinds.begin();
  for (size_t i = 0; i < t.texts.size(); ++i) {
    // llama.cpp takes the others for control tokens, too.
    const bool other = t.kinds[i] == kUnknown && static_cast<int64_t>(i) != unknown;
    std::string piece;
    put_bytes(piece, 1, t.texts[i]);
    put_real(piece, 2, static_cast<float>(t.scores[i]));
    put_number(piece, 3, static_cast<uint64_t>(other ? kControlToken : t.kinds[i]));
    put_bytes(out, 1, piece);
  }
  constexpr uint64_t kBpeModel = 2;
  std::string trainer, normalizer;
  put_number(trainer, 3, kBpeModel);
  put_number(trainer, 35, std::ranges::count(t.kinds, kByteToken) == 256);
  for (const auto& [field, key] :
       {std::pair{41u, "tokenizer.ggml.bos_token_id"}, {42u, "tokenizer.ggml.eos_token_id"}})
    put_number(trainer, field, static_cast<uint64_t>(token_key(g, key, t.texts.size())));
  put_number(normalizer, 3, flag_key(g, "tokenizer.ggml.add_space_prefix").value_or(true));
  put_number(normalizer, 4, flag_key(g, "tokenizer.ggml.remove_extra_whitespaces").value_or(false));
  put_number(normalizer, 5, 1);
  put_bytes(out, 2, trainer);
  put_bytes(out, 3, normalizer);
  return out;
}

Value split_by(const std::string& pattern, bool isolated = true) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", pattern}}},
          {"behavior", isolated ? "Isolated" : "Removed"},
          {"invert", false}};
}

// Begin-of-text in front and end-of-text behind, where they are wanted.
Value post_processor(const GgufTokens& t, int64_t begin, int64_t end) {
  if (begin < 0 && end < 0) return {};
  Value single(Value::array), tokens(Value::object);
  const auto add = [&](int64_t id) {
    if (id < 0) return;
    const std::string text(t.texts[static_cast<size_t>(id)]);
    single.add({{"SpecialToken", {{"id", text}, {"type_id", 0}}}});
    tokens[text] = {{"id", text}, {"ids", json::list({id})}, {"tokens", json::list({text})}};
  };
  add(begin);
  single.add({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  add(end);
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", Value(Value::array)},
          {"special_tokens", tokens}};
}

// How a text becomes parts that merges join, and back: by patterns and bytes, or as Gemma 4 has it,
// by spaces that are letters, with bytes of what has no token.
struct TextSteps {
  Value normalizer = {}, pre_tokenizer = {}, decoder = {}, model = {};
};
TextSteps steps_of_bytes(const GgufPreTokenizer& pre) {
  Value steps(Value::array);
  for (const char* pattern : pre.patterns)
    if (pattern) steps.add(split_by(pattern));
  steps.add(
      {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}});
  return {{},
          {{"type", "Sequence"}, {"pretokenizers", steps}},
          {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}},
          {{"type", "BPE"}, {"ignore_merges", pre.whole_words}}};
}
TextSteps steps_of_spaces(const GgufTokens& t) {
  constexpr const char* kSpace = "\u2581";
  const auto replaced = [](const char* from, const char* to) {
    return Value{{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
  };
  TextSteps s;
  s.normalizer = replaced(" ", kSpace);
  s.pre_tokenizer = {{"type", "Split"},
                     {"pattern", {{"String", " "}}},
                     {"behavior", "MergedWithPrevious"},
                     {"invert", false}};
  Value steps(Value::array);
  steps.add(replaced(kSpace, " ")), steps.add({{"type", "ByteFallback"}}), steps.add({{"type", "Fuse"}});
  s.decoder = {{"type", "Sequence"}, {"decoders", steps}};
  s.model = {{"type", "BPE"}, {"byte_fallback", true}, {"fuse_unk", true}, {"ignore_merges", false}};
  const auto unknown = std::ranges::find(t.kinds, kUnknown);
  if (unknown != t.kinds.end())
    s.model["unk_token"] = t.texts[static_cast<size_t>(unknown - t.kinds.begin())];
  return s;
}

Result<std::string> tokenizer_json(const Gguf& g, const GgufTokens& t, bool add_begin, bool add_end) {
  const bool spaces = t.model == kSpaces;
  const GgufPreTokenizer* pre = find_gguf_pretokenizer(t.pre);
  if (!pre && !spaces)
    return not_covered(g.path + ": tokenizer.ggml.pre = " + quote(t.pre) +
                       " is not covered: pass the checkpoint that the file was made of");
  if (t.merges.empty()) return wrong_tokenizer(g, "there is no list of texts tokenizer.ggml.merges");
  Value vocabulary(Value::object), added(Value::array), merges(Value::array);
  std::set<std::string_view> seen;
  for (size_t i = 0; i < t.texts.size(); ++i) {
    const int kind = t.kinds[i];
    if (kind == kUnused) continue;  // rows of the table that no text has
    if (!seen.insert(t.texts[i]).second)
      return wrong_tokenizer(g, "the token " + quote(t.texts[i]) + " is given twice");
    vocabulary.members.push_back({std::string(t.texts[i]), Value(i)});
    if (kind == kNormal || kind == kByteToken) continue;
    added.add({{"id", Value(i)},
               {"content", t.texts[i]},
               {"single_word", false},
               {"lstrip", false},
               {"rstrip", false},
               {"normalized", false},
               {"special", kind != kUserDefined}});
  }
  for (const std::string_view merge : t.merges) {
    if (valid_prefix(merge) != merge.size()) return wrong_tokenizer(g, "a merge is not UTF-8");
    const size_t space = merge.find(' ', 1);
    if (space == merge.npos) return wrong_tokenizer(g, "the merge " + quote(merge) + " has no space");
    merges.add(json::list({merge.substr(0, space), merge.substr(space + 1)}));
  }
  TextSteps steps = spaces ? steps_of_spaces(t) : steps_of_bytes(*pre);
  steps.model["vocab"] = vocabulary, steps.model["merges"] = merges;
  const int64_t begin = add_begin ? token_key(g, "tokenizer.ggml.bos_token_id", t.texts.size()) : -1;
  const int64_t end = add_end ? token_key(g, "tokenizer.ggml.eos_token_id", t.texts.size()) : -1;
  const Value file{{"version", "1.0"},
                   {"added_tokens", added},
                   {"normalizer", steps.normalizer},
                   {"pre_tokenizer", steps.pre_tokenizer},
                   {"post_processor", post_processor(t, begin, end)},
                   {"decoder", steps.decoder},
                   {"model", steps.model}};
  return json::dump(file);
}

// chat_template, and more by name.
Value chat_templates(const Gguf& g) {
  const std::string usual = text_key(g, "tokenizer.chat_template");
  const GgufValue* names = g.find("tokenizer.chat_templates");
  const auto others = names ? names->strings() : std::vector<std::string_view>();
  if (others.empty()) return usual.empty() ? Value() : Value(usual);
  Value list(Value::array);
  if (!usual.empty()) list.add({{"name", "default"}, {"template", usual}});
  for (const std::string_view name : others)
    list.add({{"name", name},
              {"template", text_key(g, ("tokenizer.chat_template." + std::string(name)).c_str())}});
  return list;
}

}  // namespace

Result<std::map<std::string, std::string>> gguf_tokenizer(const Gguf& g) {
  INVAR_TRY(const GgufTokens t, read_gguf_tokens(g));
  const bool pieces = t.model == "llama";
  if (!pieces && t.model != "gpt2" && t.model != kSpaces)
    return not_covered(
        g.path + ": tokenizer.ggml.model = " + quote(t.model) +
        " is not covered; llama, gpt2 and gemma4 are: pass the checkpoint that the file was made of");
  const GgufPreTokenizer* pre = find_gguf_pretokenizer(t.pre);
  const bool begin = flag_key(g, "tokenizer.ggml.add_bos_token").value_or(pieces || (pre && pre->begins));
  const bool end = flag_key(g, "tokenizer.ggml.add_eos_token").value_or(false);
  std::map<std::string, std::string> files;
  if (pieces) {
    INVAR_TRY(files["tokenizer.model"], sentencepiece_model(g, t));
  } else {
    INVAR_TRY(files["tokenizer.json"], tokenizer_json(g, t, begin, end));
  }
  Value config{{"add_bos_token", begin}, {"add_eos_token", end}};
  for (const auto& [key, name] : {std::pair{"bos_token", "bos"},
                                  {"eos_token", "eos"},
                                  {"unk_token", "unknown"},
                                  {"pad_token", "padding"}}) {
    const int64_t id = token_key(g, "tokenizer.ggml." + std::string(name) + "_token_id", t.texts.size());
    const int kind = id < 0 ? kNormal : t.kinds[static_cast<size_t>(id)];
    if (kind == kControlToken || kind == kUnknown) config[key] = t.texts[static_cast<size_t>(id)];
  }
  if (const Value templates = chat_templates(g); !templates.is_null()) config["chat_template"] = templates;
  files["tokenizer_config.json"] = json::dump(json::sorted(std::move(config)), {.indent = 2}) + "\n";
  return files;
}

}  // namespace invar::checkpoint
