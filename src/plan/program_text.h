// The text of a program before any optimization, which receipts bind (spec/program.md).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/operation_set.h"
#include "base/profile.h"

namespace invar::plan {

// The profile of a plan with these numerics choices.
Profile profile_of(const std::vector<std::string>& choices);

// The recipe of an ONNX model (program.8).
inline constexpr std::string_view kGraphRecipe = "onnx-1";

// program.2. Its SHA-256 is Source::program.
std::string program_text(std::string_view recipe, std::string_view numerics, Profile, OperationSet,
                         const std::map<std::string, std::string>& parameters);

}  // namespace invar::plan
