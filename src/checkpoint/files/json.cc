// Reads JSON of checkpoints, see json.h.
#include "checkpoint/files/json.h"

#include <filesystem>

#include "base/file/file.h"
#include "num/env.h"
#include "onnx/error_text.h"

namespace invar::checkpoint {

using json::Value;

namespace {

// Python writes an infinite number as Infinity, which is no JSON. It becomes a number of the same
// length that binary32 does not hold either.
std::string without_infinity(std::string_view text) {
  static constexpr std::string_view kWord = "Infinity", kNumber = "1e308   ";
  std::string out(text);
  bool inside = false;  // of a string
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == '"') inside = !inside;
    if (inside && out[i] == '\\') ++i;
    if (!inside && text.substr(i, kWord.size()) == kWord) out.replace(i, kWord.size(), kNumber);
  }
  return out;
}

}  // namespace

Result<Value> parse_json(std::string_view text, const std::string& file) {
  num::mend_arithmetic_env();  // the file was read by functions that a library can replace
  const num::ArithmeticEnv env;
  const size_t skipped = json::mark_length(text);
  json::Failure failure;
  auto value = json::parse(without_infinity(text.substr(skipped)), file, &failure);
  if (!value && failure.why == json::Failure::depth) return bad_input(file + ": nested too deeply");
  if (!value && failure.why == json::Failure::count) return value.error();
  if (!value)
    return bad_input(file + ": not well-formed JSON at byte " + std::to_string(skipped + failure.byte));
  if (const std::string* name = json::repeated_name(*value))
    return bad_input(file + ": key " + onnx::quote(*name) + " is given twice");
  if (!json::normalize(*value, json::Order::by_name))
    return bad_input(file + ": JSON holds a number out of range");
  if (!value->is_object()) return bad_input(file + ": not a JSON object");
  return value;
}

Result<Value> optional_json(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return Value(Value::object);
  INVAR_TRY(const std::string text, read_file(path));
  return parse_json(text, path);
}

}  // namespace invar::checkpoint
