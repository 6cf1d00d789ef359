// A strict JSON parser for untrusted files.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/status.h"

namespace invar::checkpoint {

// Parses an object. Malformed text, a duplicate key in one object and nesting deeper than 32 are
// errors of one line that starts with the file's name.
Result<nlohmann::json> parse_json(std::string_view text, const std::string& file);

// The object in a file; an empty one where there is no such file.
Result<nlohmann::json> optional_json(const std::string& path);

}  // namespace invar::checkpoint
