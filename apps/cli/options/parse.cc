// The words of the command line -> a command that runs, or one line that says what is wrong.
#include <algorithm>
#include <filesystem>
#include <map>

#include "base/file/file.h"
#include "console.h"
#include "options/argument_reader.h"
#include "options/command_table.h"
#include "options/configuration.h"
#include "progress/display.h"

namespace invar::cli {
namespace {

std::string list_of(const std::vector<std::string>& words, const std::string& last) {
  std::string list;
  for (size_t i = 0; i < words.size(); ++i)
    list += (i == 0 ? "" : i + 1 == words.size() ? last : ", ") + words[i];
  return list;
}

// An error of usage that names the first example of the command.
Advice needed(const CommandText& c, const std::string& what) {
  const std::string example = c.examples.empty() ? "" : ", as in `" + c.examples.front() + "`";
  return {bad_input(what + " is required" + example), see_help(c)};
}

Advice command_needed(const CommandText& c) {
  if (c.name.empty())
    return {bad_input("a command is needed, such as `invar run`"), "`invar --help` lists them"};
  std::vector<std::string> names;
  for (const CommandText& one : c.commands) names.push_back("`invar " + one.name + "`");
  return {bad_input(c.name + ": a command is needed: " + list_of(names, " or ")), see_help(c)};
}

// The values of one command, or of the program.
class Values {
 public:
  Values(const CommandRow& row, const CommandText& text, const std::vector<Given>& given)
      : row_(row), text_(text), given_(given) {}

  // Into the members of its struct.
  std::optional<Advice> store_all(Commands& commands) const {
    if (row_.options.empty()) return std::nullopt;
    const std::vector<Target> targets = row_.targets(commands);
    for (size_t i = 0; i < given_.size(); ++i)
      if (std::optional<Advice> wrong = store_option(row_.options[i], given_[i], targets[i])) return wrong;
    return std::nullopt;
  }
  // Checks what the options ask of one another.
  std::optional<Advice> related() const {
    for (size_t i = 0; i < given_.size(); ++i) {
      const OptionRow& o = row_.options[i];
      if (o.required && given_[i].times == 0)
        return needed(text_, o.position ? text_.options[i].shown_position() : o.dashed());
    }
    for (size_t i = 0; i < given_.size(); ++i) {
      const OptionRow& o = row_.options[i];
      if (given_[i].times == 0) continue;
      for (const size_t other : indices(o.needs))
        if (given_[other].times == 0) return conflict(o, " requires ", other);
    }
    for (size_t i = 0; i < given_.size(); ++i)
      for (const size_t other : indices(row_.options[i].excludes))
        if (given_[i].times > 0 && given_[other].times > 0) {
          const auto [first, second] = std::minmax(i, other);
          return conflict(row_.options[first], " excludes ", second);
        }
    return std::nullopt;
  }
  std::optional<Advice> one_given() const {
    if (!*row_.one_of) return std::nullopt;
    std::vector<std::string> names;
    for (const size_t i : indices(row_.one_of)) {
      if (given_[i].times > 0) return std::nullopt;
      const OptionRow& o = row_.options[i];
      names.push_back(o.position ? "a " + std::string(o.name) : o.dashed());
    }
    return needed(text_, *row_.one_of_text ? row_.one_of_text : list_of(names, " or "));
  }

 private:
  std::optional<Advice> store_option(const OptionRow& o, const Given& given, const Target& target) const {
    const auto wrong = [&](const Wrong& why) {
      const std::string name =
          o.position ? text_.options[&o - row_.options.data()].shown_position() : o.dashed();
      return Advice{bad_input(name + ": " + why.message), why.hint.value_or(see_help(text_))};
    };
    if (o.is_flag()) {
      if (given.times > 0) store(o, "", target);
      return std::nullopt;
    }
    if (given.times > 1 && !o.repeats)
      return Advice{bad_input(o.dashed() + ": given more than once"), see_help(text_)};
    for (const std::string& value : given.values)
      for (const std::string& part : o.comma ? parts_of(value) : std::vector<std::string>{value})
        if (const std::optional<Wrong> why = store(o, part, target)) return wrong(*why);
    return std::nullopt;
  }
  // The parts of a list with commas; one without parts is a part that is wrong.
  static std::vector<std::string> parts_of(const std::string& list) {
    std::vector<std::string> parts;
    for (size_t at = 0, end; at < list.size(); at = end + 1) {
      end = std::min(list.find(',', at), list.size());
      if (end > at) parts.push_back(list.substr(at, end - at));
    }
    return parts.empty() ? std::vector<std::string>{list} : parts;
  }
  std::vector<size_t> indices(std::string_view names) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < row_.options.size(); ++i)
      if ((" " + std::string(names) + " ").find(" " + std::string(row_.options[i].name) + " ") !=
          std::string::npos)
        found.push_back(i);
    return found;
  }
  Advice conflict(const OptionRow& o, const char* how, size_t other) const {
    return {bad_input(o.dashed() + how + row_.options[other].dashed()), see_help(text_)};
  }

