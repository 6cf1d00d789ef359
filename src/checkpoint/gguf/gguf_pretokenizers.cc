#include "checkpoint/gguf/gguf_pretokenizers.h"

#include <utility>

namespace invar::checkpoint {
namespace {

#define INVAR_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define INVAR_UPPER_LOWER R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
#define INVAR_UPPER R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"

constexpr char kGpt2Words[] = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr char kLlama3Words[] = INVAR_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kQwen2Words[] = INVAR_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kQwen35Words[] = INVAR_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kTekkenWords[] =
    INVAR_UPPER_LOWER "|" INVAR_UPPER R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kGpt4oWords[] = INVAR_UPPER_LOWER INVAR_CONTRACTIONS
    "?|" INVAR_UPPER INVAR_CONTRACTIONS R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kDeepSeekWords[] =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kPunctuation[] = R"([\p{P}\$\+<=>\^~\|`]+)";
constexpr char kThreeDigits[] = R"(\p{N}{1,3})";
constexpr char kOneDigit[] = R"(\p{N})";
constexpr char kHanAndKana[] = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";

constexpr GgufPreTokenizer kGpt2{{kGpt2Words}}, kLlama3{{kLlama3Words}, true, true}, kSmaug{{kLlama3Words}},
    kQwen2{{kQwen2Words}}, kQwen35{{kQwen35Words}}, kTekken{{kTekkenWords}, true, true},
    kGpt4o{{kGpt4oWords}}, kDigits{{kOneDigit, kGpt2Words}},
    kFalcon{{kPunctuation, kGpt2Words, "[0-9][0-9][0-9]"}},
    kDeepSeek3{{kThreeDigits, kHanAndKana, kDeepSeekWords}},
    kDeepSeekCoder{
        {"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", kOneDigit}};

constexpr std::pair<std::string_view, const GgufPreTokenizer*> kNames[] = {
    {"gpt-2", &kGpt2},
    {"phi-2", &kGpt2},
    {"mpt", &kGpt2},
    {"falcon", &kFalcon},
    {"olmo", &kGpt2},
    {"exaone4", &kGpt2},
    {"granite-docling", &kGpt2},
    {"llama3", &kLlama3},
    {"llama-v3", &kLlama3},
    {"llama-bpe", &kLlama3},
    {"falcon3", &kLlama3},
    {"lfm2", &kLlama3},
    {"pixtral", &kLlama3},
    {"dbrx", &kSmaug},
    {"smaug-bpe", &kSmaug},
    {"qwen2", &kQwen2},
    {"deepseek-r1-qwen", &kQwen2},
    {"stablelm2", &kQwen2},
    {"megrez", &kQwen2},
    {"hunyuan", &kQwen2},
    {"qwen35", &kQwen35},
    {"tekken", &kTekken},
    {"gpt-4o", &kGpt4o},
    {"llama4", &kGpt4o},
    {"starcoder", &kDigits},
    {"refact", &kDigits},
    {"command-r", &kDigits},
    {"smollm", &kDigits},
    {"codeshell", &kDigits},
    {"exaone", &kDigits},
    {"minerva-7b", &kDigits},
    {"deepseek-v3", &kDeepSeek3},
    {"hunyuan-dense", &kDeepSeek3},
    {"deepseek-coder", &kDeepSeekCoder},
};

}  // namespace

const GgufPreTokenizer* find_gguf_pretokenizer(std::string_view name) {
  for (const auto& [known, pre] : kNames)
    if (name == known) return pre;
  return nullptr;
}

}  // namespace invar::checkpoint
