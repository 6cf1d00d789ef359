#include "onnx/recipe.h"

#include <bit>
#include <string_view>

namespace invar::onnx {
namespace {

constexpr char kRecipeKey[] = "invar.recipe";
constexpr std::string_view kParameterKey = "invar.parameter.";  // and the parameter's name

template <class Word>
std::string hex(Word word) {
  std::string s = "0x";
  for (int shift = 8 * sizeof word - 4; shift >= 0; shift -= 4) s += "0123456789abcdef"[word >> shift & 15];
  return s;
}

}  // namespace

std::string parameter(bool v) {
  return v ? "true" : "false";
}
std::string parameter(int64_t v) {
  return std::to_string(v);
}
std::string parameter(float v) {
  return hex(std::bit_cast<uint32_t>(v));
}
std::string parameter(double v) {
  return hex(std::bit_cast<uint64_t>(v));
}

void add_recipe(const Recipe& recipe, std::map<std::string, std::string>& metadata) {
  metadata[kRecipeKey] = recipe.name;
  for (const auto& [name, value] : recipe.parameters) metadata[std::string(kParameterKey) + name] = value;
}

Recipe recipe_of(const std::map<std::string, std::string>& metadata) {
  Recipe recipe;
  for (const auto& [key, value] : metadata) {
    if (key == kRecipeKey) recipe.name = value;
    if (key.starts_with(kParameterKey)) recipe.parameters[key.substr(kParameterKey.size())] = value;
  }
  return recipe;
}

}  // namespace invar::onnx
