// Methods of strings, dicts, lists and loops.
#include <algorithm>

#include "base/text/utf8.h"
#include "prompt/jinja/evaluate/interpreter.h"
#include "prompt/jinja/value/python_text.h"

namespace invar::prompt::jinja {

Result<BoundArguments> bind_arguments(const std::string& function, std::string_view parameters,
                                      const Arguments& given) {
  std::vector<std::string_view> names;
  for (size_t at = 0; at < parameters.size();) {
    const size_t end = std::min(parameters.find(',', at), parameters.size());
    names.push_back(parameters.substr(at, end - at));
    at = end + 1;
  }
  BoundArguments bound(names.size());
  if (given.positional.size() > names.size())
    return bad_input(function + " takes at most " + std::to_string(names.size()) + " argument(s), " +
                     std::to_string(given.positional.size()) + " are given");
  for (size_t i = 0; i < given.positional.size(); ++i) bound[i] = &given.positional[i];
  for (const auto& [name, value] : given.named) {
    const auto i = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (i == names.size()) return bad_input(function + " has no argument '" + name + "'");
    if (bound[i]) return bad_input(function + " got two values for the argument '" + name + "'");
    bound[i] = &value;
  }
  return bound;
}

namespace {

Value strings(std::vector<std::string> parts) {
  std::vector<Value> elements;
  for (std::string& part : parts) elements.push_back(text(std::move(part)));
  return list(std::move(elements));
}

const std::string& self(const Value& v) {
  return *v.string();
}

// An argument that is a string; absent or None: no value.
Result<std::optional<std::string>> optional_string(const Value* v, const char* what) {
  if (!v || v->none()) return std::optional<std::string>();
  INVAR_TRY(std::string s, string_of(*v, what));
  return std::optional(std::move(s));
}
Result<std::string> needed_string(const Value* v, const char* what) {
  if (!v) return bad_input(std::string(what) + " is missing");
  return string_of(*v, what);
}

template <Side side>
Result<Value> strip_method(Interpreter&, const Value& v, const BoundArguments& a) {
  INVAR_TRY(const auto characters, optional_string(a[0], "the argument of strip()"));
  return text(strip(self(v), characters ? std::optional<std::string_view>(*characters) : std::nullopt, side));
}

template <auto how>
Result<Value> split_method(Interpreter&, const Value& v, const BoundArguments& a) {
  INVAR_TRY(const auto separator, optional_string(a[0], "the separator"));
  INVAR_TRY(const int64_t most, integer_or(a[1], -1, "maxsplit"));
  if (separator && separator->empty()) return bad_input("empty separator");
  return strings(how(self(v), separator ? std::optional<std::string_view>(*separator) : std::nullopt, most));
}

Result<Value> splitlines(Interpreter&, const Value& v, const BoundArguments& a) {
  return strings(split_lines(self(v), a[0] && truth(*a[0])));
}

// A prefix or suffix, or a tuple of them; of what lies between two positions.
template <bool at_end>
Result<Value> affix(Interpreter&, const Value& v, const BoundArguments& a) {
  if (!a[0]) return bad_input("startswith() and endswith() need an argument");
  if (a[1] || a[2]) return not_covered("startswith() and endswith() with positions");
  const Sequence* several = a[0]->sequence();
  if (several && several->kind != Sequence::tuple)
    return bad_input("startswith first arg must be str or a tuple of str, not " +
                     std::string(type_name(*a[0])));
  for (const Value& one : several ? several->elements : std::vector<Value>{*a[0]}) {
    INVAR_TRY(const std::string s, string_of(one, "a prefix or suffix"));
    if (at_end ? self(v).ends_with(s) : self(v).starts_with(s)) return Value{true};
  }
  return Value{false};
}

template <bool at_end>
Result<Value> remove_affix(Interpreter&, const Value& v, const BoundArguments& a) {
  INVAR_TRY(const std::string s, needed_string(a[0], "the prefix or suffix"));
  std::string_view left = self(v);
  if (at_end && left.ends_with(s)) left.remove_suffix(s.size());
  if (!at_end && left.starts_with(s)) left.remove_prefix(s.size());
  return text(std::string(left));
}

template <Case to>
Result<Value> case_method(Interpreter&, const Value& v, const BoundArguments&) {
  INVAR_TRY(std::string made, in_case(self(v), to));
  return text(std::move(made));
}

Result<Value> replace_method(Interpreter& in, const Value& v, const BoundArguments& a) {
  INVAR_TRY(const std::string from, needed_string(a[0], "what replace() replaces"));
  INVAR_TRY(const std::string to, needed_string(a[1], "what replace() inserts"));
  INVAR_TRY(const int64_t most, integer_or(a[2], -1, "count"));
  const size_t places = static_cast<size_t>(count(self(v), from));
  if (to.size() && places > kLongestText / to.size()) return too_long("replace()");
  INVAR_CHECK_OK(in.spend(places));
  return text(replace(self(v), from, to, most));
}

template <bool last, bool must>
Result<Value> find_method(Interpreter& in, const Value& v, const BoundArguments& a) {
  INVAR_TRY(const std::string part, needed_string(a[0], "what is sought"));
  INVAR_TRY(const int64_t start, integer_or(a[1], 0, "start"));
  if (a[2] || start < 0) return not_covered("find() with an end, or a negative start");
  const std::string& s = self(v);
  size_t begin = 0;
  for (int64_t skipped = 0; skipped < start && begin <= s.size(); ++skipped) {
    if (begin == s.size()) return must ? Result<Value>(bad_input("substring not found")) : Value{int64_t{-1}};
    decode_utf8(s, begin);
  }
  INVAR_CHECK_OK(in.spend(begin / kBytesRead));
  size_t at = last ? find_last_text(s, part) : find_text(s, part, begin);
  if (last && at != s.npos && at < begin) at = s.npos;
  if (must && at == s.npos) return bad_input("substring not found");
  return Value{at == s.npos ? int64_t{-1} : length(std::string_view(s).substr(0, at))};
}

Result<Value> count_method(Interpreter&, const Value& v, const BoundArguments& a) {
  INVAR_TRY(const std::string part, needed_string(a[0], "what is counted"));
  return Value{count(self(v), part)};
}

Result<Value> join_method(Interpreter& in, const Value& v, const BoundArguments& a) {
  if (!a[0]) return bad_input("join() needs something to join");
  INVAR_TRY(const std::vector<Value> parts, in.iterate(*a[0]));
  std::string joined;
  for (size_t i = 0; i < parts.size(); ++i) {
    INVAR_TRY(const std::string part, string_of(parts[i], "an element of join()"));
    joined.append(i ? self(v) : "").append(part);
    INVAR_CHECK_OK(in.spend((self(v).size() + part.size()) / kBytesCopied));
    if (joined.size() > kLongestText) return too_long("join()");
  }
  return text(std::move(joined));
}

template <bool last>
Result<Value> partition_method(Interpreter&, const Value& v, const BoundArguments& a) {
  INVAR_TRY(const std::string separator, needed_string(a[0], "the separator"));
  if (separator.empty()) return bad_input("empty separator");
  const std::string& s = self(v);
  const size_t at = last ? find_last_text(s, separator) : find_text(s, separator);
  std::vector<Value> parts;
  if (at == s.npos)
    parts = last ? std::vector{text(""), text(""), v} : std::vector{v, text(""), text("")};
  else
    parts = {text(s.substr(0, at)), text(separator), text(s.substr(at + separator.size()))};
  return sequence(Sequence::tuple, std::move(parts));
}

// ljust, rjust, center: 'l', 'r', 'c'; zfill: 'z'.
template <char how>
Result<Value> pad(Interpreter&, const Value& v, const BoundArguments& a) {
  if (!a[0]) return bad_input("a width is missing");
  INVAR_TRY(const int64_t width, integer_or(a[0], 0, "width"));
  std::string fill = how == 'z' ? "0" : " ";
  if (how != 'z' && a[1]) {
    INVAR_TRY(fill, string_of(*a[1], "the fill character"));
  }
  if (length(fill) != 1) return bad_input("The fill character must be exactly one character long");
  const int64_t lacking = width - length(self(v));
  if (lacking <= 0) return v;
  if (lacking > 1 << 20) return not_covered("a width above 2^20");
  const int64_t left = how == 'l' ? 0 : how == 'c' ? lacking / 2 + (lacking & width & 1) : lacking;
  std::string out;
  const bool sign = how == 'z' && (self(v).starts_with('-') || self(v).starts_with('+'));
  if (sign) out += self(v)[0];
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += self(v).substr(sign);
  for (int64_t i = left; i < lacking; ++i) out += fill;
  return text(std::move(out));
}

Result<Value> get_method(Interpreter&, const Value& v, const BoundArguments& a) {
  if (!a[0]) return bad_input("get() needs a key");
  if (!hashable(*a[0])) return bad_input("unhashable type: '" + std::string(type_name(*a[0])) + "'");
  const Value* found = v.dict()->find(*a[0]);
  return found ? *found : a[1] ? *a[1] : Value{None{}};
}

template <Sequence::Kind kind>
Result<Value> view(Interpreter& in, const Value& v, const BoundArguments&) {
  INVAR_CHECK_OK(in.spend((kind == Sequence::items ? kNewValue : 1) * v.dict()->members.size()));
  std::vector<Value> elements;
  for (const auto& [key, value] : v.dict()->members)
    elements.push_back(kind == Sequence::keys     ? key
                       : kind == Sequence::values ? value
                                                  : sequence(Sequence::tuple, {key, value}));
  return sequence(kind, std::move(elements));
}

Result<Value> copy(Interpreter&, const Value& v, const BoundArguments&) {
  return v;
}

Result<Value> list_count(Interpreter&, const Value& v, const BoundArguments& a) {
  if (!a[0]) return bad_input("count() needs an argument");
  const auto& all = v.sequence()->elements;
  return Value{static_cast<int64_t>(
      std::count_if(all.begin(), all.end(), [&](const Value& x) { return equal(x, *a[0]); }))};
}
Result<Value> list_index(Interpreter&, const Value& v, const BoundArguments& a) {
  if (!a[0] || a[1] || a[2]) return not_covered("index() of a list takes one argument");
  const auto& all = v.sequence()->elements;
  for (size_t i = 0; i < all.size(); ++i)
    if (equal(all[i], *a[0])) return Value{static_cast<int64_t>(i)};
  return bad_input("the value is not in the list");
}

struct Entry {
  std::string_view name, parameters;
  Function function;
};
constexpr Entry kString[] = {
    {"strip", "chars", strip_method<Side::both>},
    {"lstrip", "chars", strip_method<Side::left>},
    {"rstrip", "chars", strip_method<Side::right>},
    {"split", "sep,maxsplit", split_method<split>},
    {"rsplit", "sep,maxsplit", split_method<split_right>},
    {"splitlines", "keepends", splitlines},
    {"startswith", "prefix,start,end", affix<false>},
    {"endswith", "suffix,start,end", affix<true>},
    {"removeprefix", "prefix", remove_affix<false>},
    {"removesuffix", "suffix", remove_affix<true>},
    {"upper", "", case_method<Case::upper>},
    {"lower", "", case_method<Case::lower>},
    {"title", "", case_method<Case::title>},
    {"capitalize", "", case_method<Case::capitalize>},
    {"replace", "old,new,count", replace_method},
    {"find", "sub,start,end", find_method<false, false>},
    {"rfind", "sub,start,end", find_method<true, false>},
    {"index", "sub,start,end", find_method<false, true>},
    {"rindex", "sub,start,end", find_method<true, true>},
    {"count", "sub", count_method},
    {"join", "iterable", join_method},
    {"partition", "sep", partition_method<false>},
    {"rpartition", "sep", partition_method<true>},
    {"ljust", "width,fillchar", pad<'l'>},
    {"rjust", "width,fillchar", pad<'r'>},
    {"center", "width,fillchar", pad<'c'>},
    {"zfill", "width", pad<'z'>},
};
constexpr Entry kDict[] = {
    {"get", "key,default", get_method},
    {"keys", "", view<Sequence::keys>},
    {"values", "", view<Sequence::values>},
    {"items", "", view<Sequence::items>},
    {"copy", "", copy},
};
constexpr Entry kList[] = {
    {"count", "value", list_count}, {"index", "value,start,stop", list_index}, {"copy", "", copy}};
constexpr std::string_view kClasses[] = {"isdigit", "isdecimal", "isalpha", "isalnum",
                                         "isspace", "isupper",   "islower"};
// Methods of Python's types that are refused by name when they are called.
constexpr std::string_view kOtherString[] = {"casefold", "encode",       "expandtabs", "format_map",
                                             "isascii",  "isidentifier", "isnumeric",  "isprintable",
                                             "istitle",  "maketrans",    "swapcase",   "translate"};
constexpr std::string_view kUnsafeList[] = {"append", "clear",  "extend",  "insert",
                                            "pop",    "remove", "reverse", "sort"};
constexpr std::string_view kUnsafeDict[] = {"clear", "pop", "popitem", "setdefault", "update"};

std::span<const Entry> methods(const Value& v) {
  if (v.string()) return kString;
  if (v.dict()) return kDict;
  const Sequence* s = v.sequence();
  if (s && s->kind == Sequence::list) return kList;
  if (s && s->kind == Sequence::tuple) return std::span(kList).first(2);
  return {};
}

template <class Names>
bool among(const Names& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// loop.cycle(a, b, ...) and loop.changed(...)
Result<Value> loop_method(Loop& loop, const std::string& name, const Arguments& given) {
  if (name == "cycle") {
    if (given.positional.empty()) return bad_input("no items for cycling given");
    return given.positional[loop.index % given.positional.size()];
  }
  const bool same = loop.asked && loop.last.size() == given.positional.size() &&
                    std::equal(loop.last.begin(), loop.last.end(), given.positional.begin(), equal);
  loop.asked = true;
  if (!same) loop.last = given.positional;
  return Value{!same};
}

}  // namespace

Method method_of(const Value& v, std::string_view name) {
  for (const Entry& e : methods(v))
    if (e.name == name) return Method::safe;
  if (v.string() && (name == "format" || among(kClasses, name) || among(kOtherString, name)))
    return Method::safe;
  if (std::holds_alternative<std::shared_ptr<Loop>>(v.v) && (name == "cycle" || name == "changed"))
    return Method::safe;
  const Sequence* s = v.sequence();
  if (s && s->kind == Sequence::list && among(kUnsafeList, name)) return Method::unsafe;
  if (v.dict() && among(kUnsafeDict, name)) return Method::unsafe;
  return Method::none;
}

Result<Value> call_method(Interpreter& in, const Value& v, const std::string& name, const Arguments& given) {
  if (const auto* loop = std::get_if<std::shared_ptr<Loop>>(&v.v)) return loop_method(**loop, name, given);
  if (v.markup()) return not_covered("the method " + name + "() of a safe string");
  const std::string* s = v.string();
  INVAR_CHECK_OK(in.spend(s ? s->size() / kBytesRead : 0));
  if (s && name == "format") return format_braces(*s, given);
  if (s && among(kClasses, name)) {
    INVAR_TRY(const BoundArguments none, bind_arguments(name + "()", "", given));
    INVAR_TRY(const bool holds, is_class(*s, name));
    return Value{holds};
  }
  for (const Entry& e : methods(v)) {
    if (e.name != name) continue;
    INVAR_TRY(const BoundArguments bound, bind_arguments(name + "()", e.parameters, given));
    return e.function(in, v, bound);
  }
  return not_covered("the method " + name + "() of " + std::string(type_name(v)) + " is not covered");
}

}  // namespace invar::prompt::jinja
