#include "options/command_table.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "options/preflight.h"
#include "options/values.h"

namespace invar::cli {
namespace {

template <class Command>
int start(Command& c, std::string_view name, int (*run)(const Command&)) {
  if (const std::optional<int> code = preflight(c, name)) return *code;
  return run(c);
}

#include "options/table.inc"

std::vector<std::string> split(std::string_view list, char separator) {
  std::vector<std::string> parts;
  for (size_t end; !list.empty(); list.remove_prefix(std::min(end + 1, list.size()))) {
    end = std::min(list.find(separator), list.size());
    parts.emplace_back(list.substr(0, end));
  }
  return parts;
}

OptionText text_of(const OptionRow& row) {
  OptionText t;
  if (*row.short_name) t.shorts = {row.short_name};
  (row.position ? t.position : t.longs.emplace_back()) = row.name;
  t.type = row.value, t.group = row.group, t.text = row.help, t.standard = row.standard;
  t.required = row.required, t.repeats = row.repeats, t.many = row.many;
  t.choices = split(row.choices, '|');
  t.closed = !t.choices.empty() && std::erase(t.choices, "...") == 0;
  return t;
}

CommandText text_of(const CommandRow& row) {
  CommandText c;
  c.name = row.name, c.text = row.about, c.group = row.group;
  c.aliases = split(row.aliases, ' '), c.examples = split(row.examples, '\n');
  for (const OptionRow& o : row.options) c.options.push_back(text_of(o));
  return c;
}

}  // namespace

std::span<const CommandRow> command_rows() {
  return kCommandRows;
}

const CommandText& program_text() {
  static const CommandText program = [] {
    CommandText all = text_of(kCommandRows[0]);
    for (const CommandRow& row : command_rows().subspan(1)) {
      const std::string name = row.name;
      const size_t space = name.find(' ');
      auto& above =
          space == name.npos
              ? all.commands
              : std::ranges::find(all.commands, name.substr(0, space), &CommandText::name)->commands;
      above.push_back(text_of(row));
    }
    return all;
  }();
  return program;
}

const std::vector<const char*>& option_groups() {
  static const std::vector<const char*> groups(std::begin(kOptionGroups), std::end(kOptionGroups));
  return groups;
}

const std::vector<const char*>& command_groups() {
  static const std::vector<const char*> groups(std::begin(kCommandGroups), std::end(kCommandGroups));
  return groups;
}

}  // namespace invar::cli
