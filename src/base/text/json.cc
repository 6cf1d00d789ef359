// The strict JSON parser and the writer, see json.h.
// Long because both are one grammar.
#include "base/text/json.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/text/read_float.h"
#include "base/text/utf8.h"

namespace invar::json {
namespace {

bool is_digit(int c) {
  return c >= '0' && c <= '9';
}

bool is_plain(char c) {  // within a string
  return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
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
    if (!at_end()) return unexpected("only white space may follow the value"), error();
    return v;
  }
  const Failure& failure() const { return failure_; }

 private:
  std::string_view s_, name_;
  size_t at_ = 0;
  std::string why_;
  size_t values_ = 0;
  Failure failure_;

  bool at_end() const { return at_ == s_.size(); }
  int peek() const { return at_end() ? -1 : static_cast<unsigned char>(s_[at_]); }
  bool fail(std::string why) { return failure_.byte = at_ + 1, why_ = std::move(why), false; }
  bool fail_before(std::string why) { return fail(std::move(why)), failure_.byte = at_, false; }
  // The token that may not be here is read to its end.
  bool unexpected(std::string why) {
    const size_t begin = at_;
    Value token;
    fail("");
    if (peek() != '{' && peek() != '[' && scalar(token)) failure_.byte = at_;
    return at_ = begin, why_ = std::move(why), false;
  }
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
    if (failure_.why == Failure::count) return bad_input(where + why);
    return {Code::bad_input, where + "not JSON: " + why, {}, ErrorKind::not_json};
  }

  bool value(Value& v, int depth) {
    skip_space();
    if (depth > kMostLevels)
      return failure_.why = Failure::depth,
             fail("nested deeper than " + std::to_string(kMostLevels) + " levels");
    if (++values_ > kMostValues)
      return failure_.why = Failure::count,
             fail("more than " + std::to_string(kMostValues) + " values in one text");
    if (peek() == '{') return v.kind = Value::object, object(v, depth);
    if (peek() == '[') return v.kind = Value::array, array(v, depth);
    const size_t start = at_;
    if (!scalar(v)) return false;
    if (!v.is_number() || !is_digit(peek())) return true;
    return unexpected("a number must not start with 0"), at_ = start, false;
  }

  bool scalar(Value& v) {
    switch (peek()) {
      case '"': return v.kind = Value::string, string(v.text);
      case 't': return v.kind = Value::boolean, word("true", v);
      case 'f': return v.kind = Value::boolean, word("false", v);
      case 'n': return v.kind = Value::null, word("null", v);
      default: return v.kind = Value::number, number(v.text);
    }
  }

  bool word(std::string_view w, Value& v) {
    if (s_.substr(at_, w.size()) == w) return at_ += w.size(), v.text = w, true;
    fail("expected " + std::string(w));
    for (size_t& n = failure_.byte; n <= s_.size() && s_[n - 1] == w[n - 1 - at_];) ++n;
    return false;
  }

