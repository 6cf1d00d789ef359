// x|NAME of one value. Those of sequences: sequence_filters.cc.
#include "prompt/jinja/evaluate/filters.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text/read_float.h"
#include "base/text/utf8.h"
#include "prompt/jinja/value/python_text.h"

namespace invar::prompt::jinja {
namespace {

Result<Value> to_string(Interpreter&, const Value& v, const BoundArguments&) {
  if (v.string()) return v;
  INVAR_TRY(std::string s, str(v));
  return text(std::move(s));
}

Result<Value> trim(Interpreter&, const Value& v, const BoundArguments& a) {
  INVAR_TRY(const std::string s, str(v));
  if (!a[0] || a[0]->none()) return text(strip(s, std::nullopt));
  INVAR_TRY(const std::string characters, string_of(*a[0], "the characters of trim"));
  return text(strip(s, characters));
}

template <Case to>
Result<Value> cased(Interpreter&, const Value& v, const BoundArguments&) {
  INVAR_TRY(const std::string s, str(v));
  INVAR_TRY(std::string made, in_case(s, to));
  return text(std::move(made));
}

// Words begin behind white space and -({[<, unlike those of str.title.
Result<Value> title(Interpreter&, const Value& v, const BoundArguments&) {
  INVAR_TRY(const std::string s, str(v));
  const auto separates = [&](size_t at) {
    const uint32_t c = decode_utf8(s, at);
    return is_space(c) ||
           (c < 0x80 && std::string_view("-({[<").find(static_cast<char>(c)) != std::string_view::npos);
  };
  std::string out;
  for (size_t begin = 0, end = 0; begin < s.size(); begin = end) {
    const bool between = separates(begin);
    for (end = begin; end < s.size() && separates(end) == between;) decode_utf8(s, end);
    const std::string_view part = std::string_view(s).substr(begin, end - begin);
    if (!charge(1)) break;
    if (between) {
      out += part;
      continue;
    }
    INVAR_TRY(const std::string word, in_case(part, Case::capitalize));
    out += word;
  }
  return text(std::move(out));
}

Result<Value> replaced(Interpreter& in, const Value& v, const BoundArguments& a) {
  if (!a[0] || !a[1]) return bad_input("replace takes two texts");
  INVAR_TRY(std::string s, str(v));
  Arguments given;
  for (size_t i = 0; i < 2; ++i) {
    INVAR_TRY(std::string part, str(*a[i]));
    given.positional.push_back(text(std::move(part)));
  }
  if (a[2] && !a[2]->none()) given.positional.push_back(*a[2]);
  return call_method(in, text(std::move(s)), "replace", given);
}

Result<Value> otherwise(Interpreter&, const Value& v, const BoundArguments& a) {
  const bool absent = v.undefined() || (a[1] && truth(*a[1]) && !truth(v));
  if (!absent) return v;
  return a[0] ? *a[0] : text("");
}

Result<Value> json_of(Interpreter& in, const Value& v, const BoundArguments& a) {
  JsonStyle style;
  style.ensure_ascii = a[0] && truth(*a[0]);
  style.sort_keys = a[3] && truth(*a[3]);
  if (a[1] && !a[1]->none()) {
    if (const auto n = a[1]->integer()) {
      if (*n > 1000) return not_covered("tojson with an indent above 1000");
      style.indent = std::string(static_cast<size_t>(std::max<int64_t>(*n, 0)), ' ');
    } else {
      INVAR_TRY(style.indent, string_of(*a[1], "the indent of tojson"));
    }
    style.item_separator = ",";
  }
  if (a[2] && !a[2]->none()) {
    INVAR_TRY(const std::vector<Value> two, in.iterate(*a[2]));
    if (two.size() != 2) return bad_input("the separators of tojson are two texts");
    INVAR_TRY(style.item_separator, string_of(two[0], "a separator of tojson"));
    INVAR_TRY(style.key_separator, string_of(two[1], "a separator of tojson"));
  }
  if (v.undefined()) return unsupported(v, "");
  INVAR_TRY(std::string s, to_json(v, style));
  return text(std::move(s));
}

Result<Value> indent(Interpreter& in, const Value& v, const BoundArguments& a) {
  INVAR_TRY(const std::string s, string_of(v, "what is indented"));
  std::string by(4, ' ');
  if (a[0] && a[0]->string()) {
    by = *a[0]->string();
  } else {
    INVAR_TRY(const int64_t width, integer_or(a[0], 4, "width"));
    if (width > 10000) return not_covered("indent by more than 10000");
    by = std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  const bool first = a[1] && truth(*a[1]), blank = a[2] && truth(*a[2]);
  const std::vector<std::string> lines = split_lines(s + "\n", false);
  INVAR_CHECK_OK(in.spend(lines.size() * (1 + by.size() / 64)));
  std::string out = first ? by : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i) out += "\n" + (lines[i].empty() && !blank ? "" : by);
    out += lines[i];
    if (out.size() > kLongestText) return too_long("indent");
  }
  return text(std::move(out));
}

Result<Value> escape(Interpreter&, const Value& v, const BoundArguments&) {
  if (v.markup()) return v;
  INVAR_TRY(const std::string s, str(v));
  return text(escape_html(s), true);
}
Result<Value> safe(Interpreter&, const Value& v, const BoundArguments&) {
  INVAR_TRY(std::string s, str(v));
  return text(std::move(s), true);
}

// Python's int(text) in base 10, and float(text).
std::optional<Value> number_in(const std::string& s, bool fraction) {
  std::string digits = strip(s, std::nullopt);
  const bool plus = digits.starts_with('+');
  if (plus) digits.erase(0, 1);
  if (digits.find_first_not_of(fraction ? "0123456789.eE+-" : "0123456789-") != digits.npos ||
      digits.empty() || (plus && digits[0] == '-'))
    return std::nullopt;
  const char *begin = digits.data(), *end = begin + digits.size();
  int64_t i = 0;
  double d = 0;
  const auto [stop, wrong] = fraction ? read_float(begin, end, d) : std::from_chars(begin, end, i);
  if (wrong != std::errc() || stop != end) return std::nullopt;
  return fraction ? Value{d} : Value{i};
}

Result<Value> to_int(Interpreter&, const Value& v, const BoundArguments& a) {
  INVAR_TRY(const int64_t base, integer_or(a[1], 10, "base"));
  if (base != 10) return not_covered("int with another base than 10");
  if (const auto i = v.integer()) return Value{*i};
  std::optional<double> d = v.number();
  if (const std::string* s = v.string()) {
    if (s->find('_') != s->npos) return not_covered("int of a text with an underscore");
    if (const auto i = number_in(*s, false)) return *i;
    if (const auto f = number_in(*s, true)) d = f->number();
  }
  if (v.undefined()) return unsupported(v, "");
  if (!d) return a[0] ? *a[0] : Value{int64_t{0}};
  if (std::fabs(*d) >= 9.2e18) return not_covered("an integer needs more than 64 bits");
  return Value{static_cast<int64_t>(*d)};
}

Result<Value> to_float(Interpreter&, const Value& v, const BoundArguments& a) {
  if (v.undefined()) return unsupported(v, "");
  if (const auto d = v.number()) return Value{*d};
  if (const std::string* s = v.string()) {
    if (const auto f = number_in(*s, true)) return *f;
    std::string word = strip(*s, " \t\r\n+-");
    for (char& c : word) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    const bool digits = word.find_first_not_of("0123456789_.e+-") == word.npos;
    if (word == "inf" || word == "infinity" || word == "nan" || (digits && word.find('_') != word.npos))
      return not_covered("float of the text " + invar::json::quote(invar::json::brief(*s)));
  }
  return a[0] ? *a[0] : Value{0.0};
}

Result<Value> absolute(Interpreter&, const Value& v, const BoundArguments&) {
  if (const auto i = v.integer()) return *i < 0 ? unary("-", Value{*i}) : Result<Value>(Value{*i});
  if (const auto d = v.number()) return Value{std::fabs(*d)};
  return unsupported(v, "bad operand type for abs(): '" + std::string(type_name(v)) + "'");
}

Result<Value> rounded(Interpreter&, const Value& v, const BoundArguments& a) {
  INVAR_TRY(const int64_t precision, integer_or(a[0], 0, "precision"));
  std::string how = "common";
  if (a[1]) {
    INVAR_TRY(how, string_of(*a[1], "the method of round"));
  }
  if (precision != 0) return not_covered("round to another precision than 0");
  if (how != "common" && how != "ceil" && how != "floor")
    return bad_input("method must be common, ceil or floor");
  if (const auto i = v.integer()) return how == "common" ? Value{*i} : Value{static_cast<double>(*i)};
  const auto d = v.number();
  if (!d) return unsupported(v, "type " + std::string(type_name(v)) + " doesn't define __round__ method");
  return Value{how == "ceil" ? std::ceil(*d) : how == "floor" ? std::floor(*d) : std::nearbyint(*d)};
}

Result<Value> truncate(Interpreter&, const Value& v, const BoundArguments& a) {
  INVAR_TRY(const std::string s, string_of(v, "what is truncated"));
  INVAR_TRY(const int64_t longest, integer_or(a[0], 255, "length"));
  std::string end = "...";
  if (a[2]) {
    INVAR_TRY(end, string_of(*a[2], "the end of truncate"));
  }
  INVAR_TRY(const int64_t leeway, integer_or(a[3] && !a[3]->none() ? a[3] : nullptr, 5, "leeway"));
  if (longest < length(end) || leeway < 0)
    return bad_input("truncate: the length is less than that of the end");
  if (length(s) <= longest + leeway) return v;
  std::string kept = utf8(code_points(s).substr(0, static_cast<size_t>(longest - length(end))));
  if (!(a[1] && truth(*a[1]))) kept = kept.substr(0, std::min(kept.rfind(' '), kept.size()));
  return text(kept + end);
}

Result<Value> urlencode(Interpreter&, const Value& v, const BoundArguments&) {
  INVAR_TRY(const std::string s, string_of(v, "what is encoded for a URL"));
  std::string out;
  for (const char c : s) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~/").find(c) != std::string_view::npos;
    if (plain)
      out += c;
    else
      (out.append("%") += "0123456789ABCDEF"[static_cast<uint8_t>(c) >> 4]) += "0123456789ABCDEF"[c & 15];
  }
  return text(std::move(out));
}

