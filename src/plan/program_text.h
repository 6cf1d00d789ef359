// The text of a program before any optimization, which receipts bind (spec/program.md).
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/operation_set.h"

namespace invar::plan {

// Which arithmetic contractions have: so far binary32 alone.
inline constexpr std::string_view kProfile = "fp32";

// The recipe of an ONNX model (program.8).
inline constexpr std::string_view kGraphRecipe = "onnx-1";

// program.2. Its SHA-256 is Source::program.
std::string program_text(std::string_view recipe, std::string_view numerics, OperationSet,
                         const std::map<std::string, std::string>& parameters);

}  // namespace invar::plan
