#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text/read_float.h"
#include "base/text/utf8.h"
#include "prompt/jinja/syntax/syntax.h"
#include "prompt/jinja/value/python_text.h"

namespace invar::prompt::jinja {
namespace {

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80);
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Every line end is a line feed, and one at the end goes.
std::string normalized(std::string_view source) {
  std::string out;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    out += source[i] == '\r' ? '\n' : source[i];
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalized(source)) {}
  Result<std::vector<Token>> run();

 private:
  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool begins(std::string_view s) const { return rest().starts_with(s); }
  Error error(const std::string& why) const {
    return bad_input("line " + std::to_string(line_) + ": " + why);
  }
  void advance(size_t bytes) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<int64_t>(at_),
                                         source_.begin() + static_cast<int64_t>(at_ + bytes), '\n'));
    at_ += bytes;
    line_starts_ = at_ > 0 && source_[at_ - 1] == '\n';
  }
  void skip_space() {
    while (at_ < source_.size()) {
      size_t end = at_;
      if (!is_space(decode_utf8(source_, end))) return;
      advance(end - at_);
    }
  }
  void add(Token::Kind kind, std::string text, Value value = {}) {
    tokens_.push_back({kind, std::move(text), line_, std::move(value)});
  }
  void add_data(std::string_view data, std::string_view tag, char sign);
  bool end_of_tag(std::string_view mark, bool trims);
  std::optional<size_t> raw_begin() const;
  Status comment();
  Status raw();
  Status inside(bool block);
  Status token();
  Status string();
  Status number();

  const std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;  // what was read last ends with a line feed
  std::vector<Token> tokens_;
  std::string open_;  // brackets
};

// The text in front of a tag whose begin has this sign: '-', '+', or another character.
void Lexer::add_data(std::string_view data, std::string_view tag, char sign) {
  std::string_view kept = data;
  if (sign == '-') {
    kept = kept.substr(0, strip(data, std::nullopt, Side::right).size());
  } else if (sign != '+' && tag != "{{") {
    const size_t line = data.rfind('\n') + 1;
    if ((line > 0 || line_starts_) && strip(data.substr(line), std::nullopt).empty())
      kept = data.substr(0, line);
  }
  if (!kept.empty()) add(Token::data, std::string(kept));
  advance(data.size());
}

// -%} eats the white space behind it, %} with trim_blocks a line feed.
bool Lexer::end_of_tag(std::string_view mark, bool trims) {
  const bool minus = begins("-") && rest().substr(1).starts_with(mark);
  const bool plus = trims && begins("+") && rest().substr(1).starts_with(mark);
  if (!minus && !plus && !begins(mark)) return false;
  advance(mark.size() + (minus || plus));
  if (minus)
    skip_space();
  else if (!plus && trims && begins("\n"))
    advance(1);
  return true;
}

Status Lexer::comment() {
  const size_t end = source_.find("#}", at_ + 2);
  if (end == source_.npos) return error("the comment has no end");
  const size_t sign = end > at_ + 2 && (source_[end - 1] == '-' || source_[end - 1] == '+');
  advance(end - sign - at_);
  end_of_tag("#}", true);
  return {};
}

// The length of {% raw %} at this place.
std::optional<size_t> Lexer::raw_begin() const {
  size_t at = at_ + 2;
  const auto spaces = [&] {
    while (at < source_.size()) {
      size_t end = at;
      if (!is_space(decode_utf8(source_, end))) break;
      at = end;
    }
  };
  const auto take = [&](std::string_view s) {
    const bool there = std::string_view(source_).substr(at).starts_with(s);
    if (there) at += s.size();
    return there;
  };
  if (!take("-")) take("+");
  spaces();
  if (!take("raw")) return std::nullopt;
  spaces();
  if (take("-%}")) {
    spaces();
    return at - at_;
  }
  return take("%}") ? std::optional(at - at_) : std::nullopt;
}

