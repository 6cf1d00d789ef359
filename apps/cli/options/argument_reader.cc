#include "options/argument_reader.h"

#include <algorithm>
#include <cctype>

namespace invar::cli {
namespace {

// "`invar run`"
std::string quoted_name(const CommandText& c) {
  return "`invar" + (c.name.empty() ? "" : " " + c.name) + "`";
}

std::vector<std::string> long_names(const CommandText& c) {
  std::vector<std::string> names;
  for (const OptionText& o : c.options) names.insert(names.end(), o.longs.begin(), o.longs.end());
  return names;
}

std::vector<std::string> commands_with(const CommandText& program, std::string_view option) {
  std::vector<std::string> names;
  for (const CommandText& c : program.commands) {
    if (find_option(c, option)) names.push_back(c.name);
    for (const CommandText& deeper : c.commands)
      if (find_option(deeper, option)) names.push_back(deeper.name);
  }
  return names;
}

bool is_dashed(std::string_view word) {  // -5 is none
  return word.size() > 1 && word[0] == '-' && !std::isdigit(static_cast<unsigned char>(word[1]));
}

// Walks over the words.
class ArgumentReader {
 public:
  ArgumentReader(const CommandText& program, const std::vector<std::string>& given)
      : program_(program), given_(given) {
    found_.program.resize(program.options.size());
    enter(program);
  }

  Words read() {
    for (; at_ < given_.size(); ++at_) {
      const std::string& word = given_[at_];
      if (rest_)
        position(word);
      else if (word == "--")
        rest_ = true;
      else if (word.starts_with("--"))
        long_option(word);
      else if (is_dashed(word))
        short_options(word);
      else
        bare(word);
    }
    return std::move(found_);
  }

