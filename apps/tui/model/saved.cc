#include "model/saved.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file/file.h"
#include "base/text/json.h"

namespace invar::tui {
namespace {

namespace fs = std::filesystem;
using json::Value;

// New files are the user's alone while this lives.
class Private {
 public:
  Private() : before_(::umask(077)) {}
  Private(const Private&) = delete;
  ~Private() { ::umask(before_); }

 private:
  mode_t before_;
};

}  // namespace

std::string saved_form_path() {
  const char* const config = std::getenv("XDG_CONFIG_HOME");
  if (config && config[0] == '/') return (fs::path(config) / "invar/tui.json").string();
  const char* const home = std::getenv("HOME");
  if (home && home[0] == '/') return (fs::path(home) / ".config/invar/tui.json").string();
  return "";
}

std::string form_text(const Form& form) {
  Value object = Value::object;
  const Form initial;
  for (const FieldInfo& row : fields())
    if (form[row.field] != initial[row.field]) object[row.key] = form[row.field];
  return json::dump(object, {.indent = 2}) + "\n";
}

Form parse_form(const std::string& text) {
  Form form;
  const Value object = json::read_or_null(text);
  for (const FieldInfo& row : fields()) {
    const Value& saved = object.get(row.key);
    if (!saved.is_string()) continue;
    const std::string& value = saved.text;
    const bool known = row.kind != Kind::choice ||
                       std::find(row.choices.begin(), row.choices.end(), value) != row.choices.end();
    if (known) form[row.field] = value;
  }
  return form;
}

Form load_form(const std::string& path) {
  constexpr FileKind kSaved{"a saved form", 16 << 20};
  if (path.empty()) return {};
  const auto text = read_file(path, kSaved);
  return text ? parse_form(*text) : Form();
}

Status save_form(const std::string& path, const Form& form) {
  if (path.empty()) return {};
  const Private mask;
  std::error_code ec;
  fs::create_directories(fs::path(path).parent_path(), ec);
  if (ec) return bad_input(path + ": no folder for it: " + ec.message());
  return write_file(path, form_text(form));
}

}  // namespace invar::tui