Status Lexer::raw() {
  for (size_t tag = source_.find("{%", at_); tag != source_.npos; tag = source_.find("{%", tag + 2)) {
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
    size_t name = tag + 2 + (sign == '-' || sign == '+');
    while (name < source_.size() && is_space(static_cast<uint8_t>(source_[name]))) ++name;
    if (!std::string_view(source_).substr(name).starts_with("endraw")) continue;
    size_t end = name + 6;
    while (end < source_.size() && is_space(static_cast<uint8_t>(source_[end]))) ++end;
    const std::string_view after = std::string_view(source_).substr(end);
    if (!after.starts_with("%}") && !after.starts_with("-%}") && !after.starts_with("+%}")) continue;
    add_data(std::string_view(source_).substr(at_, tag - at_), "{%", sign);
    advance(end - at_);
    end_of_tag("%}", true);
    return {};
  }
  return error("{% raw %} has no {% endraw %}");
}

Status Lexer::string() {
  const char quote = source_[at_];
  const int line = line_;
  std::string value;
  size_t at = at_ + 1;
  for (; at < source_.size() && source_[at] != quote; ++at) {
    if (source_[at] != '\\' || at + 1 == source_.size()) {
      value += source_[at];
      continue;
    }
    const char c = source_[++at];
    constexpr std::string_view from = "abfnrtv\\'\"", to = "\a\b\f\n\r\t\v\\'\"";
    if (const size_t i = from.find(c); i != from.npos) {
      value += to[i];
    } else if (c == '\n') {  // a continued line
    } else if (c >= '0' && c <= '7') {
      uint32_t code = 0;
      size_t digits = 0;
      while (digits < 3 && at + digits < source_.size() && source_[at + digits] >= '0' &&
             source_[at + digits] <= '7')
        code = 8 * code + static_cast<uint32_t>(source_[at + digits++] - '0');
      append_utf8(value, code);
      at += digits - 1;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      uint32_t code = 0;
      const char* begin = source_.data() + at + 1;
      const char* end = begin + std::min(digits, source_.size() - at - 1);
      const auto [stop, wrong] = std::from_chars(begin, end, code, 16);
      if (wrong != std::errc() || stop != begin + digits || code > 0x10FFFF ||
          (code >= 0xD800 && code < 0xE000))
        return error("a \\" + std::string(1, c) + " of a string needs " + std::to_string(digits) +
                     " hexadecimal digits of a character");
      append_utf8(value, code);
      at += digits;
    } else if (c == 'N') {
      return not_covered("line " + std::to_string(line) + ": \\N{...} in a string");
    } else {
      value.append("\\") += c;
    }
  }
  if (at == source_.size())
    return error("unexpected char " + std::string(1, quote) + ": the string has no end");
  add(Token::string, std::move(value));
  advance(at + 1 - at_);
  return {};
}

Status Lexer::number() {
  std::string digits;
  size_t at = at_;
  const auto take = [&](auto&& belongs) {
    while (at < source_.size() && (belongs(source_[at]) || (source_[at] == '_' && at + 1 < source_.size() &&
                                                            belongs(source_[at + 1]))))
      if (source_[at++] != '_') digits += source_[at - 1];
  };
  const auto at_digit = [&](size_t i) { return i < source_.size() && is_digit(source_[i]); };
  const char kind =
      begins("0") && source_.size() > at_ + 1 ? static_cast<char>(source_[at_ + 1] | 0x20) : ' ';
  const int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
  bool fraction = false;
  if (base != 10) {
    at += 2;
    take([](char c) { return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); });
  } else {
    take(is_digit);
    if (at < source_.size() && source_[at] == '.' && at_digit(at + 1)) {
      fraction = true, digits += '.', ++at;
      take(is_digit);
    }
    if (at < source_.size() && (source_[at] | 0x20) == 'e') {
      const size_t sign = at + 1 < source_.size() && (source_[at + 1] == '+' || source_[at + 1] == '-');
      if (at_digit(at + 1 + sign)) {
        fraction = true, digits += 'e';
        if (sign) digits += source_[at + 1];
        at += 1 + sign;
        take(is_digit);
      }
    }
    if (!fraction && digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of('0') != digits.npos)
      return error("a number begins with 0");
  }
  const char *begin = digits.data(), *end = begin + digits.size();
  int64_t whole = 0;
  double real = 0;
  const auto [stop, wrong] =
      fraction ? read_float(begin, end, real) : std::from_chars(begin, end, whole, base);
  if (wrong == std::errc::result_out_of_range)
    return not_covered("line " + std::to_string(line_) + ": the number " + digits +
                       " needs more than 64 bits");
  if (wrong != std::errc() || stop != end)
    return error("not a number: " + std::string(rest().substr(0, at - at_)));
  add(Token::number, digits, fraction ? Value{real} : Value{whole});
  advance(at - at_);
  return {};
}

