#include "generate/model/chat_template_text.h"

#include <map>

#include "base/file/file.h"
#include "base/file/listing.h"
#include "base/text/json.h"
#include "base/text/utf8.h"

namespace invar::generate {
namespace {

using json::Value;

// Names and texts are hashed as JSON, which holds UTF-8 alone.
Status check_utf8(std::string_view text, const std::string& what) {
  const size_t valid = valid_prefix(text);
  if (valid < text.size()) return bad_input(what + ": not UTF-8 at byte " + std::to_string(valid));
  return {};
}

using Templates = std::map<std::string, std::string>;  // name -> text

Status add_file(const std::string& name, const std::string& path, Templates& templates) {
  const std::string where = "chat template " + invar::json::quote(path);
  INVAR_TRY(templates[name], read_file(path));
  INVAR_CHECK_OK(check_utf8(name, where + ", its name"));
  return check_utf8(templates[name], where);
}

Status add_files(const std::string& folder, Templates& templates) {
  constexpr std::string_view kJinja = ".jinja";
  if (exists(folder + "/chat_template.jinja")) {
    INVAR_CHECK_OK(add_file("default", folder + "/chat_template.jinja", templates));
  }
  const std::string additional = folder + "/additional_chat_templates";
  if (!is_folder(additional)) return {};
  INVAR_TRY(const std::vector<std::string> names, names_in(additional));
  for (const std::string& name : names) {
    if (name.size() == kJinja.size() || !name.ends_with(kJinja)) continue;
    INVAR_CHECK_OK(add_file(name.substr(0, name.size() - kJinja.size()), additional + "/" + name, templates));
  }
  return {};
}

// A text, a list of {"name", "template"} (transformers 4), or an object of texts.
bool add_value(const Value& value, Templates& templates) {
  auto add = [&](const Value& name, const Value& text) {
    return name.is_string() && text.is_string() && templates.emplace(name.text, text.text).second;
  };
  if (value.is_string()) return add("default", value);
  if (!value.is_array() && !value.is_object()) return false;
  for (const Value& one : value.items)
    if (!one.is_object() || !add(one.get("name"), one.get("template"))) return false;
  for (const auto& [key, one] : value.members)
    if (!add(key, one)) return false;
  return true;
}

// Templates see the special tokens by their names; a later file does not replace an earlier one.
void add_special_tokens(const Value& object, prompt::ChatTemplates& templates) {
  const auto add = [&](const std::string& name, const Value& token) {
    const Value content = token.is_object() ? token.get("content") : token;
    if (content.is_string() && !content.text.empty()) templates.special_tokens.emplace(name, content.text);
  };
  for (const char* name :
       {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"})
    if (object.contains(name)) add(name, object.get(name));
  for (const char* name : {"extra_special_tokens", "model_specific_special_tokens"})
    if (const Value more = object.get(name); more.is_object())
      for (const auto& [key, token] : more.members) add(key, token);
}

}  // namespace

Result<prompt::ChatTemplates> read_chat_templates(const std::string& folder, const Value& tokenizer_config,
                                                  const Value& special_tokens_map) {
  prompt::ChatTemplates all;
  INVAR_CHECK_OK(add_files(folder, all.texts));
  const auto value = tokenizer_config.find("chat_template");
  const bool given = value && !value->is_null();
  if (all.texts.empty() && given && !add_value(*value, all.texts))
    return bad_input(folder +
                     "/tokenizer_config.json: chat_template is neither a text nor a list of objects with "
                     "\"name\" and \"template\", each name once");
  add_special_tokens(tokenizer_config, all);
  add_special_tokens(special_tokens_map, all);
  return all;
}

std::string chat_template_text(const prompt::ChatTemplates& templates) {
  const Templates& texts = templates.texts;
  if (texts.empty()) return "";
  if (texts.size() == 1 && texts.contains("default")) return texts.at("default");
  std::string all;
  for (const auto& [name, text] : texts)
    all += (all.empty() ? "{" : ",") + invar::json::quote(name) + ":" + invar::json::quote(text);
  return all + "}";
}

}  // namespace invar::generate
