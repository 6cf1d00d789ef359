// Completion scripts. Every command's options are in them as data: a key press starts no program.
#include <algorithm>

#include "help/command_text.h"

namespace invar::cli {
namespace {

// The completion of an option's value.
enum class Kind { nothing, file, folder, choices };
Kind kind_of(const OptionText& o) {
  if (!o.choices.empty()) return Kind::choices;
  if (o.type == "FILE" || o.type == "KEY") return Kind::file;
  if (o.type == "FOLDER" || o.type == "MODEL") return Kind::folder;
  return Kind::nothing;
}

std::string with_spaces(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& one : list) text += (text.empty() ? "" : " ") + one;
  return text;
}

std::vector<const CommandText*> all_commands(const CommandText& program) {
  std::vector<const CommandText*> all;
  for (const CommandText& c : program.commands) {
    all.push_back(&c);
    for (const CommandText& deeper : c.commands) all.push_back(&deeper);
  }
  return all;
}

std::string names_of(const CommandText& c) {
  std::vector<std::string> names;
  for (const OptionText& o : c.options) {
    for (const std::string& s : o.shorts) names.push_back("-" + s);
    for (const std::string& l : o.longs) names.push_back("--" + l);
  }
  return with_spaces(names);
}

std::string subcommands_of(const CommandText& c) {
  std::vector<std::string> names;
  for (const CommandText& one : c.commands) {
    names.push_back(one.name.substr(one.name.rfind(' ') + 1));
    names.insert(names.end(), one.aliases.begin(), one.aliases.end());
  }
  return with_spaces(names);
}

// The names of its commands, too, are what its first word may be.
CommandText with_commands(CommandText c) {
  for (OptionText& o : c.options)
    if (!o.position.empty())
      for (const CommandText& one : c.commands) o.choices.push_back(one.name.substr(one.name.rfind(' ') + 1));
  return c;
}

std::string patterns(const OptionText& o) {  // of bash's case
  std::string text;
  for (const std::string& s : o.shorts) text += (text.empty() ? "-" : "|-") + s;
  for (const std::string& l : o.longs) text += (text.empty() ? "--" : "|--") + l;
  return text;
}

std::string bash_value(const OptionText& o, const std::string& names) {
  std::string line = "    " + names + ") ";
  switch (kind_of(o)) {
    case Kind::choices: return line + "kind=words words=\"" + with_spaces(o.choices) + "\";;\n";
    case Kind::file: return line + "kind=file;;\n";
    case Kind::folder: return line + "kind=folder;;\n";
    default: return line + "kind=none;;\n";
  }
}

std::string bash_cases(const CommandText& c, const std::string& name) {
  std::string text;
  for (const OptionText& o : c.options)
    if (!o.is_flag() && o.position.empty()) {
      std::string names = patterns(o);
      size_t at = 0;
      std::string of_command;
      for (std::string_view rest = names; !rest.empty();) {  // "run:--a|run:-b"
        at = std::min(rest.find('|'), rest.size());
        of_command += (of_command.empty() ? "'" : "|'") + name + ":" + std::string(rest.substr(0, at)) + "'";
        rest.remove_prefix(std::min(at + 1, rest.size()));
      }
      text += bash_value(o, of_command);
    }
  return text;
}

std::string bash(const CommandText& program) {
  std::string text =
      "# bash completion of invar: source <(invar completion bash)\n"
      "_invar() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd= word i kind= words=\n"
      "  if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    word=${COMP_WORDS[i]}\n"
      "    case \"$cmd $word\" in\n";
  for (const CommandText* c : all_commands(program)) {
    const size_t space = c->name.rfind(' ');
    const std::string above = space == c->name.npos ? "" : c->name.substr(0, space);
    std::vector<std::string> names{c->name.substr(space == c->name.npos ? 0 : space + 1)};
    names.insert(names.end(), c->aliases.begin(), c->aliases.end());
    for (const std::string& name : names)
      text += "      '" + above + " " + name + "') cmd='" + c->name + "';;\n";
  }
  text +=
      "    esac\n"
      "  done\n"
      "  case \"$cmd:$prev\" in\n";
  for (const CommandText* c : all_commands(program)) text += bash_cases(*c, c->name);
  for (const OptionText& o : program.options)
    if (!o.is_flag()) {
      std::string names;
      for (const std::string& l : o.longs) names += (names.empty() ? "*:--" : "|*:--") + l;
      text += bash_value(o, names);
    }
  text +=
      "  esac\n"
      "  if [[ -z $kind ]]; then\n"
      "    case \"$cmd\" in\n"
      "    '') kind=words words=\"" +
      subcommands_of(program) + "\";;\n";
  for (const CommandText* c : all_commands(program)) {
    const std::vector<OptionText> options = with_commands(*c).options;
    const auto word = std::ranges::find_if(options, [](const OptionText& o) { return !o.position.empty(); });
    if (word != options.end())
      text += bash_value(*word, "'" + c->name + "'");
    else if (!c->commands.empty())
      text += "    '" + c->name + "') kind=words words=\"" + subcommands_of(*c) + "\";;\n";
  }
  text +=
      "    esac\n"
      "    if [[ $cur == -* ]]; then\n"
      "      kind=words\n"
      "      case \"$cmd\" in\n";
  const std::string globals = names_of(program);
  for (const CommandText* c : all_commands(program))
    text += "      '" + c->name + "') words=\"" + names_of(*c) + " " + globals + "\";;\n";
  text += "      *) words=\"" + globals +
          "\";;\n"
          "      esac\n"
          "    fi\n"
          "  fi\n"
          "  case $kind in\n"
          "  words) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"));;\n"
          "  folder) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- \"$cur\"));;\n"
          "  none) COMPREPLY=();;\n"
          "  *) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\"));;\n"
          "  esac\n"
          "}\n"
          "complete -F _invar invar\n";
  return text;
}

