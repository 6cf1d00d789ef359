#include "plan/program_text.h"

#include <algorithm>

#include "plan/keywords.h"

namespace invar::plan {

Profile profile_of(const std::vector<std::string>& choices) {
  return std::ranges::count(choices, kExact16Choice) > 0 ? Profile::exact16 : Profile::fp32;
}

std::string program_text(std::string_view recipe, std::string_view numerics, Profile profile,
                         OperationSet set, const std::map<std::string, std::string>& parameters) {
  std::string s = "invar-program 1\nrecipe " + quote(recipe) + "\nnumerics " + quote(numerics) +
                  "\nprofile " + quote(name_of(profile)) + "\noperations " + quote(name_of(set)) + "\n";
  for (const auto& [name, value] : parameters) s += "parameter " + name + " " + value + "\n";
  return s;
}

}  // namespace invar::plan
