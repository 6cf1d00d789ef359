// Reading the members of a JSON text, with the place of the first thing that is wrong.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/hash/sha256.h"
#include "base/status.h"
#include "base/text/json.h"

namespace invar::dispute {

// A value of a JSON text. What is asked of it and is not there becomes the error of the file;
// afterwards everything reads as empty.
class Place {
 public:
  struct File {
    std::string name;
    std::optional<Error> error;  // the first
  };
  Place(File& file, const json::Value* value, std::string path)
      : file_(&file), value_(value), path_(std::move(path)) {}

  void wrong(const std::string& what) const;
  // It must be an object with exactly these members, each once.
  void members(std::initializer_list<std::string_view> names) const;
  Place operator[](std::string_view member) const;
  size_t size() const;  // of a list
  Place operator[](size_t item) const;

  std::string text() const;
  int64_t integer(int64_t least, int64_t most = INT64_MAX) const;
  Digest digest() const;
  std::string bytes() const;  // from pairs of hexadecimal digits

 private:
  bool is(json::Value::Kind kind) const;
  File* file_;
  const json::Value* value_;  // null: after an error
  std::string path_;
};

}  // namespace invar::dispute
