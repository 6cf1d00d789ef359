// tokenizer_config.json against tokenizer.json (spec/tokens.md tokens.11).
#include <algorithm>

#include "base/text/display.h"
#include "base/text/json.h"
#include "prompt/tokenizer_impl.h"

namespace invar::prompt {
namespace {

using Json = json::Value;

// Keys that change texts or tokens; null, false and what is empty switch them off.
constexpr const char* kSwitches[] = {
    "split_special_tokens", "fix_mistral_regex",
    "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output", "auto_map"};
constexpr const char* kLists[] = {"extra_special_tokens", "additional_special_tokens",
                                  "model_specific_special_tokens"};

class ConfigCheck {
 public:
  ConfigCheck(const std::vector<AddedToken>& added, std::string_view file) : added_(added), file_(file) {}

  Status check(const Json& config) const {
    for (const auto& [key, value] : config.members) {
      if (std::ranges::count(kSwitches, key)) {
        const bool off = value.is_null() || value == false || (value.is_structured() && value.empty());
        if (!off) return refused(key, "changes the tokenizer and is not supported");
      } else if (std::ranges::count(kLists, key)) {
        for (const Json& token : value.items) INVAR_CHECK_OK(named(key, token, false));
        for (const auto& [name, token] : value.members) INVAR_CHECK_OK(named(key, token, false));
      } else if (key == "added_tokens_decoder") {
        for (const Json& token : value.items) INVAR_CHECK_OK(described(key, token));
        for (const auto& [name, token] : value.members) INVAR_CHECK_OK(described(key, token));
      } else if (key.ends_with("_token")) {
        INVAR_CHECK_OK(named(key, value, true));
      }
    }
    return {};
  }

 private:
  Error refused(const std::string& key, const std::string& what) const {
    return not_covered(file_ + ": " + key + ": " + what);
  }

  static std::string content_of(const Json& token) {
    if (token.is_object()) return content_of(token.get("content"));
    return token.is_string() ? token.text : std::string();
  }

  const AddedToken* find(const std::string& content) const {
    const auto at = std::ranges::find(added_, content, &AddedToken::content);
    return at == added_.end() ? nullptr : &*at;
  }

  Status named(const std::string& key, const Json& token, bool special) const {
    const std::string content = content_of(token);
    if (content.empty()) return {};
    const AddedToken* known = find(content);
    if (known && (known->special || !special)) return {};
    return refused(key, "\"" + excerpt(content) + "\" is no " + (special ? "special " : "") +
                            "added token of tokenizer.json, so it is not supported");
  }

  Status described(const std::string& key, const Json& token) const {
    INVAR_CHECK_OK(named(key, token, false));
    const AddedToken* known = find(content_of(token));
    if (!known) return {};
    const auto is = [&](const char* name, bool otherwise) {
      const Json& flag = token.get(name);
      return flag.is_boolean() ? flag.is_true() : otherwise;
    };
    const bool special = is("special", false);
    const bool same = is("lstrip", false) == known->lstrip && is("rstrip", false) == known->rstrip &&
                      is("single_word", false) == known->single_word &&
                      is("normalized", !special) == known->normalized && (known->special || !special);
    if (same) return {};
    return refused(key, "\"" + excerpt(known->content) +
                            "\" has other flags than in tokenizer.json, so it is not supported");
  }

  const std::vector<AddedToken>& added_;
  std::string file_;
};

}  // namespace

Status Tokenizer::check_config(std::string_view text, std::string_view file_name_for_errors) const {
  const Json config = json::read_or_null(text);
  if (!config.is_object()) return bad_input(std::string(file_name_for_errors) + ": not a JSON object");
  return ConfigCheck(impl_->added, file_name_for_errors).check(config);
}

}  // namespace invar::prompt
