// The promise of a program about its bits (spec/plan.md plan.13).
#pragma once

#include <iterator>
#include <optional>
#include <string_view>

namespace invar {

// Weakest first; each set also keeps the promises of the earlier ones.
//   any            ("default") nothing
//   deterministic  the same bits in every run on the same hardware with the same software
//   reproducible   the same bits on any machine
enum class OperationSet { any, deterministic, reproducible };

inline constexpr std::string_view kOperationSets[] = {"default", "deterministic", "reproducible"};
inline constexpr std::string_view kOperationSetNames = "default, deterministic, reproducible";

constexpr std::string_view name_of(OperationSet s) {
  return kOperationSets[static_cast<int>(s)];
}
constexpr std::optional<OperationSet> operation_set_from(std::string_view name) {
  for (size_t i = 0; i < std::size(kOperationSets); ++i)
    if (kOperationSets[i] == name) return static_cast<OperationSet>(i);
  return std::nullopt;
}

}  // namespace invar
