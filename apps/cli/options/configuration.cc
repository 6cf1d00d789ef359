#include "options/configuration.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/file/file.h"
#include "base/text/display.h"
#include "base/text/json.h"

namespace invar::cli {
namespace {

std::string upper_case(std::string_view name) {
  std::string out;
  for (const char c : name)
    out += c == '-' || c == ' ' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

bool of_environment(const OptionRow& row) {
  const std::string_view group = row.group;
  return !row.position && (group == "Server" || group == "Receipt");
}

// What is wrong with a value as such; its type is looked at with those of the command line.
std::optional<Error> wrong_value(const OptionRow& row, const std::string& value, const std::string& which) {
  if (value.empty() && !row.may_be_empty) return bad_input(which + ": a value is needed");
  const std::string choices = "|" + std::string(row.choices) + "|";
  if (choices == "||" || choices.find("|...|") != choices.npos ||
      choices.find("|" + value + "|") != choices.npos)
    return std::nullopt;
  std::string list = row.choices;
  for (size_t at = 0; (at = list.find('|', at)) != list.npos; at += 2) list.replace(at, 1, ", ");
  return bad_input(which + ": " + excerpt(value) + " is not one of " + list);
}

// Gives the option these values, where it has none. Of a flag the values say whether.
void give(const OptionRow& row, const std::vector<std::string>& values, Given& given) {
  if (row.is_flag() && values.front() != "true") return;
  given.times = row.is_flag() ? 1 : static_cast<int>(values.size());
  if (!row.is_flag()) given.values = values;
}

std::optional<Error> of_variables(const CommandRow& command, std::vector<Given>& given) {
  const std::string prefix = "INVAR_" + upper_case(command.name) + "_";
  for (char** at = environ; at && *at; ++at) {
    const std::string_view entry = *at;
    if (!entry.starts_with(prefix)) continue;
    const std::string name(entry.substr(0, entry.find('=')));
    const std::string value(entry.substr(std::min(name.size() + 1, entry.size())));
    const auto row = std::ranges::find_if(
        command.options, [&](const OptionRow& o) { return prefix + upper_case(o.name) == name; });
    if (row == command.options.end())
      return bad_input(name + ": `invar " + command.name + "` has no such option; unset the variable");
    if (!of_environment(*row))
      return bad_input(name + ": an environment variable decides no result: use " + row->dashed() +
                       " or the file of --config");
    std::vector<std::string> values{value};
    if (row->is_flag()) {
      if (value != "true" && value != "false" && value != "1" && value != "0")
        return bad_input(name + ": true or false is needed, not " + json::quote(json::brief(value)));
      values[0] = value == "1" || value == "true" ? "true" : "false";
    } else if (row->repeats) {
      values.clear();
      for (size_t begin = 0, end; begin <= value.size(); begin = end + 1) {
        end = std::min(value.find(',', begin), value.size());
        values.push_back(value.substr(begin, end - begin));
      }
    }
    for (const std::string& one : values)
      if (auto wrong = wrong_value(*row, one, name)) return wrong;
    Given& of_row = given[static_cast<size_t>(row - command.options.begin())];
    if (of_row.times == 0) give(*row, values, of_row);
  }
  return std::nullopt;
}

// The text of a value as the command line has it; nothing: it is of another type.
std::optional<std::string> text_of(const OptionRow& row, const json::Value& value) {
  if (row.is_flag()) return value.is_boolean() ? std::optional(value.text) : std::nullopt;
  if (value.is_number() && row.kind != ValueKind::text) return value.text;
  if (value.is_string()) return value.text;
  return std::nullopt;
}

std::optional<Error> of_file(const std::string& file, const CommandRow& command, std::vector<Given>& given) {
  const auto text = read_file(file);
  if (!text) return text.error();
  const auto read = json::parse(*text, file);
  if (!read) return read.error();
  if (!read->is_object()) return bad_input(file + ": an object of options is needed");
  if (const std::string* const twice = json::repeated_name(*read))
    return bad_input(file + ": " + excerpt(*twice) + ": it is there twice");
  for (const auto& [name, value] : read->members) {
    const auto row =
        std::ranges::find_if(command.options, [&](const OptionRow& o) { return o.name == name; });
    const std::string which = file + ": " + excerpt(name);
    if (row == command.options.end() || name == "config")
      return bad_input(which + ": `invar " + command.name + " --help` lists the options, and this is none");
    const std::vector<json::Value> one{value};
    std::vector<std::string> values;
    for (const json::Value& item : value.is_array() && row->repeats ? value.items : one) {
      const auto spelled = text_of(*row, item);
      if (!spelled)
        return bad_input(which + ": " +
                         (row->is_flag() ? "true or false"
                          : row->repeats ? "texts"
                                         : "a value") +
                         ", not " + std::string(json::name_of(item.kind)));
      if (auto wrong = wrong_value(*row, *spelled, which)) return wrong;
      values.push_back(*spelled);
    }
    Given& of_row = given[static_cast<size_t>(row - command.options.begin())];
    if (of_row.times == 0 && !values.empty()) give(*row, values, of_row);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Advice> add_configuration(const CommandRow& command, const CommandText& text,
                                        std::vector<Given>& given) {
  const auto config = std::ranges::find_if(
      command.options, [](const OptionRow& o) { return std::string_view(o.name) == "config"; });
  if (config == command.options.end()) return std::nullopt;
  if (auto wrong = of_variables(command, given)) return Advice{*std::move(wrong), see_help(text)};
  const Given& named = given[static_cast<size_t>(config - command.options.begin())];
  if (named.values.empty()) return std::nullopt;
  if (auto wrong = of_file(named.values.back(), command, given))
    return Advice{*std::move(wrong), see_help(text)};
  return std::nullopt;
}

}  // namespace invar::cli