  const CommandRow& row_;
  const CommandText& text_;
  const std::vector<Given>& given_;
};

const CommandRow& row_of(const CommandText& c) {
  return *std::ranges::find(command_rows(), c.name, [](const CommandRow& row) { return row.name; });
}

// How the program shows its work, and its errors from here on.
void show_as(const ProgramOptions& o, bool json) {
  static const std::map<std::string, ProgressForm> kForms = {{"bar", ProgressForm::bar},
                                                             {"lines", ProgressForm::lines},
                                                             {"json", ProgressForm::json},
                                                             {"none", ProgressForm::none}};
  Display& d = display();
  d.json = json, d.quiet = o.quiet, d.verbose = o.verbose;
  if (const auto form = kForms.find(o.progress); form != kForms.end()) d.progress = form->second;
  if (o.color == "always") d.color = ColorUse::always;
  if (o.color == "never") d.color = ColorUse::never;
}

int help_width() {
  return stdout_is_terminal() ? std::clamp(terminal_width(), 40, 100) : 80;
}

// Every page of man into a folder.
Status write_man_pages(const CommandText& program, const std::string& folder) {
  std::error_code ec;
  std::filesystem::create_directories(folder, ec);
  std::vector<const CommandText*> all{&program};
  for (const CommandText& c : program.commands) {
    all.push_back(&c);
    for (const CommandText& deeper : c.commands) all.push_back(&deeper);
  }
  for (const CommandText* c : all) {
    std::string name = c->name.empty() ? "invar" : "invar-" + c->name;
    std::ranges::replace(name, ' ', '-');
    INVAR_CHECK_OK(write_file(folder + "/" + name + ".1", man_page(*c, program, INVAR_VERSION)));
  }
  return {};
}

Status write_help(const HelpCommand& h) {
  const CommandText& program = program_text();
  if (!h.man_pages.empty()) return write_man_pages(program, h.man_pages);
  const CommandText* c = &program;
  for (const std::string& word : h.command) {
    c = find_command(*c, word);
    if (c) continue;
    std::vector<std::string> names;
    for (const CommandText& one : program.commands) names.push_back(one.name);
    const std::string hint = did_you_mean(nearest(word, names), "invar help ");
    return bad_input("help " + word +
                     ": no command of `invar`: " + (hint.empty() ? "see `invar --help`" : hint));
  }
  return write_stdout(h.man ? man_page(*c, program, INVAR_VERSION) : help_text(*c, program, help_width()));
}

}  // namespace

int show_help(const HelpCommand& h) {
  return exit_code(write_help(h));
}

int show_completion(const HelpCommand& h) {
  return exit_code(write_stdout(completion_script(program_text(), h.shell)));
}

int parse_and_run(int argc, char** argv, bool environment_was_good) {
  const std::vector<std::string> given(argv + std::min(argc, 1), argv + argc);
  const CommandText& program = program_text();
  Words words = read_arguments(program, given);
  const CommandText& command = *words.command;
  const CommandRow& row = row_of(command);
  Commands c;
  c.doctor.options.environment_was_good = environment_was_good;
  const Values of_program(command_rows()[0], program, words.program), own(row, command, words.own);
  std::optional<Advice> wrong = of_program.store_all(c);
  show_as(c.program, words.json);
  show_truncation();
  if (words.wrong) return fail(words.wrong->error, words.wrong->hint);
  if (c.program.version) return exit_code(write_stdout("invar " INVAR_VERSION "\n"));
  if (!wrong && !c.program.help) wrong = add_configuration(row, command, words.own);
  if (!wrong) wrong = own.store_all(c);
  if (!wrong && c.program.help) return exit_code(write_stdout(help_text(command, program, help_width())));
  if (!wrong) wrong = of_program.related();
  if (!wrong && !row.run) wrong = command_needed(command);
  if (!wrong) wrong = own.related();
  if (!wrong && !words.extra.empty())
    wrong = Advice{bad_input("'" + list_of(words.extra, " ") + "': `invar " + command.name +
                             "` takes no more words without an option"),
                   see_help(command)};
  if (!wrong) wrong = own.one_given();
  if (wrong) return fail(wrong->error, wrong->hint);
  return row.run(c);
}

}  // namespace invar::cli
