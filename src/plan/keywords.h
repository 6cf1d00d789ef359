// Keywords of the plan's text that the printer and the parser share (spec/plan.md).
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace invar::plan {

inline constexpr std::string_view kHeader = "invar-plan 1";
inline constexpr std::string_view kPlaces = "places";  // the digest covers the lines before this one
inline constexpr std::string_view kEnd = "end";

// Whether a symbol is a name, which is bound at run time. The other symbols are expressions of
// names.
inline bool is_name(std::string_view symbol) {
  auto in_name = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !symbol.empty() && !(symbol[0] >= '0' && symbol[0] <= '9') &&
         std::all_of(symbol.begin(), symbol.end(), in_name);
}

// "..." with \" \\ and \xHH for control bytes; every other byte stands for itself.
std::string quote(std::string_view);

}  // namespace invar::plan
