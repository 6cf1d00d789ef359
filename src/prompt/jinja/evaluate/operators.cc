// Arithmetic and comparisons. Floats come from JSON or literals; their operations are single
// roundings of binary64, the same on any machine.
#include <cmath>

#include "prompt/jinja/evaluate/interpreter.h"
#include "prompt/jinja/value/python_text.h"

namespace invar::prompt::jinja {

Error unsupported(const Value& v, const std::string& what) {
  if (const Undefined* u = std::get_if<Undefined>(&v.v))
    return bad_input(u->why ? *u->why : "an undefined value is used");
  return bad_input(what);
}

Result<int64_t> integer_or(const Value* v, int64_t otherwise, const char* parameter) {
  if (!v) return otherwise;
  if (const auto i = v->integer()) return *i;
  return unsupported(*v, std::string(parameter) + " must be an integer, not " + std::string(type_name(*v)));
}

Result<std::string> string_of(const Value& v, const char* what) {
  if (const std::string* s = v.string()) return *s;
  return unsupported(v, std::string(what) + " must be a string, not " + std::string(type_name(v)));
}

namespace {

Error too_large() {
  return not_covered("an integer needs more than 64 bits");
}
bool is_whole(const Value& v) {
  return v.integer().has_value();
}

Result<Value> whole(const std::string& op, int64_t a, int64_t b) {
  int64_t r = 0;
  if (op == "+" || op == "-" || op == "*") {
    const bool overflow = op == "+"   ? __builtin_add_overflow(a, b, &r)
                          : op == "-" ? __builtin_sub_overflow(a, b, &r)
                                      : __builtin_mul_overflow(a, b, &r);
    return overflow ? Result<Value>(too_large()) : Result<Value>(Value{r});
  }
  if (op == "**") {
    if (b < 0) return not_covered("a power with a negative exponent");
    if (a == 0 || a == 1) return Value{b == 0 ? int64_t{1} : a};
    if (a == -1) return Value{b % 2 ? int64_t{-1} : int64_t{1}};
    r = 1;
    for (int64_t i = 0; i < b; ++i)
      if (__builtin_mul_overflow(r, a, &r)) return too_large();
    return Value{r};
  }
  if (b == 0) return bad_input(op == "/" ? "division by zero" : "integer division or modulo by zero");
  if (op == "/") {
    constexpr int64_t exact = int64_t{1} << 53;
    if (a > exact || a < -exact || b > exact || b < -exact) return too_large();
    return Value{static_cast<double>(a) / static_cast<double>(b)};
  }
  if (b == -1) return op == "%" ? Result<Value>(Value{int64_t{0}}) : whole("-", 0, a);
  const int64_t rest = a % b;
  const bool floors = rest != 0 && (rest < 0) != (b < 0);
  return Value{op == "%" ? rest + (floors ? b : 0) : a / b - floors};
}

Result<Value> real(const std::string& op, double a, double b) {
  if (op == "**" || op == "//") return not_covered(op + " of floats");
  if (b == 0 && (op == "/" || op == "%")) return bad_input("float division by zero");
  double r = op == "+" ? a + b : op == "-" ? a - b : op == "*" ? a * b : op == "/" ? a / b : std::fmod(a, b);
  if (op == "%" && r != 0 && (r < 0) != (b < 0)) r += b;
  if (op == "%" && r == 0) r = std::copysign(0.0, b);
  if (!std::isfinite(r)) return not_covered("a float is too large");
  return Value{r};
}

Result<Value> repeated(Interpreter& in, const Value& v, int64_t times) {
  const Sequence* s = v.sequence();
  const size_t size = s ? s->elements.size() : v.string()->size(),
               n = times > 0 ? static_cast<size_t>(times) : 0;
  if (size && n > (size_t{64} << 20) / size) return not_covered("a repetition makes more than 64 MiB");
  INVAR_CHECK_OK(in.spend(s ? n * size : n + n * size / kBytesCopied));
  std::vector<Value> elements;
  std::string joined;
  for (size_t i = 0; i < n; ++i) {
    if (s)
      elements.insert(elements.end(), s->elements.begin(), s->elements.end());
    else
      joined += *v.string();
  }
  return s ? sequence(s->kind, std::move(elements)) : text(std::move(joined));
}

}  // namespace

Result<Value> unary(const std::string& op, const Value& v) {
  if (op == "not") return Value{!truth(v)};
  if (const auto i = v.integer()) return op == "-" ? whole("-", 0, *i) : Result<Value>(Value{*i});
  if (const auto d = v.number()) return Value{op == "-" ? -*d : *d};
  return unsupported(v, "bad operand type for unary " + op + ": '" + std::string(type_name(v)) + "'");
}

Result<Value> binary(Interpreter& in, const std::string& op, const Value& a, const Value& b) {
  if (a.undefined()) return unsupported(a, "");
  if (op == "+" && (a.markup() || b.markup()) && a.string() && b.string()) {  // the other one is escaped
    const auto safe = [](const Value& v) { return v.markup() ? *v.string() : escape_html(*v.string()); };
    INVAR_CHECK_OK(in.spend((a.string()->size() + b.string()->size()) / kBytesRead));
    return text(safe(a) + safe(b), /*markup=*/true);
  }
  if (a.markup() || b.markup()) return not_covered("the operator " + op + " of a safe string");
  if (op == "%" && a.string()) return format_percent(*a.string(), b);
  if (b.undefined()) return unsupported(b, "");
  if (is_whole(a) && is_whole(b)) return whole(op, *a.integer(), *b.integer());
  if (a.number() && b.number()) return real(op, *a.number(), *b.number());
  if (op == "+" && a.string() && b.string()) return text(*a.string() + *b.string());
  const Sequence *s = a.sequence(), *t = b.sequence();
  const auto joins = [](const Sequence* q) {
    return q && (q->kind == Sequence::list || q->kind == Sequence::tuple);
  };
  if (op == "+" && joins(s) && joins(t) && s->kind == t->kind) {
    INVAR_CHECK_OK(in.spend(s->elements.size() + t->elements.size()));
    std::vector<Value> elements = s->elements;
    elements.insert(elements.end(), t->elements.begin(), t->elements.end());
    return sequence(s->kind, std::move(elements));
  }
  if (op == "*" && (a.string() || joins(s)) && is_whole(b)) return repeated(in, a, *b.integer());
  if (op == "*" && (b.string() || joins(t)) && is_whole(a)) return repeated(in, b, *a.integer());
  if (op == "+" && a.string())
    return bad_input("can only concatenate str (not \"" + std::string(type_name(b)) + "\") to str");
  return bad_input("unsupported operand type(s) for " + op + ": '" + std::string(type_name(a)) + "' and '" +
                   std::string(type_name(b)) + "'");
}

Result<bool> compare(const std::string& op, const Value& a, const Value& b) {
  if (op == "==") return equal(a, b);
  if (op == "!=") return !equal(a, b);
  if (op == "in" || op == "not in") {
    const bool wanted = op == "in";
    if (const std::string* s = b.string()) {
      if (!a.string())
        return unsupported(a,
                           "'in <string>' requires string as left operand, not " + std::string(type_name(a)));
      return (find_text(*s, *a.string()) != s->npos) == wanted;
    }
    if (b.dict()) {
      if (!hashable(a)) return bad_input("unhashable type: '" + std::string(type_name(a)) + "'");
      return (b.dict()->find(a) != nullptr) == wanted;
    }
    if (const Sequence* s = b.sequence()) {
      if (s->kind == Sequence::generator) return not_covered("'in' a generator: write |list");
      for (const Value& v : s->elements)
        if (equal(v, a) || meter().exhausted) return wanted;
      return !wanted;
    }
    if (b.undefined()) return !wanted;
    return bad_input("argument of type '" + std::string(type_name(b)) + "' is not iterable");
  }
  if (a.undefined() || b.undefined()) return unsupported(a.undefined() ? a : b, "");
  const bool swapped = op == ">" || op == "<=", negated = op == "<=" || op == ">=";
  const auto before = swapped ? less(b, a) : less(a, b);
  if (!before)
    return bad_input("'" + op + "' not supported between instances of '" + std::string(type_name(a)) +
                     "' and '" + std::string(type_name(b)) + "'");
  return *before != negated;
}

namespace {

// %s, %r, %d and %i with nothing between.
Result<std::string> converted(char c, const Value& v) {
  if (c == 's') return str(v);
  if (c == 'r') return repr(v);
  if (c != 'd' && c != 'i') return not_covered(std::string("the format %") + c);
  if (const auto i = v.integer()) return std::to_string(*i);
  if (v.number()) return not_covered("the format %d of a float");
  return unsupported(v, "%d format: a real number is required, not " + std::string(type_name(v)));
}

Status append_shown(std::string& out, const std::string& shown) {
  if (out.size() + shown.size() > kLongestText) return too_long("a format");
  charge(1 + shown.size() / kBytesCopied);
  out += shown;
  return {};
}

}  // namespace

Result<Value> format_percent(const std::string& format, const Value& given) {
  const Sequence* s = given.sequence();
  const std::vector<Value> values = s && s->kind == Sequence::tuple ? s->elements : std::vector<Value>{given};
  std::string out;
  size_t used = 0;
  bool named = false;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    if (++i == format.size()) return bad_input("incomplete format");
    if (format[i] == '%') {
      out += '%';
      continue;
    }
    if (format[i] == '(') {
      const size_t end = format.find(')', i);
      if (!given.dict()) return bad_input("format requires a mapping");
      if (end == format.npos || end + 1 == format.size()) return bad_input("incomplete format key");
      const Value* v = given.dict()->find(std::string_view(format).substr(i + 1, end - i - 1));
      if (!v) return bad_input("the format names a key that is not given");
      i = end + 1;
      named = true;
      INVAR_TRY(const std::string shown, converted(format[i], *v));
      INVAR_CHECK_OK(append_shown(out, shown));
      continue;
    }
    if (used == values.size()) return bad_input("not enough arguments for format string");
    INVAR_TRY(const std::string shown, converted(format[i], values[used++]));
    INVAR_CHECK_OK(append_shown(out, shown));
  }
  if (used < values.size() && !named && !given.dict())
    return bad_input("not all arguments converted during string formatting");
  return text(std::move(out));
}

