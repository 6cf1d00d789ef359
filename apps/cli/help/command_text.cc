// Exit codes, and how to find an option or a command.
#include <algorithm>
#include <string>

#include "help/command_text.h"

namespace invar::cli {
const std::vector<ExitCode>& exit_codes() {
  static const std::vector<ExitCode> codes = {{0, "done, or verified"},
                                              {1, "a verification ran and did not hold"},
                                              {2, "bad usage or bad input"},
                                              {3, "outside the guarantee: refused by name"},
                                              {70, "a defect of Invar: please report it"}};
  return codes;
}

bool says_all(const std::vector<std::string>& names, std::string_view text) {
  return std::ranges::all_of(names, [&](const std::string& name) { return text.find(name) != text.npos; });
}

bool OptionText::named(std::string_view name) const {
  return std::ranges::count(longs, name) > 0 || std::ranges::count(shorts, name) > 0;
}

std::string OptionText::shown_position() const {
  std::string name = position;
  std::ranges::transform(name, name.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 32 : c; });
  return name;
}

const OptionText* find_option(const CommandText& command, std::string_view name) {
  for (const OptionText& o : command.options)
    if (o.named(name)) return &o;
  return nullptr;
}

const CommandText* find_command(const CommandText& command, std::string_view name) {
  for (const CommandText& c : command.commands)
    if (c.name == name || c.name.ends_with(" " + std::string(name)) ||
        std::ranges::count(c.aliases, name) > 0)
      return &c;
  return nullptr;
}

const CommandText* command_named(const CommandText& program, std::string_view name) {
  for (const CommandText& c : program.commands) {
    if (c.name == name) return &c;
    for (const CommandText& deeper : c.commands)
      if (deeper.name == name) return &deeper;
  }
  return &program;
}

}  // namespace invar::cli
