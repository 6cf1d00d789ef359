#include "generate/model/chat_template_text.h"

#include <filesystem>
#include <map>

#include "base/file/file.h"
#include "base/text/json.h"
#include "base/text/utf8.h"

namespace invar::generate {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Names and texts are hashed as JSON, which holds UTF-8 alone.
Status check_utf8(std::string_view text, const std::string& what) {
  const size_t valid = valid_prefix(text);
  if (valid < text.size()) return bad_input(what + ": not UTF-8 at byte " + std::to_string(valid));
  return {};
}

using Templates = std::map<std::string, std::string>;  // name -> text

Status add_file(const std::string& name, const fs::path& path, Templates& templates) {
  const std::string where = "chat template " + invar::json::quote(path.string());
  INVAR_TRY(templates[name], read_file(path.string()));
  INVAR_CHECK_OK(check_utf8(name, where + ", its name"));
  return check_utf8(templates[name], where);
}

Status add_files(const fs::path& folder, Templates& templates) {
  std::error_code ec;
  if (fs::exists(folder / "chat_template.jinja", ec)) {
    INVAR_CHECK_OK(add_file("default", folder / "chat_template.jinja", templates));
  }
  const fs::path additional = folder / "additional_chat_templates";
  if (!fs::is_directory(additional, ec)) return {};
  for (fs::directory_iterator at(additional, ec), end; !ec && at != end; at.increment(ec)) {
    if (at->path().extension() != ".jinja") continue;
    INVAR_CHECK_OK(add_file(at->path().stem().string(), at->path(), templates));
  }
  if (ec) return bad_input(additional.string() + ": cannot be listed: " + ec.message());
  return {};
}

// A text, a list of {"name", "template"} (transformers 4), or an object of texts.
bool add_value(const json& value, Templates& templates) {
  auto add = [&](const json& name, const json& text) {
    return name.is_string() && text.is_string() &&
           templates.emplace(name.get<std::string>(), text.get<std::string>()).second;
  };
  if (value.is_string()) return add("default", value);
  if (!value.is_array() && !value.is_object()) return false;
  for (const auto& [key, one] : value.items()) {
    const bool named = value.is_array() && one.is_object();
    if (value.is_array() && !named) return false;
    if (!(named ? add(one.value("name", json()), one.value("template", json())) : add(key, one)))
      return false;
  }
  return true;
}

}  // namespace

Result<std::string> read_chat_template(const std::string& folder, const json& tokenizer_config) {
  Templates templates;
  INVAR_CHECK_OK(add_files(folder, templates));
  const auto value = tokenizer_config.find("chat_template");
  const bool given = value != tokenizer_config.end() && !value->is_null();
  if (templates.empty() && given && !add_value(*value, templates))
    return bad_input(folder +
                     "/tokenizer_config.json: chat_template is neither a text nor a list of objects with "
                     "\"name\" and \"template\", each name once");
  if (templates.empty()) return std::string();
  if (templates.size() == 1 && templates.contains("default")) return templates["default"];
  std::string all;
  for (const auto& [name, text] : templates)
    all += (all.empty() ? "{" : ",") + invar::json::quote(name) + ":" + invar::json::quote(text);
  return all + "}";
}

}  // namespace invar::generate
