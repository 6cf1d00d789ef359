// The lexer of a line of a plan, see cursor.h.
#include "plan/text/cursor.h"

#include "base/text/display.h"

namespace invar::plan {
namespace {

std::string excerpt(std::string_view s) {
  return s.empty() ? "the end of the line" : brief(s);
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string brief(std::string_view s) {
  constexpr size_t kLongest = 32;
  return "'" + printable(s.substr(0, kLongest)) + (s.size() > kLongest ? "...'" : "'");
}

bool Cursor::accept(std::string_view text) {
  if (!ok() || !rest_.starts_with(text)) return false;
  rest_.remove_prefix(text.size());
  return true;
}

void Cursor::expect(std::string_view text) {
  if (ok() && !accept(text)) fail("expected '" + std::string(text) + "' before " + excerpt(rest_));
}

void Cursor::expect_end() {
  if (ok() && !rest_.empty()) fail("unexpected " + excerpt(rest_));
}

std::string Cursor::identifier() {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  size_t n = 0;
  while (n < rest_.size() && (letter(rest_[n]) || (n > 0 && rest_[n] >= '0' && rest_[n] <= '9'))) ++n;
  if (ok() && n == 0) fail("expected a name before " + excerpt(rest_));
  std::string s(rest_.substr(0, n));
  rest_.remove_prefix(n);
  return s;
}

std::string Cursor::string() {
  expect("\"");
  std::string s;
  while (ok()) {
    if (rest_.empty()) {
      fail("string without closing quote");
      break;
    }
    const char c = rest_[0];
    rest_.remove_prefix(1);
    if (c == '"') return s;
    if (c != '\\') {
      s += c;
      continue;
    }
    if (at("\"") || at("\\")) {
      s += rest_[0];
      rest_.remove_prefix(1);
    } else if (rest_.size() >= 3 && rest_[0] == 'x' && hex_value(rest_[1]) >= 0 && hex_value(rest_[2]) >= 0) {
      s += static_cast<char>(hex_value(rest_[1]) * 16 + hex_value(rest_[2]));
      rest_.remove_prefix(3);
    } else {
      fail("unknown escape in a string before " + excerpt(rest_));
    }
  }
  return {};
}

std::string_view Cursor::word() {
  size_t length = 0;
  for (int depth = 0; length < rest_.size(); ++length) {
    const char c = rest_[length];
    if (c == ']' || (c == ',' && depth <= 0)) break;
    depth += (c == '(') - (c == ')');
  }
  const std::string_view s = rest_.substr(0, length);
  rest_.remove_prefix(s.size());
  return s;
}

std::string_view Cursor::until(char stop) {
  const std::string_view s = rest_.substr(0, rest_.find(stop));
  rest_.remove_prefix(s.size());
  return s;
}

template <class T>
T Cursor::number(int base) {
  T v{};
  if (!ok()) return v;
  const auto [end, ec] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), v, base);
  if (ec == std::errc::result_out_of_range) {
    fail("number out of range: " + excerpt(rest_));
    return T{};
  }
  if (ec != std::errc()) {
    fail("expected a number before " + excerpt(rest_));
    return T{};
  }
  rest_.remove_prefix(end - rest_.data());
  return v;
}

int64_t Cursor::integer() {
  return number<int64_t>();
}
uint64_t Cursor::natural() {
  return number<uint64_t>();
}

int Cursor::index(char letter, size_t count) {
  const std::string_view here = rest_;
  expect({&letter, 1});
  const uint64_t i = natural();
  if (ok() && i >= count) fail("there is no such thing (yet): " + excerpt(here));
  return ok() ? static_cast<int>(i) : 0;
}

AttributeValue Cursor::attribute() {
  if (at("\"")) return string();
  if (accept("0x")) {
    const size_t before = rest_.size();
    const uint32_t bits = number<uint32_t>(16);
    if (ok() && before - rest_.size() != 8) fail("a float is 0x and 8 hexadecimal digits");
    return F32Bits{bits};
  }
  if (accept("[")) {
    std::vector<int64_t> list;
    while (ok() && !accept("]")) {
      if (!list.empty()) expect(", ");
      list.push_back(integer());
    }
    return list;
  }
  return integer();
}

}  // namespace invar::plan