 private:
  const CommandText& command() const { return *found_.command; }
  void enter(const CommandText& c) {
    found_.command = &c;
    if (&c != &program_) found_.own.assign(c.options.size(), {});
  }
  void wrong(const std::string& message, const std::string& hint) {
    if (!found_.wrong) found_.wrong = Advice{bad_input(message), hint.empty() ? see_help(command()) : hint};
  }
  const OptionText* option(std::string_view name) const {
    if (const OptionText* const own = find_option(command(), name)) return own;
    return find_option(program_, name);
  }
  Given& given_of(const OptionText& o) {
    const bool of_program =
        &o >= program_.options.data() && &o < program_.options.data() + program_.options.size();
    return of_program ? found_.program[static_cast<size_t>(&o - program_.options.data())]
                      : found_.own[static_cast<size_t>(&o - command().options.data())];
  }
  void take(const OptionText& o, const std::string& name, const std::string& value) {
    Given& given = given_of(o);
    ++given.times, given.values.push_back(value);
    // A list of values is read as one.
    if (!o.closed || value.empty() || std::ranges::count(o.choices, value) > 0) return;
    if (o.repeats && o.position.empty()) return;
    std::string list;
    for (const std::string& choice : o.choices) list += (list.empty() ? "" : ", ") + choice;
    wrong(name + ": " + value + " is not one of " + list, did_you_mean(nearest(value, o.choices)));
  }
  void take_flag(const OptionText& o, const std::string& name, std::string_view value) {
    found_.json |= name == "--json";
    if (value == "true" || value == "1")
      ++given_of(o).times;
    else if (value != "false" && value != "0")
      wrong(name + ": a flag, whose value is true or false, not " + std::string(value), "");
  }
  std::string hint_for(const std::string& name) const {
    std::vector<std::string> names = long_names(command()), globals = long_names(program_);
    if (&command() != &program_) names.insert(names.end(), globals.begin(), globals.end());
    names = nearest(name, names);
    if (std::string hint = did_you_mean(names, "--"); !hint.empty()) return hint;
    const std::vector<std::string> others = commands_with(program_, name);
    if (others.empty()) return "";
    if (&command() == &program_)
      return "write it after the command, as in `invar " + others.front() + " --" + name + "`";
    return "it is an option of `invar " + others.front() + "`; " + see_help(command());
  }
  void long_option(const std::string& word) {
    const size_t equal = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equal);
    const OptionText* const o = option(std::string_view(name).substr(2));
    if (!o) return wrong(name + ": no option of " + quoted_name(command()), hint_for(name.substr(2)));
    if (o->is_flag()) return take_flag(*o, name, equal < word.size() ? word.substr(equal + 1) : "true");
    if (equal < word.size()) return take(*o, name, word.substr(equal + 1));
    next_value(*o, name);
  }
  void short_options(const std::string& word) {
    for (size_t i = 1; i < word.size(); ++i) {
      const std::string name = "-" + word.substr(i, 1);
      const OptionText* const o = option(std::string_view(name).substr(1));
      if (!o) return wrong(name + ": no option of " + quoted_name(command()), "");
      const std::string called = o->longs.empty() ? name : "--" + o->longs.front();
      if (o->is_flag())
        take_flag(*o, called, "true");
      else
        return i + 1 < word.size() ? take(*o, called, word.substr(i + 1)) : next_value(*o, name);
    }
  }
  // The next word is the value, unless it is an option, which the user meant.
  void next_value(const OptionText& o, const std::string& name) {
    const std::string what = o.type == "TEXT" ? "a text" : "its value, " + o.type + ",";
    if (at_ + 1 == given_.size()) return wrong(name + ": " + what + " is missing", "");
    const std::string& next = given_[at_ + 1];
    if (next.starts_with("--") && next.size() > 2) {
      const std::string other = next.substr(2, next.find('=') - 2);
      if (option(other))
        return wrong(name + ": " + what + " is missing before --" + other,
                     o.type == "TEXT" ? "a text that begins with -- follows =: " + name + "=TEXT" : "");
    }
    take(o, name, given_[++at_]);
    while (o.many && at_ + 1 < given_.size() && !is_dashed(given_[at_ + 1]) &&
           given_.size() - at_ - 1 > missing())
      take(o, name, given_[++at_]);
  }
  // The positions that still need a word.
  size_t missing() {
    return static_cast<size_t>(std::ranges::count_if(command().options, [&](const OptionText& o) {
      return !o.position.empty() && o.required && given_of(o).times == 0;
    }));
  }
  void position(const std::string& word) {
    for (const OptionText& o : command().options)
      if (!o.position.empty() && (o.repeats || given_of(o).times == 0))
        return take(o, o.shown_position(), word);
    found_.extra.push_back(word);
  }
  // The first of these options that the command has and that is not given yet.
  std::string option_for(const std::string& word) {
    for (const std::string name : {"model-name", "prompt-text"})
      if (const OptionText* const o = find_option(command(), name); o && given_of(*o).times == 0)
        return "did you mean --" + name + " '" + word + "'?";
    return "";
  }
  void bare(const std::string& word) {
    const CommandText* const next = find_command(command(), word);
    if (next && std::ranges::all_of(found_.own, [](const Given& g) { return g.times == 0; }))
      return enter(*next);
    const bool takes =
        std::ranges::any_of(command().options, [](const OptionText& o) { return !o.position.empty(); });
    if (takes) return position(word);
    if (command().commands.empty()) {
      return wrong("'" + word + "': " + quoted_name(command()) + " takes no word without an option",
                   option_for(word));
    }
    std::vector<std::string> names;
    for (const CommandText& c : command().commands) {
      names.push_back(c.name.substr(c.name.rfind(' ') + 1));
      names.insert(names.end(), c.aliases.begin(), c.aliases.end());
    }
    wrong(
        word + ": no command of " + quoted_name(command()),
        did_you_mean(nearest(word, names), "invar " + (command().name.empty() ? "" : command().name + " ")));
    rest_ = true;
    found_.json |= std::ranges::count(given_, "--json") > 0;
  }

  const CommandText& program_;
  const std::vector<std::string>& given_;
  size_t at_ = 0;
  bool rest_ = false;  // all words are values
  Words found_{};
};

}  // namespace

std::string see_help(const CommandText& c) {
  return "see `invar " + (c.name.empty() ? "" : c.name + " ") + "--help`";
}

Words read_arguments(const CommandText& program, const std::vector<std::string>& given) {
  return ArgumentReader(program, given).read();
}

}  // namespace invar::cli
