// invar digest: a model -> the digests that a receipt of it binds, under the receipt's own names.
#include "base/text/display.h"
#include "commands.h"
#include "console.h"
#include "generate/cache/task_cache.h"
#include "generate/verify/verify.h"
#include "receipts/bound_fields.h"

namespace invar::cli {
namespace {

Status do_digest(const DigestCommand& c) {
  Console console(c.json);
  INVAR_TRY(const receipt::Receipt described, generate::describe_model(c.model, console));
  const json::Value fields = bound_fields(described);
  if (c.json) return write_stdout(line_of(fields));
  std::string lines;
  for (const auto& [section, object] : fields.members)
    for (const auto& [key, value] : object.members) {
      std::string name = section + "." + key;
      name.resize(std::max<size_t>(name.size(), 22), ' ');
      lines += name + " " + (value.is_string() ? printable(value.text) : json::dump(value)) + "\n";
    }
  return write_stdout(lines);
}

}  // namespace

int digest(const DigestCommand& c) {
  return exit_code(do_digest(c));
}

}  // namespace invar::cli
