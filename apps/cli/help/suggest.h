// Words of the command line that are none, and what was meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

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

}  // namespace invar::cli