Result<Value> format_braces(const std::string& format, const Arguments& given) {
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    const char c = format[i];
    if ((c == '{' || c == '}') && i + 1 < format.size() && format[i + 1] == c) {
      out += format[i++];
      continue;
    }
    if (c == '}') return bad_input("Single '}' encountered in format string");
    if (c != '{') {
      out += c;
      continue;
    }
    const size_t end = format.find('}', i);
    if (end == format.npos) return bad_input("expected '}' before end of string");
    const std::string field = format.substr(i + 1, end - i - 1);
    if (field.find_first_of(":!.[{") != field.npos) return not_covered("the format {" + field + "}");
    i = end;
    const Value* v = nullptr;
    if (field.empty() || field.find_first_not_of("0123456789") == field.npos) {
      const size_t at = field.empty()      ? next++
                        : field.size() < 9 ? static_cast<size_t>(std::stoi(field))
                                           : SIZE_MAX;
      if (at < given.positional.size()) v = &given.positional[at];
    } else {
      charge(given.named.size());
      for (const auto& [name, value] : given.named)
        if (name == field) v = &value;
    }
    if (!v) return bad_input("format: nothing is given for {" + field + "}");
    INVAR_TRY(const std::string shown, str(*v));
    INVAR_CHECK_OK(append_shown(out, shown));
  }
  return text(std::move(out));
}

}  // namespace invar::prompt::jinja
