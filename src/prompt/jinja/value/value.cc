#include "prompt/jinja/value/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text/read_float.h"
#include "prompt/jinja/value/python_text.h"

namespace invar::prompt::jinja {

size_t& live_bytes() {
  thread_local size_t bytes = 0;
  return bytes;
}

Meter& meter() {
  thread_local Meter of_thread;
  return of_thread;
}

bool charge(size_t steps) {
  Meter& m = meter();
  m.exhausted |= steps > m.left;
  m.left -= m.exhausted ? m.left : steps;
  return !m.exhausted;
}

Error too_long(const std::string& what) {
  return not_covered(what + " makes more than " + std::to_string(kLongestText >> 20) + " MiB of text");
}

namespace {

int deepest(const std::vector<Value>& values) {
  int depth = 0;
  for (const Value& v : values) depth = std::max(depth, depth_of(v));
  return depth + 1;
}

int deepest(const std::vector<std::pair<Value, Value>>& members) {
  int depth = 0;
  for (const auto& [key, value] : members) depth = std::max({depth, depth_of(key), depth_of(value)});
  return depth + 1;
}

}  // namespace

Sequence::Sequence(Kind k, std::vector<Value> e)
    : kind(k),
      elements(std::move(e)),
      depth(deepest(elements)),
      counted(sizeof(Sequence) + elements.size() * sizeof(Value)) {}

Dict::Dict(std::vector<std::pair<Value, Value>> m)
    : members(std::move(m)),
      depth(deepest(members)),
      counted(sizeof(Dict) + members.size() * (2 * sizeof(Value) + 64)) {
  for (size_t i = 0; i < members.size(); ++i)
    if (const std::string* name = members[i].first.string()) by_name_.emplace(*name, i);
}

const Value* Dict::find(std::string_view key) const {
  charge(key.size() / kBytesCopied);
  const auto at = by_name_.find(key);
  return at == by_name_.end() ? nullptr : &members[at->second].second;
}

const Value* Dict::find(const Value& key) const {
  if (const std::string* name = key.string()) return find(*name);
  if (by_name_.size() == members.size()) return nullptr;
  for (const auto& [k, value] : members)
    if (equal(k, key)) return &value;
  return nullptr;
}

Value undefined(std::string why) {
  return {Undefined{std::make_shared<const std::string>(std::move(why))}};
}
Value text(std::string s, bool markup) {
  return {String{std::shared_ptr<const Text>(new Text{std::move(s)}), markup}};
}
Value sequence(Sequence::Kind kind, std::vector<Value> elements) {
  return {std::shared_ptr<const Sequence>(std::make_shared<Sequence>(kind, std::move(elements)))};
}
Value list(std::vector<Value> elements) {
  return sequence(Sequence::list, std::move(elements));
}

Value dict(std::vector<std::pair<Value, Value>> members) {
  std::unordered_map<std::string_view, size_t> names;
  std::vector<std::pair<Value, Value>> kept;
  for (auto& [key, value] : members) {
    Value* same = nullptr;
    if (const std::string* name = key.string()) {
      charge(1 + name->size() / kBytesCopied);
      const auto [at, fresh] = names.emplace(*name, kept.size());
      if (!fresh) same = &kept[at->second].second;
    } else {
      for (auto& [k, v] : kept)
        if (equal(k, key)) same = &v;
      if (meter().exhausted) break;
    }
    if (same)
      *same = std::move(value);
    else
      kept.emplace_back(key, std::move(value));  // the key's text outlives `names`
  }
  return {std::shared_ptr<const Dict>(std::make_shared<Dict>(std::move(kept)))};
}

Result<Value> from_json(const invar::json::Value& j) {
  switch (j.kind) {
    case invar::json::Value::null: return Value{None{}};
    case invar::json::Value::boolean: return Value{j.text == "true"};
    case invar::json::Value::string: return text(j.text);
    case invar::json::Value::number: {
      const char *begin = j.text.data(), *end = begin + j.text.size();
      int64_t i = 0;
      if (j.text.find_first_of(".eE") == j.text.npos) {
        const auto [stop, error] = std::from_chars(begin, end, i);
        if (error == std::errc() && stop == end) return Value{i};
        return not_covered("the number " + invar::json::brief(j.text) + " needs more than 64 bits");
      }
      double d = 0;
      const auto [stop, error] = read_float(begin, end, d);
      if (error == std::errc() && stop == end) return Value{d};
      return not_covered("the number " + invar::json::brief(j.text) + " is beyond binary64");
    }
    case invar::json::Value::array: {
      std::vector<Value> elements;
      for (const auto& item : j.items) {
        INVAR_TRY(Value v, from_json(item));
        elements.push_back(std::move(v));
      }
      return within_levels(list(std::move(elements)));
    }
    case invar::json::Value::object: break;
  }
  std::vector<std::pair<Value, Value>> members;
  for (const auto& [key, item] : j.members) {
    INVAR_TRY(Value v, from_json(item));
    members.emplace_back(text(key), std::move(v));
  }
  return within_levels(dict(std::move(members)));
}

int depth_of(const Value& v) {
  if (const Sequence* s = v.sequence()) return s->depth;
  if (const Dict* d = v.dict()) return d->depth;
  return 0;
}

Result<Value> within_levels(Value v) {
  constexpr int most = 200;
  if (depth_of(v) > most) return not_covered("a value nests deeper than " + std::to_string(most) + " levels");
  return v;
}

bool truth(const Value& v) {
  if (v.undefined() || v.none()) return false;
  if (const auto n = v.number()) return *n != 0;
  if (const std::string* s = v.string()) return !s->empty();
  if (const Sequence* s = v.sequence()) return s->kind == Sequence::generator || !s->elements.empty();
  if (const Dict* d = v.dict()) return !d->members.empty();
  return true;
}

namespace {

// -1, 0, 1 of two numbers, exactly; binary64 has no NaN here.
int compare_numbers(const Value& a, const Value& b) {
  const auto i = a.integer(), k = b.integer();
  if (i && k) return (*i > *k) - (*i < *k);
  if (!i && !k) return (*a.number() > *b.number()) - (*a.number() < *b.number());
  if (!i) return -compare_numbers(b, a);
  const double d = *b.number();
  if (d >= 9223372036854775808.0) return -1;
  if (d < -9223372036854775808.0) return 1;
  const auto whole = static_cast<int64_t>(d);
  if (*i != whole) return *i > whole ? 1 : -1;
  const double rest = d - static_cast<double>(whole);
  return (rest < 0) - (rest > 0);
}

bool charge_for_both(const std::string& a, const std::string& b) {
  return charge(std::min(a.size(), b.size()) / kBytesCopied);
}

bool equal_elements(const Sequence& a, const Sequence& b) {
  return a.elements.size() == b.elements.size() &&
         std::equal(a.elements.begin(), a.elements.end(), b.elements.begin(), equal);
}

bool equal_members(const Dict& a, const Dict& b) {
  if (&a == &b) return true;
  if (a.members.size() != b.members.size()) return false;
  return std::all_of(a.members.begin(), a.members.end(), [&](const auto& m) {
    const Value* other = b.find(m.first);
    return other && equal(m.second, *other);
  });
}

}  // namespace

bool equal(const Value& a, const Value& b) {
  if (!charge(1)) return false;
  if (a.number() && b.number()) return compare_numbers(a, b) == 0;
  if (a.string() && b.string())
    return charge_for_both(*a.string(), *b.string()) && *a.string() == *b.string();
  if (a.v.index() != b.v.index()) return false;
  if (a.undefined() || a.none()) return true;
  if (const Sequence* s = a.sequence()) {
    const Sequence* t = b.sequence();
    const bool ordered =
        s->kind == Sequence::list || s->kind == Sequence::tuple || s->kind == Sequence::range;
    return s == t || (ordered && s->kind == t->kind && equal_elements(*s, *t));
  }
  if (a.dict()) return equal_members(*a.dict(), *b.dict());
  if (auto* n = std::get_if<Namespace*>(&a.v)) return *n == std::get<Namespace*>(b.v);
  if (auto* l = std::get_if<std::shared_ptr<Loop>>(&a.v)) return *l == std::get<std::shared_ptr<Loop>>(b.v);
  return std::get<std::shared_ptr<const Callable>>(a.v) == std::get<std::shared_ptr<const Callable>>(b.v);
}

bool hashable(const Value& v) {
  if (!charge(1) || v.dict()) return false;
  const Sequence* s = v.sequence();
  if (!s) return true;
  return s->kind == Sequence::tuple && std::all_of(s->elements.begin(), s->elements.end(), hashable);
}

std::optional<bool> less(const Value& a, const Value& b) {
  if (!charge(1)) return std::nullopt;
  if (a.number() && b.number()) return compare_numbers(a, b) < 0;
  // UTF-8 is ordered as its code points are.
  if (a.string() && b.string()) return charge_for_both(*a.string(), *b.string()) && *a.string() < *b.string();
  const Sequence *s = a.sequence(), *t = b.sequence();
  if (!s || !t || s->kind != t->kind || (s->kind != Sequence::list && s->kind != Sequence::tuple))
    return std::nullopt;
  for (size_t i = 0; i < s->elements.size() && i < t->elements.size(); ++i)
    if (!equal(s->elements[i], t->elements[i])) return less(s->elements[i], t->elements[i]);
  return s->elements.size() < t->elements.size();
}

std::string_view type_name(const Value& v) {
  if (const Sequence* s = v.sequence()) {
    constexpr std::string_view names[] = {"list",       "tuple", "dict_keys", "dict_values",
                                          "dict_items", "range", "generator"};
    return names[s->kind];
  }
  constexpr std::string_view names[] = {"Undefined", "NoneType", "bool",      "int",         "float",   "str",
                                        "",          "dict",     "Namespace", "LoopContext", "function"};
  return names[v.v.index()];
}

// The shortest digits that read back as the same binary64, in Python's notation.
std::string number_text(double d) {
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  if (std::isnan(d)) return "nan";
  char buffer[32];
  const char* end = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific).ptr;
  const std::string digits(buffer, static_cast<size_t>(end - buffer));
  const size_t e = digits.find('e');
  int exponent = 0;
  std::from_chars(digits.data() + e + 1 + (digits[e + 1] == '+'), digits.data() + digits.size(), exponent);
  if (exponent < -4 || exponent >= 16) return digits;
  end = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::fixed).ptr;
  const std::string fixed(buffer, static_cast<size_t>(end - buffer));
  return fixed.find('.') == fixed.npos ? fixed + ".0" : fixed;
}

}  // namespace invar::prompt::jinja
