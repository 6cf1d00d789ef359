// Members of JSON objects, with a finding for each that is missing, ill-typed, unknown or repeated.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/json.h"
#include "receipt/receipt.h"

namespace invar::receipt {

// Whether so many findings are listed that no further ones are: a text may have millions.
inline bool full(const std::vector<Finding>& f) {
  return f.size() > kMostFindings;
}

// The findings that are listed.
std::vector<Finding> bounded(std::vector<Finding>);

// Null where there is none.
const json::Value* find(const json::Value& object, std::string_view key);
// Adds a finding where it is missing. `members` finds a second one of the same name.
const json::Value* member(const json::Value& object, std::string_view key, const std::string& path,
                          std::vector<Finding>&);
const json::Value* object(const json::Value& parent, std::string_view key, std::vector<Finding>&);
// Adds findings for unknown and repeated members. An empty `known` allows all names.
void members(const json::Value& object, const std::string& prefix, const std::vector<std::string>& known,
             std::vector<Finding>&);
// A null `v` was found missing before.
std::optional<Digest> digest_of(const json::Value* v, const std::string& path, std::vector<Finding>&);

}  // namespace invar::receipt
