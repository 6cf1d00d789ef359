#include "plan/program_text.h"

#include "plan/keywords.h"

namespace invar::plan {

std::string program_text(std::string_view recipe, std::string_view numerics, OperationSet set,
                         const std::map<std::string, std::string>& parameters) {
  std::string s = "invar-program 1\nrecipe " + quote(recipe) + "\nnumerics " + quote(numerics) +
                  "\nprofile " + quote(kProfile) + "\noperations " + quote(name_of(set)) + "\n";
  for (const auto& [name, value] : parameters) s += "parameter " + name + " " + value + "\n";
  return s;
}

}  // namespace invar::plan
