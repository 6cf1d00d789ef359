// The options of every command: what standard error shows.
#include "options/shared.h"
#include "progress/display.h"

namespace invar::cli {
namespace {

const std::map<std::string, ProgressForm> kProgress = {{"auto", ProgressForm::automatic},
                                                       {"bar", ProgressForm::bar},
                                                       {"lines", ProgressForm::lines},
                                                       {"json", ProgressForm::json},
                                                       {"none", ProgressForm::none}};
const std::map<std::string, ColorUse> kColors = {
    {"auto", ColorUse::automatic}, {"always", ColorUse::always}, {"never", ColorUse::never}};

// A choice by its name; `help` says what the names mean.
template <class T>
CLI::Option* add_choice(CLI::App& app, const std::string& name, T& value,
                        const std::map<std::string, T>& choices, const std::string& help) {
  std::string names;
  for (const auto& [choice, of] : choices) names += (names.empty() ? "" : "|") + choice;
  return app
      .add_option_function<std::string>(
          name,
          [&value, &choices, name, names](const std::string& text) {
            const auto found = choices.find(text);
            if (found == choices.end()) throw CLI::ValidationError(name, text + " is not one of " + names);
            value = found->second;
          },
          help)
      ->type_name(names);
}

}  // namespace

void add_global(CLI::App& app) {
  Display& d = display();
  auto* form = add_choice(app, "--progress", d.progress, kProgress,
                          "what standard error shows of the work; auto: bars on a terminal and lines in a "
                          "pipe; json: events alone");
  app.add_flag("-q,--quiet", d.quiet, "errors alone on standard error")->excludes(form);
  app.add_flag("-v,--verbose", d.verbose, "also short phases; whole digests and paths");
  add_choice(app, "--color", d.color, kColors,
             "colours of verdicts and errors; auto: on a terminal, unless NO_COLOR is set");
}

// Errors of the parse itself have the form that the words ask for.
void preset_display(const Words& words) {
  Display& d = display();
  d.json = words.json;
  const auto& all = words.words;
  for (size_t i = 0; i < all.size() && all[i] != "--"; ++i)
    for (const std::string name : {"--progress", "--color"}) {
      const std::string value = all[i] == name && i + 1 < all.size() ? all[i + 1]
                                : all[i].starts_with(name + "=")     ? all[i].substr(name.size() + 1)
                                                                     : "";
      if (value == "json") d.progress = ProgressForm::json;
      if (const auto color = kColors.find(value); color != kColors.end() && name == "--color")
        d.color = color->second;
    }
}

}  // namespace invar::cli
