// --help: the options in groups, wrapped at words.
#include <algorithm>
#include <sstream>
#include <utility>

#include "help/command_text.h"

namespace invar::cli {
namespace {

constexpr int kColumn = 26;  // where texts begin

std::string dashed(const OptionText& o) {
  if (!o.position.empty()) return o.shown_position();
  std::string names;
  for (const std::string& s : o.shorts) names += (names.empty() ? "-" : ", -") + s;
  for (const std::string& l : o.longs) names += (names.empty() ? "--" : ", --") + l;
  return names;
}

std::string sentence(const OptionText& o) {
  std::string text = o.text;
  if (o.required) text += " (required)";
  if (!o.choices.empty() && o.closed) {
    std::string list;
    for (const std::string& c : o.choices) list += (list.empty() ? "" : ", ") + c;
    if (!says_all(o.choices, text)) text += ": " + list;
  }
  if (!o.standard.empty()) text += " (default: " + o.standard + ")";
  return text;
}

void add_row(std::string& out, const std::string& left, const std::string& text, int width) {
  const int column = std::min(kColumn, width / 2);
  std::string line = "  " + left;
  for (const std::string& part : wrapped(text, std::max(20, width - column))) {
    if (columns(line) > column - 2 && !line.empty()) out += line + "\n", line.clear();
    line += std::string(static_cast<size_t>(std::max(0, column - columns(line))), ' ') + part;
    out += line + "\n";
    line.clear();
  }
  if (!line.empty()) out += line + "\n";
}

void add_wrapped(std::string& out, const std::string& text, int width) {
  for (const std::string& line : wrapped(text, width)) out += line + "\n";
}

std::string usage(const CommandText& c) {
  std::string line = "invar" + (c.name.empty() ? "" : " " + c.name);
  if (!c.commands.empty() && (c.name.empty() || c.options.empty())) return line + " COMMAND [OPTIONS]";
  for (const OptionText& o : c.options)
    if (o.required && o.position.empty()) line += " --" + o.longs.front() + " " + o.type;
  for (const OptionText& o : c.options)
    if (!o.position.empty()) {
      const std::string name = dashed(o) + (o.repeats ? "..." : "");
      line += o.required ? " " + name : " [" + name + "]";
    }
  return line + " [OPTIONS]";
}

void add_options(std::string& out, const std::vector<OptionText>& options, const std::string& group,
                 int width) {
  bool any = false;
  for (const OptionText& o : options) {
    if (o.group != group) continue;
    if (!any) out += "\n" + group + "\n", any = true;
    add_row(out, dashed(o) + (o.is_flag() || !o.position.empty() ? "" : " " + o.type), sentence(o), width);
  }
}

void add_commands(std::string& out, const CommandText& c, int width) {
  for (const char* group : command_groups()) {
    bool any = false;
    for (const CommandText& one : c.commands) {
      if (one.group != group) continue;
      if (!any) out += "\n" + one.group + "\n", any = true;
      add_row(out, one.name.substr(one.name.rfind(' ') + 1), one.text, width);
    }
  }
}

}  // namespace

int columns(std::string_view text) {
  return static_cast<int>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::vector<std::string> wrapped(std::string_view text, int width) {
  std::vector<std::string> lines;
  std::istringstream words{std::string(text)};
  std::string line;
  for (std::string word; words >> word;) {
    if (!line.empty() && columns(line) + 1 + columns(word) > width) lines.push_back(std::exchange(line, ""));
    line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty() || lines.empty()) lines.push_back(line);
  return lines;
}

std::string help_text(const CommandText& c, const CommandText& program, int width) {
  std::string out;
  add_wrapped(out, "Usage: " + usage(c), width);
  out += "\n";
  add_wrapped(out, c.text, width);
  add_commands(out, c, width);
  for (const char* group : option_groups())
    if (c.name.empty() || std::string_view(group) != option_groups().back())
      add_options(out, c.options, group, width);
  if (!c.name.empty()) add_options(out, program.options, option_groups().back(), width);
  if (!c.examples.empty()) out += "\nExamples\n";
  for (const std::string& example : c.examples) out += "  " + example + "\n";
  out += "\nExit codes\n";
  for (const ExitCode& code : exit_codes()) add_row(out, std::to_string(code.code), code.text, width);
  if (c.name.empty())
    out += "\n", add_wrapped(out, "`invar help COMMAND` shows the options of a command.", width);
  return out;
}

}  // namespace invar::cli
