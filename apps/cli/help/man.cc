// Pages of man (roff), section 1.
#include <algorithm>

#include "help/command_text.h"

namespace invar::cli {
namespace {

// Text that roff prints as it stands.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '\'')
      out += "\\(aq";
    else if (c == '`')
      out += "\\(ga";
    else
      out += c;
  }
  if (out.starts_with('.') || out.starts_with("\\(aq")) out.insert(0, "\\&");
  return out;
}

std::string tag(const OptionText& o) {
  if (!o.position.empty()) return "\\fI" + roff(o.shown_position()) + "\\fR";
  std::string names;
  for (const std::string& s : o.shorts) names += (names.empty() ? "\\fB\\-" : ", \\fB\\-") + roff(s) + "\\fR";
  for (const std::string& l : o.longs)
    names += (names.empty() ? "\\fB\\-\\-" : ", \\fB\\-\\-") + roff(l) + "\\fR";
  return names + (o.is_flag() ? "" : " \\fI" + roff(o.type) + "\\fR");
}

std::string body(const OptionText& o) {
  std::string text = o.text;
  if (o.required) text += " (required)";
  if (o.closed && !says_all(o.choices, text)) {
    std::string list;
    for (const std::string& c : o.choices) list += (list.empty() ? "" : ", ") + c;
    text += ": " + list;
  }
  if (!o.standard.empty()) text += " (default: " + o.standard + ")";
  return roff(text);
}

void add_options(std::string& page, const CommandText& c) {
  for (const char* group : option_groups()) {
    bool any = false;
    for (const OptionText& o : c.options) {
      if (o.group != group) continue;
      if (!any) page += ".SS " + roff(group) + "\n", any = true;
      page += ".TP\n" + tag(o) + "\n" + body(o) + "\n";
    }
  }
}

}  // namespace

std::string man_page(const CommandText& c, const CommandText& program, std::string_view version) {
  std::string title = c.name.empty() ? "invar" : "invar-" + c.name;
  std::ranges::replace(title, ' ', '-');
  std::string upper = title;
  std::ranges::transform(upper, upper.begin(), [](char x) { return x >= 'a' && x <= 'z' ? x - 32 : x; });
  std::string page = ".TH " + roff(upper) + " 1 \"\" \"Invar " + roff(version) + "\" \"Invar\"\n.SH NAME\n" +
                     roff(title) + " \\- " + roff(c.text.substr(0, c.text.find('\n'))) +
                     "\n.SH SYNOPSIS\n\\fB" + roff("invar" + (c.name.empty() ? "" : " " + c.name)) + "\\fR";
  if (!c.commands.empty() && (c.name.empty() || c.options.empty())) page += " \\fICOMMAND\\fR";
  for (const OptionText& o : c.options)
    if (o.required && o.position.empty()) page += " " + tag(o);
  for (const OptionText& o : c.options)
    if (!o.position.empty())
      page += (o.required ? " " : " [") + tag(o) + (o.repeats ? "..." : "") + (o.required ? "" : "]");
  page += " [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n" + roff(c.text) + "\n";
  if (!c.commands.empty()) page += ".SH COMMANDS\n";
  for (const CommandText& one : c.commands) {
    std::string other = "invar-" + one.name;
    std::ranges::replace(other, ' ', '-');
    page +=
        ".TP\n\\fB" + roff(one.name) + "\\fR\n" + roff(one.text) + ". See \\fB" + roff(other) + "\\fR(1).\n";
  }
  page += ".SH OPTIONS\n";
  add_options(page, c);
  if (!c.name.empty()) {
    page += ".SS Every command\n";
    for (const OptionText& o : program.options) page += ".TP\n" + tag(o) + "\n" + body(o) + "\n";
  }
  if (!c.examples.empty()) {
    page += ".SH EXAMPLES\n.nf\n";
    for (const std::string& example : c.examples) page += roff(example) + "\n";
    page += ".fi\n";
  }
  page += ".SH EXIT STATUS\n";
  for (const ExitCode& code : exit_codes())
    page += ".TP\n\\fB" + std::to_string(code.code) + "\\fR\n" + roff(code.text) + "\n";
  return page + ".SH SEE ALSO\n" + (c.name.empty() ? "\\fBinvar\\-run\\fR(1)" : "\\fBinvar\\fR(1)") +
         ", the guide and the reference in the folder docs of Invar\n";
}

}  // namespace invar::cli
