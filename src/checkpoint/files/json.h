// A strict JSON parser for untrusted files.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "base/text/json.h"

namespace invar::checkpoint {

// Parses an object; its members are in the order of their names. Malformed text, a duplicate key in
// one object and nesting deeper than json::kMostLevels are errors of one line that starts with the
// file's name.
Result<json::Value> parse_json(std::string_view text, const std::string& file);

// The object in a file; an empty one where there is no such file.
Result<json::Value> optional_json(const std::string& path);

}  // namespace invar::checkpoint
