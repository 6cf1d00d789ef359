// The words of the command line -> options and their values as text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "help/command_text.h"
#include "help/suggest.h"

namespace invar::cli {

struct Given {
  int times = 0;
  std::vector<std::string> values;  // of an option that is no flag
};
struct Words {
  const CommandText* command;        // whose words these are; the program before there is one
  std::vector<Given> program, own;   // of each option of the program, of the command
  std::vector<std::string> extra;    // words that no option takes
  bool json = false;                 // --json stands there
  std::optional<Advice> wrong = {};  // the first word that is no option, command or value
};
Words read_arguments(const CommandText& program, const std::vector<std::string>& given);

// "see `invar run --help`"
std::string see_help(const CommandText&);

}  // namespace invar::cli