  bool number(std::string& out) {  // one that starts with 0 and goes on with digits ends after the 0
    size_t start = at_;
    auto digits = [&] {
      if (!is_digit(peek())) return fail(at_ == start ? "expected a value" : "expected a digit");
      while (is_digit(peek())) ++at_;
      return true;
    };
    eat('-');
    if (!eat('0') && !digits()) return false;
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
        if (low < 0xdc00 || low > 0xdfff) return fail_before("half of a surrogate pair");
        c = 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
      } else if (c >= 0xdc00 && c < 0xe000) {
        return fail_before("half of a surrogate pair");
      }
      return append_utf8(out, c), true;
    }
    size_t i = at_end() ? from.npos : from.find(s_[at_]);
    if (i == from.npos) return fail("unknown escape in a string");
    return ++at_, out += to[i], true;
  }

  bool string(std::string& out) {
    ++at_;
    for (;;) {
      const size_t begin = at_;
      while (at_ < s_.size() && is_plain(s_[at_])) ++at_;
      out.append(s_, begin, at_ - begin);
      if (eat('"')) return true;
      if (at_end()) return fail("a string has no end");
      if (static_cast<unsigned char>(s_[at_]) < 0x20)
        return fail("a control character in a string must be escaped");
      if (eat('\\')) {
        if (!escape(out)) return false;
        continue;
      }
      const Utf8Sequence q = sequence_at(s_, at_);
      if (q.kind != Utf8Sequence::well) {
        const auto lead = static_cast<unsigned char>(s_[at_]);
        fail("invalid UTF-8");
        if (lead >= 0xc2 && lead <= 0xf4) failure_.byte += q.length;  // it is a later byte that is wrong
        return false;
      }
      out.append(s_, at_, q.length), at_ += q.length;
    }
  }

  bool array(Value& v, int depth) {
    ++at_, skip_space();
    if (eat(']')) return true;
    do {
      if (!value(v.items.emplace_back(), depth + 1)) return false;
      skip_space();
    } while (eat(','));
    return eat(']') || unexpected("expected ',' or ']'");
  }

  bool object(Value& v, int depth) {
    ++at_, skip_space();
    if (eat('}')) return true;
    do {
      skip_space();
      auto& [key, member] = v.members.emplace_back();
      if (peek() != '"') return unexpected("expected a member's name in quotes");
      if (!string(key)) return false;
      skip_space();
      if (!eat(':')) return unexpected("expected ':'");
      if (!value(member, depth + 1)) return false;
      skip_space();
    } while (eat(','));
    return eat('}') || unexpected("expected ',' or '}'");
  }
};

}  // namespace

Value::Value() = default;
Value::Value(Kind k) : kind(k) {}
Value::Value(std::string s) : kind(string), text(std::move(s)) {}
Value::Value(std::initializer_list<Member> m) : kind(object), members(m) {}
Value::Value(std::vector<Value> v) : kind(array), items(std::move(v)) {}
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

bool Value::is_integer() const {
  int64_t value;
  const char* end = text.data() + text.size();
  const auto [stop, wrong] = std::from_chars(text.data(), end, value);
  return is_unsigned() || (kind == number && wrong == std::errc() && stop == end);
}

bool Value::is_unsigned() const {
  uint64_t value;
  const char* end = text.data() + text.size();
  const auto [stop, wrong] = std::from_chars(text.data(), end, value);
  return kind == number && wrong == std::errc() && stop == end;
}

int64_t Value::to_int64() const {
  int64_t value = 0;
  uint64_t large = 0;
  if (kind != number) return 0;
  const char *begin = text.data(), *end = begin + text.size();
  if (std::from_chars(begin, end, value).ec == std::errc()) return value;
  std::from_chars(begin, end, large);
  return static_cast<int64_t>(large);
}

double Value::to_double() const {
  if (kind != number) return 0;
  double value = 0;
  const auto [stop, wrong] = read_float(text.data(), text.data() + text.size(), value);
  if (wrong == std::errc()) return value;
  // The exponent of the first digit that is not 0 tells what is too large from what vanishes.
  int64_t written = 0;
  const size_t e = std::min(text.find_first_of("eE"), text.size()), point = std::min(text.find('.'), e);
  const size_t first = std::min(text.find_first_of("123456789"), e);
  const char *exponent = text.data() + std::min(e + 1, text.size()), *end = text.data() + text.size();
  const bool down = exponent != end && *exponent == '-';
  if (exponent != end && *exponent == '+') ++exponent;
  if (std::from_chars(exponent, end, written).ec == std::errc::result_out_of_range)
    written = down ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int32_t>::max();
  const double sign = text[0] == '-' ? -1 : 1;
  const bool large = static_cast<int64_t>(point) - static_cast<int64_t>(first) + written > 0;
  return sign * (first < e && large ? std::numeric_limits<double>::infinity() : 0);
}

size_t Value::size() const {
  return kind == object ? members.size() : items.size();
}

const Value* Value::find(std::string_view name) const {
  const auto at = std::ranges::find(members, name, &Member::first);
  return at == members.end() ? nullptr : &at->second;
}

