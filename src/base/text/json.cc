// The strict JSON parser, see json.h.
#include "base/text/json.h"

#include <cstdint>

#include "base/text/utf8.h"

namespace invar::json {
namespace {

constexpr int kMaxDepth = 32;

bool is_digit(int c) {
  return c >= '0' && c <= '9';
}

// The length of the well-formed UTF-8 sequence at the start of s, or 0.
size_t utf8_length(std::string_view s) {
  if (s.empty()) return 0;
  const Utf8Sequence q = sequence_at(s, 0);
  return q.kind == Utf8Sequence::well ? q.length : 0;
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view name) : s_(text), name_(name) {}

  Result<Value> document() {
    Value v;
    if (!value(v, 0)) return error();
    skip_space();
    if (!at_end()) return fail("only white space may follow the value"), error();
    return v;
  }

 private:
  std::string_view s_, name_;
  size_t at_ = 0;
  std::string why_;
  size_t values_ = 0;
  bool too_many_ = false;

  bool at_end() const { return at_ == s_.size(); }
  int peek() const { return at_end() ? -1 : static_cast<unsigned char>(s_[at_]); }
  bool fail(std::string why) { return why_ = std::move(why), false; }
  bool eat(char c) { return peek() == c ? ++at_, true : false; }
  void skip_space() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r') ++at_;
  }

  Error error() const {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at_; ++i) s_[i] == '\n' ? (++line, column = 1) : ++column;
    const std::string where =
        std::string(name_) + ":" + std::to_string(line) + ":" + std::to_string(column) + ": ";
    const std::string why = (at_end() ? "the text ends here; " : "") + why_;
    if (too_many_) return bad_input(where + why);
    return {Code::bad_input, where + "not JSON: " + why, {}, ErrorKind::not_json};
  }

  bool value(Value& v, int depth) {
    skip_space();
    if (depth > kMaxDepth) return fail("nested deeper than 32 levels");
    if (++values_ > kMostValues)
      return too_many_ = true, fail("more than " + std::to_string(kMostValues) + " values in one text");
    switch (peek()) {
      case '{': return v.kind = Value::object, object(v, depth);
      case '[': return v.kind = Value::array, array(v, depth);
      case '"': return v.kind = Value::string, string(v.text);
      case 't': return v.kind = Value::boolean, word("true", v);
      case 'f': return v.kind = Value::boolean, word("false", v);
      case 'n': return v.kind = Value::null, word("null", v);
      default: return v.kind = Value::number, number(v.text);
    }
  }

  bool word(std::string_view w, Value& v) {
    if (s_.substr(at_, w.size()) != w) return fail("expected " + std::string(w));
    at_ += w.size(), v.text = w;
    return true;
  }

  bool number(std::string& out) {
    size_t start = at_;
    auto digits = [&] {
      if (!is_digit(peek())) return fail(at_ == start ? "expected a value" : "expected a digit");
      while (is_digit(peek())) ++at_;
      return true;
    };
    bool sign = eat('-'), zero = peek() == '0';
    if (!digits()) return false;
    if (zero && at_ > start + sign + 1) return at_ = start, fail("a number must not start with 0");
    if (eat('.') && !digits()) return false;
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (!eat('+')) eat('-');
      if (!digits()) return false;
    }
    out = s_.substr(start, at_ - start);
    return true;
  }

  bool hex4(uint32_t& c) {
    c = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      int d = peek(), v = is_digit(d)            ? d - '0'
                          : d >= 'a' && d <= 'f' ? d - 'a' + 10
                          : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                                 : -1;
      if (v < 0) return fail("expected four hexadecimal digits after \\u");
      c = c << 4 | static_cast<uint32_t>(v);
    }
    return true;
  }

  bool escape(std::string& out) {
    constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
    if (eat('u')) {
      uint32_t c, low;
      if (!hex4(c)) return false;
      if (c >= 0xd800 && c < 0xdc00) {
        if (!eat('\\') || !eat('u')) return fail("half of a surrogate pair");
        if (!hex4(low)) return false;
        if (low < 0xdc00 || low > 0xdfff) return fail("half of a surrogate pair");
        c = 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
      } else if (c >= 0xdc00 && c < 0xe000) {
        return fail("half of a surrogate pair");
      }
      return append_utf8(out, c), true;
    }
    size_t i = at_end() ? from.npos : from.find(s_[at_]);
    if (i == from.npos) return fail("unknown escape in a string");
    return ++at_, out += to[i], true;
  }

  bool string(std::string& out) {
    ++at_;
    while (!eat('"')) {
      int c = peek();
      if (c < 0) return fail("a string has no end");
      if (c < 0x20) return fail("a control character in a string must be escaped");
      if (eat('\\')) {
        if (!escape(out)) return false;
        continue;
      }
      size_t n = utf8_length(s_.substr(at_));
      if (n == 0) return fail("invalid UTF-8");
      out += s_.substr(at_, n), at_ += n;
    }
    return true;
  }

  bool array(Value& v, int depth) {
    ++at_, skip_space();
    if (eat(']')) return true;
    do {
      if (!value(v.items.emplace_back(), depth + 1)) return false;
      skip_space();
    } while (eat(','));
    return eat(']') || fail("expected ',' or ']'");
  }

  bool object(Value& v, int depth) {
    ++at_, skip_space();
    if (eat('}')) return true;
    do {
      skip_space();
      auto& [key, member] = v.members.emplace_back();
      if (peek() != '"') return fail("expected a member's name in quotes");
      if (!string(key)) return false;
      skip_space();
      if (!eat(':')) return fail("expected ':'");
      if (!value(member, depth + 1)) return false;
      skip_space();
    } while (eat(','));
    return eat('}') || fail("expected ',' or '}'");
  }
};

}  // namespace

std::string brief(std::string_view s) {
  if (s.size() <= 100) return std::string(s);
  size_t end = 0;
  for (size_t n; end < 60; end += n ? n : 1) n = utf8_length(s.substr(end));
  return std::string(s.substr(0, end)) + "...";
}

std::string compact(const Value& v) {
  std::string out;
  const char* between = "";
  switch (v.kind) {
    case Value::null: return "null";
    case Value::string: return quote(v.text);
    case Value::array:
      for (const Value& item : v.items) out.append(std::exchange(between, ",")).append(compact(item));
      return "[" + out + "]";
    case Value::object:
      for (const auto& [key, item] : v.members)
        out.append(std::exchange(between, ",")).append(quote(key)).append(":").append(compact(item));
      return "{" + out + "}";
    default: return v.text;
  }
}

std::string quote(std::string_view s) {
  constexpr std::string_view escaped = "\"\\\b\f\n\r\t", letter = "\"\\bfnrt", digits = "0123456789abcdef";
  std::string out = "\"";
  while (!s.empty()) {
    size_t n = utf8_length(s), i = escaped.find(s[0]);
    if (n == 0)
      out += "\xef\xbf\xbd", n = 1;
    else if (i != escaped.npos)
      out += '\\', out += letter[i];
    else if (static_cast<unsigned char>(s[0]) < 0x20)
      out += "\\u00", out += digits[s[0] >> 4], out += digits[s[0] & 15];
    else
      out += s.substr(0, n);
    s.remove_prefix(n);
  }
  return out += '"';
}

Result<Value> parse(std::string_view text, std::string_view name) {
  return Reader(text, name).document();
}

}  // namespace invar::json