// Within single quotes; `also` are escaped with a backslash.
std::string quoted(std::string_view text, std::string_view also = "") {
  std::string out;
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (also.find(c) != also.npos)
      out += std::string("\\") + c;
    else
      out += c;
  }
  return out;
}

std::string zsh_value(const OptionText& o) {
  const std::string type = ":" + quoted(o.type, ":\\") + ":";
  switch (kind_of(o)) {
    case Kind::choices: return type + "(" + with_spaces(o.choices) + ")";
    case Kind::file: return type + "_files";
    case Kind::folder: return type + "_files -/";
    default: return type;
  }
}

std::string zsh_options(const CommandText& c, const std::string& indent) {
  std::string text;
  for (const OptionText& o : c.options) {
    if (!o.position.empty()) continue;
    std::vector<std::string> names;
    for (const std::string& s : o.shorts) names.push_back("-" + s);
    for (const std::string& l : o.longs) names.push_back("--" + l);
    for (const std::string& name : names)
      text += indent + "'" + (o.repeats ? "*" : "") + name + (o.is_flag() || name.size() == 2 ? "" : "=") +
              "[" + quoted(o.text, "[]:\\") + "]" + (o.is_flag() ? "" : zsh_value(o)) + "' \\\n";
  }
  for (const OptionText& o : c.options)
    if (!o.position.empty()) {
      const std::string value = zsh_value(o);
      text +=
          indent + "'" + (o.repeats ? "*" : "1") + (value.ends_with(":") ? value + " " : value) + "' \\\n";
    }
  return text;
}

std::string zsh(const CommandText& program) {
  std::string text =
      "#compdef invar\n"
      "# zsh completion of invar: a file _invar in a folder of $fpath\n"
      "_invar() {\n"
      "  local context state line\n"
      "  local -a commands=(\n";
  for (const CommandText& c : program.commands)
    text += "    '" + c.name + ":" + quoted(c.text.substr(0, c.text.find('\n')), ":\\") + "'\n";
  text += "  )\n  _arguments -C \\\n" + zsh_options(program, "    ") +
          "    '1:command:->command' '*::argument:->argument'\n"
          "  case $state in\n"
          "  command) _describe command commands;;\n"
          "  argument)\n"
          "    case $line[1] in\n";
  for (const CommandText& c : program.commands) {
    std::string names = c.name;
    for (const std::string& alias : c.aliases) names += "|" + alias;
    text += "    " + names + ") _arguments \\\n" + zsh_options(with_commands(c), "      ") +
            zsh_options(program, "      ");
    if (!c.commands.empty() && c.options.empty())
      text += "      '1:command:(" + subcommands_of(c) + ")' \\\n";
    text += "      ;;\n";
  }
  return text +
         "    esac;;\n  esac\n}\nif [[ $funcstack[1] == _invar ]]; then _invar \"$@\"; else compdef _invar "
         "invar; fi\n";
}

std::string fish_quoted(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return "'" + out + "'";
}

std::string fish_option(const OptionText& o, const std::string& condition) {
  std::string line = "complete -c invar" + condition;
  for (const std::string& s : o.shorts) line += " -s " + s;
  for (const std::string& l : o.longs) line += " -l " + l;
  if (!o.is_flag()) {
    line += " -r";
    if (const Kind kind = kind_of(o); kind == Kind::file)
      line += " -F";
    else if (kind == Kind::folder)
      line += " -f -a '(__fish_complete_directories)'";
    else
      line += " -f" + (o.choices.empty() ? "" : " -a " + fish_quoted(with_spaces(o.choices)));
  }
  return line + " -d " + fish_quoted(o.text) + "\n";
}

std::string fish(const CommandText& program) {
  std::string text =
      "# fish completion of invar: invar completion fish | source\n"
      "complete -c invar -f\n";
  for (const CommandText& c : program.commands)
    text += "complete -c invar -n __fish_use_subcommand -a " + fish_quoted(c.name) + " -d " +
            fish_quoted(c.text.substr(0, c.text.find('\n'))) + "\n";
  for (const OptionText& o : program.options) text += fish_option(o, "");
  for (const CommandText& c : program.commands) {
    std::string names = c.name;
    for (const std::string& alias : c.aliases) names += " " + alias;
    const std::string condition = " -n '__fish_seen_subcommand_from " + names + "'";
    for (const CommandText& deeper : c.commands)
      text += "complete -c invar" + condition + " -a " +
              fish_quoted(deeper.name.substr(deeper.name.rfind(' ') + 1)) + " -d " +
              fish_quoted(deeper.text) + "\n";
    for (const OptionText& o : c.options) {
      if (o.position.empty()) text += fish_option(o, condition);
      if (!o.position.empty() && kind_of(o) == Kind::choices)
        text += "complete -c invar" + condition + " -a " + fish_quoted(with_spaces(o.choices)) + "\n";
      if (!o.position.empty() && (kind_of(o) == Kind::file || kind_of(o) == Kind::folder))
        text += "complete -c invar" + condition + " -F\n";
    }
    for (const CommandText& deeper : c.commands)
      for (const OptionText& o : deeper.options)
        if (o.position.empty())
          text += fish_option(
              o, " -n '__fish_seen_subcommand_from " + deeper.name.substr(deeper.name.rfind(' ') + 1) + "'");
  }
  return text;
}

}  // namespace

std::string completion_script(const CommandText& program, std::string_view shell) {
  return shell == "bash"   ? bash(program)
         : shell == "zsh"  ? zsh(program)
         : shell == "fish" ? fish(program)
                           : "";
}

}  // namespace invar::cli