Value* Value::find(std::string_view name) {
  return const_cast<Value*>(std::as_const(*this).find(name));
}

const Value& Value::get(std::string_view name) const {
  static const Value none;
  const Value* found = find(name);
  return found ? *found : none;
}

Value& Value::operator[](std::string_view name) {
  kind = object;
  if (Value* found = find(name)) return *found;
  return members.emplace_back(std::string(name)).second;
}

void Value::erase(std::string_view name) {
  std::erase_if(members, [&](const Member& m) { return m.first == name; });
}

Value& Value::update(const Value& object) {
  for (const Member& m : object.members) (*this)[m.first] = m.second;
  return *this;
}

Value& Value::add(Value item) {
  kind = array;
  return items.emplace_back(std::move(item));
}

bool Value::equal(const Value& a, const Value& b) {
  if (a.kind != b.kind || a.size() != b.size()) return false;
  switch (a.kind) {
    case array: return a.items == b.items;
    case object:
      return std::ranges::all_of(a.members, [&](const Member& m) {
        const Value* other = b.find(m.first);
        return other && m.second == *other;
      });
    case number:
      if (!a.is_integer() || !b.is_integer()) return a.to_double() == b.to_double();
      return a.to_int64() == b.to_int64() && (a.to_int64() == 0 || (a.text[0] == '-') == (b.text[0] == '-'));
    case null: return true;
    default: return a.text == b.text;
  }
}

std::string spelled(int64_t value) {
  return std::to_string(value);
}

std::string spelled(uint64_t value) {
  return std::to_string(value);
}

std::string spelled(double value) {
  char text[64];
  const RoundsToNearest nearest;
  const char* end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
  std::string out = value < 0 || text[0] == '-' ? "-" : "";
  std::string_view rest(text + out.size(), end);
  const size_t e = rest.find('e');
  int exponent = 0;  // of the first digit
  std::from_chars(rest.data() + e + 1 + (rest[e + 1] == '+'), end, exponent);
  std::string digits(1, rest[0]);
  if (e > 2) digits += rest.substr(2, e - 2);
  const int count = static_cast<int>(digits.size()), point = exponent + 1;  // digits before the point
  if (digits == "0") return out + "0.0";
  if (point > 0 && point <= 15) {
    if (count <= point) return out + digits + std::string(point - count, '0') + ".0";
    return out + digits.substr(0, point) + "." + digits.substr(point);
  }
  if (point > -4 && point <= 0) return out + "0." + std::string(-point, '0') + digits;
  out += digits.substr(0, 1) + (count > 1 ? "." + digits.substr(1) : "") + (exponent < 0 ? "e-" : "e+");
  const std::string power = std::to_string(std::abs(exponent));
  return out + (power.size() < 2 ? "0" : "") + power;
}

bool normalize(Value& v, Order order, bool spell) {
  if (v.is_number() && !v.is_integer()) {
    const double value = v.to_double();
    if (value - value != 0) return false;
    if (spell) v.text = spelled(value);
  } else if (spell && v.is_number() && v.text == "-0") {
    v.text = "0";
  }
  for (Value& item : v.items)
    if (!normalize(item, order, spell)) return false;
  for (Member& m : v.members)
    if (!normalize(m.second, order, spell)) return false;
  if (v.members.size() < 2) return true;
  // The last value of equal names stays, at the place of the first in the text.
  std::vector<Member*> all;
  all.reserve(v.members.size());
  for (Member& m : v.members) all.push_back(&m);
  std::ranges::stable_sort(all, {}, [](const Member* m) -> const std::string& { return m->first; });
  size_t kept = 0;
  for (Member* m : all) {
    if (kept > 0 && all[kept - 1]->first == m->first)
      all[kept - 1]->second = std::move(m->second);
    else
      all[kept++] = m;
  }
  all.resize(kept);
  if (order == Order::as_written) std::ranges::sort(all);
  std::vector<Member> members;
  members.reserve(kept);
  for (Member* m : all) members.push_back(std::move(*m));
  v.members = std::move(members);
  return true;
}

