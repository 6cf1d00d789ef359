#include "dispute/files/place.h"

#include <algorithm>
#include <charconv>

namespace invar::dispute {

void Place::wrong(const std::string& what) const {
  if (!file_->error)
    file_->error = bad_input(file_->name + ": " + (path_.empty() ? "" : path_ + ": ") + what);
}

bool Place::is(json::Value::Kind kind) const {
  if (!value_ || file_->error) return false;
  if (value_->kind == kind) return true;
  wrong("expected " + std::string(json::name_of(kind)) + ", found " +
        std::string(json::name_of(value_->kind)));
  return false;
}

void Place::members(std::initializer_list<std::string_view> names) const {
  if (!is(json::Value::object)) return;
  std::string list;
  for (const std::string_view n : names) list += (list.empty() ? "" : ", ") + std::string(n);
  for (const std::string_view n : names) {
    const auto count = std::count_if(value_->members.begin(), value_->members.end(),
                                     [&](const json::Member& m) { return m.first == n; });
    if (count != 1)
      return wrong(std::string(n) + (count ? " stands there twice" : " is missing") + "; it has " + list);
  }
  for (const json::Member& m : value_->members)
    if (std::find(names.begin(), names.end(), m.first) == names.end())
      return wrong("unknown member " + json::quote(json::brief(m.first)) + "; it has " + list);
}

Place Place::operator[](std::string_view member) const {
  const std::string path = path_ + (path_.empty() ? "" : ".") + std::string(member);
  if (!is(json::Value::object)) return {*file_, nullptr, path};
  for (const json::Member& m : value_->members)
    if (m.first == member) return {*file_, &m.second, path};
  wrong(std::string(member) + " is missing");
  return {*file_, nullptr, path};
}

size_t Place::size() const {
  return is(json::Value::array) ? value_->items.size() : 0;
}

Place Place::operator[](size_t item) const {
  return {*file_, value_ ? &value_->items[item] : nullptr, path_ + "[" + std::to_string(item) + "]"};
}

std::string Place::text() const {
  return is(json::Value::string) ? value_->text : "";
}

int64_t Place::integer(int64_t least, int64_t most) const {
  if (!is(json::Value::number)) return least;
  int64_t n = 0;
  const char* const end = value_->text.data() + value_->text.size();
  const auto [at, error] = std::from_chars(value_->text.data(), end, n);
  if (error == std::errc() && at == end && n >= least && n <= most) return n;
  wrong(json::brief(value_->text) + " is not a whole number from " + std::to_string(least) + " to " +
        std::to_string(most));
  return least;
}

Digest Place::digest() const {
  const std::string digits = text();
  if (const auto d = digest_from_hex(digits)) return *d;
  wrong("expected a digest of 64 lower-case hexadecimal digits, found " + json::quote(json::brief(digits)));
  return {};
}

std::string Place::bytes() const {
  const std::string digits = text();
  auto nibble = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::string bytes(digits.size() / 2, '\0');
  for (size_t i = 0; i < digits.size(); ++i) {
    const int n = nibble(digits[i]);
    if (n < 0 || digits.size() % 2) {
      wrong("expected pairs of lower-case hexadecimal digits, found " +
            (n < 0 ? "another character at digit " + std::to_string(i)
                   : std::to_string(digits.size()) + " digits"));
      return "";
    }
    bytes[i / 2] = static_cast<char>(bytes[i / 2] << 4 | n);
  }
  return bytes;
}

}  // namespace invar::dispute