Result<Value> centered(Interpreter& in, const Value& v, const BoundArguments& a) {
  INVAR_TRY(std::string s, str(v));
  return call_method(in, text(std::move(s)), "center", {{a[0] ? *a[0] : Value{int64_t{80}}}, {}});
}

}  // namespace

std::span<const Filter> value_filters() {
  static constexpr Filter filters[] = {
      {"string", "", to_string},
      {"trim", "chars", trim},
      {"upper", "", cased<Case::upper>},
      {"lower", "", cased<Case::lower>},
      {"capitalize", "", cased<Case::capitalize>},
      {"title", "", title},
      {"replace", "old,new,count", replaced},
      {"default", "default_value,boolean", otherwise},
      {"d", "default_value,boolean", otherwise},
      {"tojson", "ensure_ascii,indent,separators,sort_keys", json_of},
      {"indent", "width,first,blank", indent},
      {"escape", "", escape},
      {"e", "", escape},
      {"safe", "", safe},
      {"int", "default,base", to_int},
      {"float", "default", to_float},
      {"abs", "", absolute},
      {"round", "precision,method", rounded},
      {"truncate", "length,killwords,end,leeway", truncate},
      {"urlencode", "", urlencode},
      {"center", "width", centered},
  };
  return filters;
}

Result<Value> Interpreter::filter(const std::string& name, const Value& input, const Arguments& given) {
  const std::string* s = input.string();
  INVAR_CHECK_OK(spend(1 + (s ? s->size() / kBytesRead : 0)));
  const auto among = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const bool keeps =
      among({"safe", "escape", "e", "string", "length", "count", "default", "d", "tojson", "int", "float"});
  if (input.markup() && !keeps) return not_covered("the filter '" + name + "' of a safe string");
  if (name == "format") {
    INVAR_TRY(const std::string format, string_of(input, "the format"));
    if (!given.named.empty()) return not_covered("the filter 'format' with names");
    return format_percent(format, sequence(Sequence::tuple, given.positional));
  }
  if (among({"map", "select", "reject", "selectattr", "rejectattr"}))
    return choosing_filter(*this, name, input, given);
  for (const std::span<const Filter> filters : {value_filters(), sequence_filters()})
    for (const Filter& f : filters)
      if (f.name == name) {
        INVAR_TRY(const BoundArguments bound,
                  bind_arguments("the filter '" + name + "'", f.parameters, given));
        return f.function(*this, input, bound);
      }
  if (among({"attr", "filesizeformat", "forceescape", "pprint", "random", "striptags", "urlize", "wordcount",
             "wordwrap", "xmlattr"}))
    return not_covered("the filter '" + name + "' is not covered");
  return bad_input("No filter named '" + name + "'.");
}

}  // namespace invar::prompt::jinja
