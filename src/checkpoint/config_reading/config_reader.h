// Reads typed and range-checked values of one JSON object of a config.json. Keeps the first error
// and which keys were read.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/text/json.h"
#include "onnx/error_text.h"

namespace invar::checkpoint {

class ConfigReader {
 public:
  ConfigReader(const json::Value& object, std::string where) : object_(object), where_(std::move(where)) {}

  // A key that holds null counts as absent, as in transformers. A key and its other spelling
  // (n_embd and hidden_size) are one.
  const json::Value* find(const char* key);
  bool is_null(const char* key) const;  // it is there and holds null

  // A fallback of 0 says that the key is required.
  int64_t size(const char* key, int64_t fallback);
  double positive(const char* key, double fallback);
  double optional(const char* key);  // a positive number; 0: absent
  bool flag(const char* key, bool fallback = false);
  std::string text(const char* key, const char* fallback);

  void refuse(const std::string& what) { fail(not_covered(where_ + ": " + what)); }
  void reject(const std::string& what) { fail(bad_input(where_ + ": " + what)); }
  // Refuses the key by name where its value is another than these, null, false and empty ones.
  void require_neutral(const char* key, const json::Value& neutral = {});
  void fail(Error error) {
    if (status_) status_ = std::move(error);
  }
  const Status& status() const { return status_; }
  bool was_read(const char* key) const { return read_.contains(key); }
  const std::string& where() const { return where_; }

 private:
  const json::Value& object_;
  std::string where_;
  std::set<std::string, std::less<>> read_;
  Status status_;
};

}  // namespace invar::checkpoint
