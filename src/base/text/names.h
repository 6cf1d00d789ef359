// Whether inputs are given by the names that are taken.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/text/display.h"

namespace invar {

// bad_input: a name that is taken is not given or comes twice, or another one is given. `taker` is
// what errors call who takes them: "model".
inline Status check_names(const std::vector<std::string_view>& taken,
                          const std::vector<std::string_view>& given, std::string_view taker) {
  const auto quoted = [](std::string_view name) { return "'" + excerpt(name) + "'"; };
  std::string missing, known, others;
  size_t num_missing = 0;
  for (const std::string_view name : taken) {
    const auto count = std::ranges::count(given, name);
    if (count > 1) return bad_input("input " + quoted(name) + " twice");
    if (!count) missing += (num_missing++ ? ", " : "") + quoted(name);
    known += (known.empty() ? "" : ", ") + quoted(name);
  }
  for (const std::string_view name : given)
    if (std::ranges::find(taken, name) == taken.end())
      others += (others.empty() ? "input " : "; input ") + quoted(name) + ": the " + std::string(taker) +
                " has none of this name";
  if (num_missing)
    return bad_input((num_missing > 1 ? "inputs " : "input ") + missing +
                     (num_missing > 1 ? " are missing" : " is missing") +
                     (others.empty() ? "" : "; " + others));
  return others.empty() ? Status() : bad_input(others + "; there are " + known);
}

}  // namespace invar
