#include "help/suggest.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>

namespace invar::cli {
namespace {

// Insertions, deletions, replacements, and swaps of neighbours.
int distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = static_cast<int>(i);
  std::iota(d[0].begin(), d[0].end(), 0);
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts{""};
  for (const char c : name) {
    if (c == '-' || c == '_')
      parts.emplace_back();
    else
      parts.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return parts;
}

int most_for(size_t length) {  // mistakes in a word of this length
  return length < 3 ? 0 : length < 7 ? 1 : 2;
}

// How far a name is from what was typed, in tenths of a mistake; none: it was not meant.
std::optional<int> far(std::string_view word, const std::string& name) {
  std::optional<int> best;
  const auto take = [&](int cost) { best = std::min(best.value_or(cost), cost); };
  const int whole = distance(word, name);
  if (whole <= std::max(most_for(word.size()), static_cast<int>(word.size()) / 4)) take(10 * whole);
  // Each part that was typed is one of the name's, as max-tokens of max-new-tokens.
  std::vector<std::string> typed = parts_of(word), others = parts_of(name);
  int cost = 0;
  bool first = true;  // model is model-name rather than worker-model
  for (const std::string& part : typed) {
    const auto found = std::ranges::min_element(others, {}, [&](const std::string& other) {
      return other.starts_with(part) ? 0 : distance(part, other);
    });
    if (found == others.end()) return best;
    const bool begins = part.size() >= 3 && found->starts_with(part);
    const int mistakes = begins ? (*found == part ? 0 : 1) : distance(part, *found);
    if (!begins && mistakes > most_for(part.size())) return best;
    cost += 10 * mistakes + (first && found != others.begin() ? 3 : 0);
    first = false;
    others.erase(found);
  }
  take(cost + 3 * static_cast<int>(others.size()));
  return best;
}

std::vector<std::string> dashed(std::vector<std::string> names) {
  for (std::string& name : names) name.insert(0, "--");
  return names;
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

// Walks over the words.
class Reader {
 public:
  Reader(const CommandText& program, const std::vector<std::string>& given)
      : program_(program), given_(given), command_(&program) {}

  Words read() {
    for (; at_ < given_.size(); ++at_) {
      const std::string& word = given_[at_];
      if (rest_)
        keep(word);
      else if (word == "--")
        rest_ = true, keep(word);
      else if (word.starts_with("--"))
        long_option(word);
      else if (word.size() > 1 && word[0] == '-' && !std::isdigit(static_cast<unsigned char>(word[1])))
        short_option(word);
      else
        bare(word);
    }
    found_.command = command_->name;
    return std::move(found_);
  }

 private:
  void keep(const std::string& word) { found_.words.push_back(word); }
  std::string see() const {
    return "see `invar " + (command_->name.empty() ? "" : command_->name + " ") + "--help`";
  }
  void wrong(const std::string& message, const std::string& hint) {
    if (!found_.wrong) found_.wrong = Advice{bad_input(message), hint.empty() ? see() : hint};
  }
  const OptionText* option(std::string_view name) const {
    if (const OptionText* const own = find_option(*command_, name)) return own;
    return find_option(program_, name);
  }
  std::string hint_for(const std::string& name) const {
    std::vector<std::string> names = long_names(*command_), globals = long_names(program_);
    if (command_ != &program_) names.insert(names.end(), globals.begin(), globals.end());
    if (std::string hint = did_you_mean(dashed(nearest(name, names))); !hint.empty()) return hint;
    const std::vector<std::string> others = commands_with(program_, name);
    if (others.empty()) return "";
    if (command_ == &program_)
      return "write it after the command, as in `invar " + others.front() + " --" + name + "`";
    return "it is an option of `invar " + others.front() + "`; " + see();
  }
  void long_option(const std::string& word) {
    const size_t equal = word.find('=');
    const std::string name = word.substr(2, equal == word.npos ? equal : equal - 2);
    const OptionText* const o = option(name);
    if (!o) {
      wrong(
          "--" + name + ": no option of `invar" + (command_->name.empty() ? "" : " " + command_->name) + "`",
          hint_for(name));
      return keep(word);
    }
    found_.json |= name == "json";
    found_.version |= name == "version";
    if (o->is_flag() || equal == word.npos) {
      keep(word);
      if (!o->is_flag()) value_behind(*o, "--" + name);
      return;
    }
    const std::string value = word.substr(equal + 1);
    check(*o, "--" + name, value);
    if (!value.empty()) return keep(word);
    keep("--" + name), keep("");  // CLI11 would take the next word
  }
  void short_option(const std::string& word) {
    const OptionText* const o = option(std::string_view(word).substr(1, 1));
    if (!o)
      wrong("-" + word.substr(1, 1) + ": no option of `invar" + (command_->name.empty() ? "" : " ") +
                command_->name + "`",
            "");
    found_.version |= word == "-V";
    keep(word);
    if (o && !o->is_flag() && word.size() == 2) value_behind(*o, word);
  }
  // The next word is the value, unless it is an option, which the user meant.
  void value_behind(const OptionText& o, const std::string& name) {
    const std::string what = o.type == "TEXT" ? "a text" : "its value, " + o.type + ",";
    if (at_ + 1 == given_.size()) return wrong(name + ": " + what + " is missing", "");
    const std::string& next = given_[at_ + 1];
    if (next.starts_with("--") && next.size() > 2) {
      const std::string other = next.substr(2, next.find('=') - 2);
      if (option(other))
        return wrong(name + ": " + what + " is missing before --" + other,
                     o.type == "TEXT" ? "a text that begins with -- follows =: " + name + "=TEXT" : "");
    }
    ++at_;
    check(o, name, next);
    keep(next);
  }
  void check(const OptionText& o, const std::string& name, const std::string& value) {
    if (!o.closed || value.empty() || std::ranges::count(o.choices, value) > 0) return;
    if (o.repeats && o.position.empty()) return;  // a list of values
    std::string list;
    for (const std::string& choice : o.choices) list += (list.empty() ? "" : ", ") + choice;
    wrong(name + ": " + value + " is not one of " + list, did_you_mean(nearest(value, o.choices)));
  }
  // The first of these options that the command has and that is not given yet.
  std::string option_for(const std::string& word) const {
    for (const std::string name : {"--model-name", "--prompt-text"})
      if (find_option(*command_, std::string_view(name).substr(2)) &&
          std::ranges::count(found_.words, name) == 0)
        return "did you mean " + name + " '" + word + "'?";
    return "";
  }
  void bare(const std::string& word) {
    keep(word);
    if (command_->commands.empty()) {
      for (const OptionText& o : command_->options)
        if (!o.position.empty()) return check(o, o.shown_position(), word);
      return wrong("'" + word + "': `invar " + command_->name + "` takes no word without an option",
                   option_for(word));
    }
    if (const CommandText* const next = find_command(*command_, word)) return (void)(command_ = next);
    std::vector<std::string> names;
    for (const CommandText& c : command_->commands) {
      names.push_back(c.name.substr(c.name.rfind(' ') + 1));
      names.insert(names.end(), c.aliases.begin(), c.aliases.end());
    }
    wrong(
        word + ": no command of `invar" + (command_->name.empty() ? "" : " " + command_->name) + "`",
        did_you_mean(nearest(word, names), "invar " + (command_->name.empty() ? "" : command_->name + " ")));
    rest_ = true;
    found_.json |= std::ranges::count(given_, "--json") > 0;
  }

  const CommandText& program_;
  const std::vector<std::string>& given_;
  const CommandText* command_;
  size_t at_ = 0;
  bool rest_ = false;
  Words found_;
};

}  // namespace

std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& names) {
  // What other programs call these.
  static const std::map<std::string_view, std::vector<std::string>> kOtherNames = {
      {"max-length", {"max-new-tokens"}},
      {"n", {"max-new-tokens"}},
      {"checkpoint", {"model-name"}},
      {"gpu", {"device", "cuda"}},
      {"num-threads", {"threads"}},
      {"eos", {"stop"}},
      {"greedy", {"no-do-sample"}},
      {"out", {"output"}},
      {"generate", {"run"}},
      {"check", {"verify", "validate"}},
      {"tokenize", {"encode"}},
      {"detokenize", {"decode"}},
      {"benchmark", {"bench"}},
      {"pull", {"download"}},
      {"prompt", {"prompt-text", "prompt-file"}}};
  std::vector<std::string> found;
  if (const auto other = kOtherNames.find(word); other != kOtherNames.end())
    for (const std::string& name : other->second)
      if (std::ranges::count(names, name) > 0) found.push_back(name);
  if (!found.empty()) return found;
  std::vector<std::pair<int, std::string>> near;
  for (const std::string& name : names)
    if (const auto cost = far(word, name)) near.emplace_back(*cost, name);
  std::ranges::stable_sort(near, {}, &std::pair<int, std::string>::first);
  for (const auto& [cost, name] : near)
    if (cost <= near.front().first + 2 && found.size() < 3 && std::ranges::count(found, name) == 0)
      found.push_back(name);
  return found;
}

std::string did_you_mean(const std::vector<std::string>& names, std::string_view before) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + std::string(before) + names[i];
  return text.empty() ? "" : "did you mean " + text + "?";
}

Words read_words(const CommandText& program, const std::vector<std::string>& given) {
  return Reader(program, given).read();
}

}  // namespace invar::cli
