// The texts of commands and options: the material of help, man pages, completion and suggestions.
// It is read out of the table of options/, so that none of them can differ.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace invar::cli {

struct OptionText {
  std::vector<std::string> shorts, longs;  // without dashes; longs[0] is the name
  std::string position;                    // the name of an option without dashes, "" of the others
  std::string type;                        // of its value, such as FILE; "" of a flag
  std::string group;                       // such as Sampling
  std::string text;
  std::string standard;              // the default, "" where there is none or the text says it
  std::vector<std::string> choices;  // the values that there are, or some of them
  bool closed = false;               // whether there are no others
  bool required = false, repeats = false;
  bool many = false;  // it takes several words

  // The name of an option without dashes in usage and errors: FILE.
  std::string shown_position() const;
  bool is_flag() const { return type.empty() && position.empty(); }
  bool named(std::string_view name) const;  // long or short, without dashes
};

struct CommandText {
  std::string name;  // "run", "cache list"; "" of the program
  std::vector<std::string> aliases;
  std::string text, group;
  std::vector<std::string> examples;
  std::vector<OptionText> options;
  std::vector<CommandText> commands;
};

// Null: there is none.
const OptionText* find_option(const CommandText&, std::string_view name);
const CommandText* find_command(const CommandText&, std::string_view name);
// The command of this whole name, such as "cache list"; the program of another.
const CommandText* command_named(const CommandText& program, std::string_view name);

// Groups in the order in which help shows them.
const std::vector<const char*>& option_groups();
const std::vector<const char*>& command_groups();
struct ExitCode {
  int code;
  const char* text;
};
const std::vector<ExitCode>& exit_codes();

// --help. `globals`: the options of every command. Lines have at most `width` columns.
std::string help_text(const CommandText&, const CommandText& program, int width);
// A page of section 1 for man.
std::string man_page(const CommandText&, const CommandText& program, std::string_view version);
// The script for a shell; "": there is none for it.
std::string completion_script(const CommandText& program, std::string_view shell);

// Whether the text names each of them.
bool says_all(const std::vector<std::string>& names, std::string_view text);
// The text in lines of at most `width` columns, none of its words broken.
std::vector<std::string> wrapped(std::string_view text, int width);
// Columns of a text in UTF-8 without wide characters.
int columns(std::string_view text);

}  // namespace invar::cli