Status Lexer::token() {
  const char c = source_[at_];
  if (is_digit(c)) return number();
  if (is_name(c)) {
    size_t end = at_;
    while (end < source_.size() && is_name(source_[end])) ++end;
    add(Token::name, source_.substr(at_, end - at_));
    advance(end - at_);
    return {};
  }
  if (c == '"' || c == '\'') return string();
  constexpr std::string_view operators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                            "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                            ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
  for (const std::string_view op : operators) {
    if (!begins(op)) continue;
    if (c == '{' || c == '(' || c == '[') open_ += c == '{' ? '}' : c == '(' ? ')' : ']';
    if (c == '}' || c == ')' || c == ']') {
      if (open_.empty()) return error("unexpected '" + std::string(1, c) + "'");
      if (open_.back() != c)
        return error("unexpected '" + std::string(1, c) + "', expected '" + std::string(1, open_.back()) +
                     "'");
      open_.pop_back();
    }
    add(Token::op, std::string(op));
    advance(op.size());
    return {};
  }
  return error("unexpected char '" + std::string(1, c) + "'");
}

// Reads what follows {% or {{, up to its end.
Status Lexer::inside(bool block) {
  for (;;) {
    skip_space();
    if (at_ == source_.size()) return error(std::string("the tag has no end: ") + (block ? "%}" : "}}"));
    if (open_.empty() && end_of_tag(block ? "%}" : "}}", block)) {
      add(block ? Token::block_end : Token::variable_end, "");
      return {};
    }
    INVAR_CHECK_OK(token());
  }
}

Result<std::vector<Token>> Lexer::run() {
  while (at_ < source_.size()) {
    size_t tag = at_;
    constexpr std::string_view kinds = "%{#";
    do tag = source_.find('{', tag == at_ ? at_ : tag);
    while (tag != source_.npos && (tag + 1 == source_.size() || kinds.find(source_[tag + 1]) == kinds.npos) &&
           ++tag < source_.size());
    if (tag >= source_.size()) {  // npos, too
      add(Token::data, source_.substr(at_));
      advance(source_.size() - at_);
      break;
    }
    const std::string mark = source_.substr(tag, 2);
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
    add_data(std::string_view(source_).substr(at_, tag - at_), mark, sign);
    if (mark == "{#") {
      INVAR_CHECK_OK(comment());
      continue;
    }
    if (mark == "{%") {
      if (const auto length = raw_begin()) {
        advance(*length);
        INVAR_CHECK_OK(raw());
        continue;
      }
    }
    add(mark == "{%" ? Token::block_begin : Token::variable_begin, "");
    advance(2 + (sign == '-' || sign == '+'));
    INVAR_CHECK_OK(inside(mark == "{%"));
  }
  add(Token::end, "");
  return std::move(tokens_);
}

}  // namespace

Result<std::vector<Token>> lex(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace invar::prompt::jinja
