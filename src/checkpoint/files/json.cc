// Validates JSON with a SAX handler before building a value.
#include "checkpoint/files/json.h"

#include <filesystem>
#include <set>
#include <vector>

#include "base/file/file.h"
#include "num/env.h"
#include "onnx/error_text.h"

namespace invar::checkpoint {
namespace {

using nlohmann::json;

// Checks the text before a value is built. The library's parser callbacks are quadratic in the
// number of members: at the end of each value they visit all members of the enclosing object.
class Validator : public nlohmann::json_sax<json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(json::number_integer_t) override { return true; }
  bool number_unsigned(json::number_unsigned_t) override { return true; }
  bool number_float(json::number_float_t, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(json::binary_t&) override { return true; }
  bool start_object(size_t) override { return open(); }
  bool start_array(size_t) override { return open(); }
  bool end_object() override { return keys_.pop_back(), true; }
  bool end_array() override { return keys_.pop_back(), true; }
  bool key(std::string& name) override {
    return keys_.back().insert(name).second || refuse("key " + onnx::quote(name) + " is given twice");
  }
  bool parse_error(size_t, const std::string&, const json::exception& error) override {
    if (const auto* where = dynamic_cast<const json::parse_error*>(&error))
      return refuse("not well-formed JSON at byte " + std::to_string(where->byte));
    return refuse("JSON holds a number out of range");
  }
  const std::string& reason() const { return reason_; }

 private:
  bool open() {
    constexpr size_t kMaxDepth = 32;
    if (keys_.size() == kMaxDepth) return refuse("nested too deeply");
    keys_.emplace_back();
    return true;
  }
  bool refuse(std::string why) { return reason_ = std::move(why), false; }
  std::vector<std::set<std::string>> keys_;  // of every open object; arrays have an empty set
  std::string reason_;
};

}  // namespace

Result<json> parse_json(std::string_view text, const std::string& file) {
  num::mend_arithmetic_env();  // the file was read by functions that a library can replace
  const num::ArithmeticEnv env;
  Validator validator;
  if (!json::sax_parse(text.begin(), text.end(), &validator))
    return bad_input(file + ": " + validator.reason());
  json value = json::parse(text.begin(), text.end());
  if (!value.is_object()) return bad_input(file + ": not a JSON object");
  return value;
}

Result<json> optional_json(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return json::object();
  INVAR_TRY(const std::string text, read_file(path));
  return parse_json(text, path);
}

}  // namespace invar::checkpoint
