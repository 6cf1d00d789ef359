// Words of the command line that are none, and what was meant.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "help/command_text.h"

namespace invar::cli {

// The nearest of the names, best first, at most three; none where nothing is near.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& names);
// "did you mean a, b or c?"; "" of none.
std::string did_you_mean(const std::vector<std::string>& names, std::string_view before = "");

// An error with what to do.
struct Advice {
  Error error;
  std::string hint;
};
struct Words {
  std::vector<std::string> words;  // what CLI11 gets: an empty value stands alone, as in --text ""
  std::string command;             // whose words these are; "" before there is one
  bool json = false;               // --json stands there
  bool version = false;            // --version or -V does
  std::optional<Advice> wrong;     // the first word that is no option, command or value
};
// Reads the words behind the name of the program as CLI11 will.
Words read_words(const CommandText& program, const std::vector<std::string>& given);

}  // namespace invar::cli
