// The words of the command line -> a command that runs, or one line that says what is wrong.
#include <algorithm>
#include <filesystem>

#include "base/file/file.h"
#include "console.h"
#include "options/shared.h"
#include "options/values.h"
#include "progress/display.h"

namespace invar::cli {
namespace {

// An empty value, as of a variable of the shell that is not set, is no value. Texts may be empty,
// and the path of a receipt has a message of its own.
void refuse_empty_values(CLI::App& app) {
  static constexpr const char* kTexts[] = {"prompt-text", "text",         "query", "document",
                                           "system",      "receipt-path", "user"};
  const CLI::Validator given(
      [](const std::string& value) -> std::string {
        return value.empty() ? "empty: give a value, or leave the option out" : "";
      },
      "");
  for (CLI::Option* option : app.get_options()) {
    const std::vector<std::string>& names = option->get_lnames();
    const bool is_text = !names.empty() && std::ranges::count(kTexts, names.front()) > 0;
    if (!names.empty() && !is_text && option->get_items_expected_max() > 0) option->check(given);
  }
  for (CLI::App* command : app.get_subcommands({})) refuse_empty_values(*command);
}

std::string list_of(const std::vector<std::string>& words, const std::string& last) {
  std::string list;
  for (size_t i = 0; i < words.size(); ++i)
    list += (i == 0 ? "" : i + 1 == words.size() ? last : ", ") + words[i];
  return list;
}

// Words of CLI11 -> how help names an option without dashes.
std::string shown_name(const CommandText& c, const std::string& name) {
  for (const OptionText& o : c.options)
    if (o.position == name) return o.shown_position();
  return name;
}

// The lines of CLI11 as those of the program: without the names of its exceptions.
Advice advice_of(const CLI::ParseError& e, const CommandText& c) {
  const std::string see = "see `invar " + (c.name.empty() ? "" : c.name + " ") + "--help`";
  if (c.name.empty() && e.get_name() == "RequiredError")
    return {bad_input("a command is needed, such as `invar run`"), "`invar --help` lists them"};
  if (!c.commands.empty() && e.get_name() == "RequiredError") {
    std::vector<std::string> names;
    for (const CommandText& one : c.commands) names.push_back("`invar " + one.name + "`");
    return {bad_input(c.name + ": a command is needed: " + list_of(names, " or ")), see};
  }
  const std::string text = e.what(), name = text.substr(0, text.find(": "));
  if (dynamic_cast<const CLI::ExtrasError*>(&e)) {
    const std::string extra = text.substr(std::min(text.size(), name.size() + 2));
    return {bad_input("'" + extra + "': `invar" + (c.name.empty() ? "" : " ") + c.name +
                      "` takes no more words without an option"),
            see};
  }
  if (const size_t required = text.find(" is required"); required != text.npos) {
    const CommandWords* const words = words_for_command(c.name);
    const std::string example =
        words && !words->examples.empty() ? ", as in `" + std::string(words->examples.front()) + "`" : "";
    return {bad_input(shown_name(c, text.substr(0, required)) + text.substr(required) + example), see};
  }
  if (text.find(": At Most 1 required") == name.size())
    return {bad_input(name + ": given more than once"), see};
  return {bad_input(text), see};
}

int help_width() {
  return stdout_is_terminal() ? std::clamp(terminal_width(), 40, 100) : 80;
}

struct HelpCommand {
  std::vector<std::string> command;
  bool man = false;
  std::string man_pages, shell;
};

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

Status show_help(const CLI::App& app, const HelpCommand& h) {
  const CommandText program = describe(app);
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

Status show_completion(const CLI::App& app, const std::string& shell) {
  const std::string script = completion_script(describe(app), shell);
  if (script.empty()) return bad_input("completion " + shell + ": bash, zsh and fish have one");
  return write_stdout(script);
}

}  // namespace

void add_help(CLI::App& app, int& result) {
  static HelpCommand h;
  auto* help = app.add_subcommand("help", "the options of a command, as --help; or a page for man");
  help->add_option("command", h.command, "the command");
  auto* man = help->add_flag("--man", h.man, "a page for man, as in `invar help run --man | man -l -`");
  help->add_option("--man-pages", h.man_pages, "write the pages of all commands into this folder")
      ->excludes(man);
  help->callback([&app, &result] { result = exit_code(show_help(app, h)); });
  auto* completion = app.add_subcommand("completion", "a script that completes commands in a shell");
  completion->add_option("shell", h.shell, "bash, zsh or fish")->required();
  completion->callback([&app, &result] { result = exit_code(show_completion(app, h.shell)); });
}

int parse_and_run(int argc, char** argv, bool environment_was_good) {
  CLI::App app{"Invar: AI inference that does not change with the machine"};
  app.name("invar");
  app.require_subcommand(1);
  app.set_version_flag("-V,--version", "invar " INVAR_VERSION, "print the version");
  app.set_help_flag("-h,--help", "print this help");
  app.fallthrough();  // commands inherit these three
  app.formatter_fn([&app](const CLI::App* one, const std::string&, CLI::AppFormatMode) {
    const CLI::App* const above = one->get_parent();
    const bool nested = above && above->get_parent();
    return help_text(describe(*one, nested ? above->get_name() : ""), describe(app), help_width());
  });
  add_global(app);
  int result = 0;
  Commands c;
  c.doctor.options.environment_was_good = environment_was_good;
  add_commands(app, c, result);
  add_tui(app, result);
  add_help(app, result);
  refuse_empty_values(app);
  const std::vector<std::string> given(argv + std::min(argc, 1), argv + argc);
  Words words = read_words(describe(app), given);
  preset_display(words);
  show_truncation();
  if (words.wrong) return fail(words.wrong->error, words.wrong->hint);
  // CLI11 asks a command for its required options before it sees this flag of the program.
  if (words.version) return exit_code(write_stdout("invar " INVAR_VERSION "\n"));
  std::ranges::reverse(words.words);  // as CLI11 takes them
  try {
    app.parse(std::move(words.words));
  } catch (const Launched& l) {
    return l.code;
  } catch (const Refused& r) {
    return fail(r.advice.error, r.advice.hint);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    const CommandText program = describe(app);
    const Advice advice = advice_of(e, *command_named(program, words.command));
    return fail(advice.error, advice.hint);
  }
  return result;
}

}  // namespace invar::cli
