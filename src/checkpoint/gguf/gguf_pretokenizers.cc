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

// The cased letters of Unicode that DeepSeek's tokenizer.json lists, not all of \p{L}.
constexpr char kDeepSeekLetters[] =
    "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-"
    "\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1"
    "\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd"
    "\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d"
    "\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-"
    "\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4"
    "\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d"
    "\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4"
    "\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e"
    "\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f"
    "\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2"
    "\U000118a0-\U000118df\U0001e900-\U0001e943]+";
constexpr char kDeepSeekMarks[] = "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+";
constexpr char kYoutuScripts[] =
    "[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f"
    "\ufe30-\ufe4f]+|[\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";
constexpr char kYoutuWords[] = INVAR_UPPER_LOWER INVAR_CONTRACTIONS
    "?|" INVAR_UPPER INVAR_CONTRACTIONS R"(?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
#define INVAR_NOT_HAN(set) "(?:(?!\\p{Han})" set ")"
#define INVAR_KIMI_UPPER INVAR_NOT_HAN(R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])")
#define INVAR_KIMI_LOWER INVAR_NOT_HAN(R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])")
constexpr char kKimiWords[] =
    R"(\p{Han}+|[^\r\n\p{L}\p{N}]?)" INVAR_KIMI_UPPER "*" INVAR_KIMI_LOWER "+" INVAR_CONTRACTIONS
    R"(?|[^\r\n\p{L}\p{N}]?)" INVAR_KIMI_UPPER "+" INVAR_KIMI_LOWER "*" INVAR_CONTRACTIONS
    R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr GgufPreTokenizer kGpt2{{kGpt2Words}}, kLlama3{{kLlama3Words}, true, true}, kSmaug{{kLlama3Words}},
    kQwen2{{kQwen2Words}}, kQwen35{{kQwen35Words}}, kTekken{{kTekkenWords}, true, true},
    kGpt4o{{kGpt4oWords}}, kDigits{{kOneDigit, kGpt2Words}},
    kFalcon{{kPunctuation, kGpt2Words, "[0-9][0-9][0-9]"}},
    kDeepSeek3{{kThreeDigits, kHanAndKana, kDeepSeekWords}}, kGlm4{{kLlama3Words}, true},
    kYoutu{{kYoutuScripts, kYoutuWords}, true}, kKimi{{kKimiWords}},
    kDeepSeekLlm{{"[\r\n]", kDeepSeekLetters, kDeepSeekMarks, R"(\s+$)",
                  "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", kOneDigit}},
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
    {"deepseek-llm", &kDeepSeekLlm},
    {"chatglm-bpe", &kSmaug},
    {"glm4", &kGlm4},
    {"youtu", &kYoutu},
    {"kimi-k2", &kKimi},
};

}  // namespace

const GgufPreTokenizer* find_gguf_pretokenizer(std::string_view name) {
  for (const auto& [known, pre] : kNames)
    if (name == known) return pre;
  return nullptr;
}

}  // namespace invar::checkpoint
