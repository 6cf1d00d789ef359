// The definitions of CLI11 -> the material of help/.
#include <algorithm>

#include "help/command_text.h"
#include "options/shared.h"

namespace invar::cli {
namespace {

OptionText text_of(const CLI::Option& o, const std::string& command) {
  OptionText t;
  t.shorts = o.get_snames(), t.longs = o.get_lnames();
  if (t.longs.empty() && t.shorts.empty()) t.position = o.get_name();
  const std::string name = t.longs.empty() ? t.position : t.longs.front();
  const OptionWords* const words = words_for(name, command);
  t.group = words ? words->group : "Options";
  if (o.get_items_expected_max() > 0) t.type = words && *words->type ? words->type : "VALUE";
  t.text = o.get_description();
  t.required = o.get_required();
  t.repeats = o.get_expected_max() > 1;
  if (t.text.find("(default") == std::string::npos) t.standard = o.get_default_str();
  if (!words) return t;
  t.closed = *words->choices != '\0';
  for (std::string_view rest = words->choices; !rest.empty();) {
    const size_t bar = std::min(rest.find('|'), rest.size());
    if (rest.substr(0, bar) == "...")
      t.closed = false;
    else
      t.choices.emplace_back(rest.substr(0, bar));
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  return t;
}

}  // namespace

CommandText describe(const CLI::App& app, const std::string& above) {
  CommandText c;
  const bool program = app.get_parent() == nullptr;
  c.name = program ? "" : above.empty() ? app.get_name() : above + " " + app.get_name();
  c.aliases = app.get_aliases();
  c.text = app.get_description();
  for (const CLI::Option* o : app.get_options())
    if (!o->get_group().empty() && (program || o != app.get_help_ptr()))
      c.options.push_back(text_of(*o, c.name));
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!one->get_group().empty()) c.commands.push_back(describe(*one, c.name));
  return c;
}

}  // namespace invar::cli
