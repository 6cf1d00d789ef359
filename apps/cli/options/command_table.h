// The table of commands and their options, which tools/options/generate.py makes of commands.toml:
// what the parser reads, and help, man pages and completion show.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/operation_set.h"
#include "base/profile.h"
#include "commands.h"
#include "help/command_text.h"

namespace invar::cli {

// How the text of a value becomes a value. `on` and `off` are flags that set one
// std::optional<bool>.
enum class ValueKind : uint8_t {
  flag,
  on,
  off,
  text,
  whole,
  decimal,
  size,
  power,
  profile,
  operation_set,
  bias
};

// Why a text is no value. Without a hint the error names the command's help.
struct Wrong {
  std::string message;
  std::optional<std::string> hint = {};
};
using Check = std::optional<Wrong> (*)(const std::string& value);

// Lists in a text are separated by spaces, choices by '|', of which "..." says that there are
// others.
struct OptionRow {
  const char *name, *short_name, *value, *group, *help, *standard, *choices, *needs, *excludes;
  ValueKind kind;
  uint64_t least, most;  // both 0: any number
  Check check;
  bool position, required, repeats, many, comma, may_be_empty;

  bool is_flag() const { return kind == ValueKind::flag || kind == ValueKind::on || kind == ValueKind::off; }
  // The name in errors: --name, or the name of one without dashes.
  std::string dashed() const { return position ? name : "--" + std::string(name); }
};

// The place of a value: a member of a command's struct.
template <class... T>
using AnyOf =
    std::variant<T*..., std::optional<T>*..., std::vector<T>*..., std::optional<std::vector<T>>*...>;
using Target = AnyOf<bool, std::string, int32_t, int64_t, uint64_t, float, double, Profile, OperationSet,
                     sample::LogitBias>;

struct CommandRow {
  const char *name, *aliases, *about, *group, *examples;  // name: "" of the program; a line each
  const char *one_of, *one_of_text;  // options of which one is needed, and how the error calls them
  std::span<const OptionRow> options;
  std::vector<Target> (*targets)(Commands&);  // of the options
  int (*run)(Commands&);                      // null: it has commands of its own
};

// The program first.
std::span<const CommandRow> command_rows();
// The program with all commands, as help shows them.
const CommandText& program_text();

// Sets the target to the text, or adds it to a list. `value` is not empty where the row forbids it.
std::optional<Wrong> store(const OptionRow&, const std::string& value, const Target&);

}  // namespace invar::cli
