// Words of the plan's text that the writer and the reader share (spec/plan.md).
#pragma once

#include <string>
#include <string_view>

namespace invar::plan {

inline constexpr std::string_view kHeader = "invar-plan 1";
inline constexpr std::string_view kPlaces = "places";  // the digest covers the lines before this one
inline constexpr std::string_view kEnd = "end";

// "..." with \" \\ and \xHH for control bytes; every other byte stands for itself.
std::string quote(std::string_view);

}  // namespace invar::plan