const std::string* repeated_name(const Value& v) {
  std::vector<const std::string*> names;
  names.reserve(v.members.size());
  for (const Member& m : v.members) names.push_back(&m.first);
  std::ranges::stable_sort(names, [](const std::string* a, const std::string* b) { return *a < *b; });
  const std::string* first = nullptr;  // in the order of the text
  for (size_t i = 1; i < names.size(); ++i)
    if (*names[i] == *names[i - 1] && (!first || names[i] < first)) first = names[i];
  if (first) return first;
  for (const Value& item : v.items)
    if (const std::string* name = repeated_name(item)) return name;
  for (const Member& m : v.members)
    if (const std::string* name = repeated_name(m.second)) return name;
  return nullptr;
}

Value sorted(Value v) {
  for (Value& item : v.items) item = sorted(std::move(item));
  for (Member& m : v.members) m.second = sorted(std::move(m.second));
  std::ranges::stable_sort(v.members, {}, &Member::first);
  return v;
}

Result<Value> read(std::string_view text, std::string_view name, Order order) {
  INVAR_TRY(Value v, parse(text.substr(mark_length(text)), name));
  if (!normalize(v, order)) return bad_input(std::string(name) + ": not JSON: a number is out of range");
  return v;
}

Value read_or_null(std::string_view text, Order order) {
  auto v = read(text, "", order);
  return v ? *std::move(v) : Value();
}

namespace {

std::string escaped_ascii(std::string_view utf8) {
  std::string out;
  const auto unit = [&](uint32_t c) {
    out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out += "0123456789abcdef"[c >> shift & 15];
  };
  for (size_t at = 0; at < utf8.size();) {
    const uint32_t c = decode_utf8(utf8, at);
    if (c < 0x7f)
      out += static_cast<char>(c);
    else if (c < 0x10000)
      unit(c);
    else
      unit(0xd7c0 + (c >> 10)), unit(0xdc00 + (c & 0x3ff));
  }
  return out;
}

std::string quote_lossy(std::string_view s) {
  std::string valid;
  append_lossy(valid, s, /*more_follow=*/false);
  return quote(valid);
}

std::string quote_ascii(std::string_view s) {
  return escaped_ascii(quote_lossy(s));
}

struct Writer {
  int indent;
  std::string (*string)(std::string_view);
  std::string out = {};

  void line(int level) {
    if (indent >= 0) out.append(1, '\n').append(static_cast<size_t>(indent * level), ' ');
  }
  void write(const Value& v, int level) {
    if (v.is_null()) return void(out += "null");
    if (v.is_string()) return void(out += string(v.text));
    if (!v.is_structured()) return void(out += v.text);
    out += v.is_array() ? '[' : '{';
    for (size_t i = 0; i < v.size(); ++i) {
      if (i > 0) out += ',';
      line(level + 1);
      if (v.is_object()) out += string(v.members[i].first) + (indent < 0 ? ":" : ": ");
      write(v.is_array() ? v.items[i] : v.members[i].second, level + 1);
    }
    if (!v.empty()) line(level);
    out += v.is_array() ? ']' : '}';
  }
};

std::string written(const Value& v, Writer writer) {
  writer.write(v, 0);
  return std::move(writer.out);
}

}  // namespace

std::string dump(const Value& v, Form form) {
  return written(v, {form.indent, form.ascii ? quote_ascii : quote_lossy});
}

std::string compact(const Value& v) {
  return written(v, {-1, quote});
}

std::string brief(std::string_view s) {
  if (s.size() <= 100) return std::string(s);
  size_t end = 0;
  for (size_t n; end < 60; end += n ? n : 1) n = utf8_length(s.substr(end));
  return std::string(s.substr(0, end)) + "...";
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

Result<Value> parse(std::string_view text, std::string_view name, Failure* failure) {
  Reader reader(text, name);
  auto v = reader.document();
  if (failure) *failure = reader.failure();
  return v;
}

}  // namespace invar::json
