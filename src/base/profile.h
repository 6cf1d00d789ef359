// How a program computes its matrix products (spec/program.md program.2, spec/exact16.md).
#pragma once

#include <iterator>
#include <optional>
#include <string_view>

namespace invar {

//   fp32     binary32, in the order of spec/contraction.md
//   exact16  rows of 16-bit integers, exactly, for the products with the program's tensors
enum class Profile { fp32, exact16 };

inline constexpr std::string_view kProfiles[] = {"fp32", "exact16"};
inline constexpr std::string_view kProfileNames = "fp32, exact16";
// The numerics choice by which a plan says that it has the profile exact16 (choices.12).
inline constexpr std::string_view kExact16Choice = "exact16-1";

constexpr std::string_view name_of(Profile p) {
  return kProfiles[static_cast<int>(p)];
}
constexpr std::optional<Profile> profile_from(std::string_view name) {
  for (size_t i = 0; i < std::size(kProfiles); ++i)
    if (kProfiles[i] == name) return static_cast<Profile>(i);
  return std::nullopt;
}

}  // namespace invar
