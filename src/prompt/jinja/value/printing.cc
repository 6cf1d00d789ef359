// Values as text: Python's str, repr and json.dumps.
#include <algorithm>

#include "prompt/jinja/value/python_text.h"
#include "prompt/jinja/value/value.h"

namespace invar::prompt::jinja {
namespace {

// Text that grows, charged for; more than kLongestText is refused.
Status append(std::string& out, std::string_view text) {
  if (out.size() + text.size() > kLongestText) return too_long("a value that is printed");
  charge(text.size() / kBytesCopied);
  out += text;
  return {};
}

Status append_repr(std::string& out, const Value&);

template <class T, class F>
Status append_all(std::string& out, const std::vector<T>& items, std::string_view open,
                  std::string_view close, F&& one) {
  INVAR_CHECK_OK(append(out, open));
  for (size_t i = 0; i < items.size() && !meter().exhausted; ++i) {
    INVAR_CHECK_OK(append(out, i ? ", " : ""));
    INVAR_CHECK_OK(one(out, items[i]));
  }
  return append(out, close);
}

std::string_view opening(Sequence::Kind kind) {
  constexpr std::string_view names[] = {"[", "(", "dict_keys([", "dict_values([", "dict_items(["};
  return names[kind];
}
std::string_view closing(const Sequence& s) {
  if (s.kind == Sequence::tuple) return s.elements.size() == 1 ? ",)" : ")";
  return s.kind == Sequence::list ? "]" : "])";
}

Result<std::string> range_text(const Sequence& s) {
  const size_t n = s.elements.size();
  if (n < 2) return not_covered("a range of fewer than two numbers is printed");
  const int64_t first = *s.elements[0].integer(), step = *s.elements[1].integer() - first;
  if (step != 1) return not_covered("a range with a step is printed");
  return "range(" + std::to_string(first) + ", " + std::to_string(first + static_cast<int64_t>(n)) + ")";
}

Status append_member(std::string& out, const std::pair<Value, Value>& m) {
  INVAR_CHECK_OK(append_repr(out, m.first));
  INVAR_CHECK_OK(append(out, ": "));
  return append_repr(out, m.second);
}

Status append_repr(std::string& out, const Value& v) {
  charge(1);
  if (const std::string* s = v.string()) {
    if (v.markup()) return not_covered("a list with a safe string is printed");
    if (!charge(s->size() / kBytesRead)) return {};
    return append(out, repr_of(*s));
  }
  if (v.undefined()) return append(out, "Undefined");
  if (const Sequence* s = v.sequence()) {
    if (s->kind == Sequence::generator)
      return not_covered("a generator is printed, whose text is another in every run: write |list");
    if (s->kind != Sequence::range)
      return append_all(out, s->elements, opening(s->kind), closing(*s), append_repr);
    INVAR_TRY(const std::string text, range_text(*s));
    return append(out, text);
  }
  if (const Dict* d = v.dict()) return append_all(out, d->members, "{", "}", append_member);
  INVAR_TRY(const std::string text, str(v));
  return append(out, text);
}

}  // namespace

Result<std::string> repr(const Value& v) {
  std::string out;
  INVAR_CHECK_OK(append_repr(out, v));
  return out;
}

Result<std::string> str(const Value& v) {
  if (const std::string* s = v.string()) return charge(s->size() / kBytesCopied), *s;
  if (v.undefined()) return std::string();
  if (v.none()) return std::string("None");
  if (const bool* b = std::get_if<bool>(&v.v)) return std::string(*b ? "True" : "False");
  if (const int64_t* i = std::get_if<int64_t>(&v.v)) return std::to_string(*i);
  if (const double* d = std::get_if<double>(&v.v)) return number_text(*d);
  if (v.sequence() || v.dict()) return repr(v);
  return not_covered("an object of type " + std::string(type_name(v)) + " is printed");
}

namespace {

Error not_json(const Value& v) {
  return bad_input("an object of type " + std::string(type_name(v)) + " is not JSON serializable");
}

Result<std::string> json_key(const Value& key) {
  if (const std::string* s = key.string()) return *s;
  if (key.none()) return std::string("null");
  if (const bool* b = std::get_if<bool>(&key.v)) return std::string(*b ? "true" : "false");
  if (key.number()) return str(key);
  return bad_input("a key of type " + std::string(type_name(key)) + " is not JSON serializable");
}

struct JsonWriter {
  const JsonStyle& style;
  std::string out;

  Status line(int depth) {
    if (!style.indent) return {};
    INVAR_CHECK_OK(append(out, "\n"));
    for (int i = 0; i < depth; ++i) INVAR_CHECK_OK(append(out, *style.indent));
    return {};
  }
  Status between(bool first, int depth) {
    INVAR_CHECK_OK(append(out, first ? "" : style.item_separator));
    return line(depth);
  }
  Status string(const std::string& s) {
    if (!charge(s.size() / kBytesRead)) return {};
    return append(out, json_string(s, style.ensure_ascii));
  }
  Status array(const std::vector<Value>& elements, int depth) {
    out += '[';
    for (size_t i = 0; i < elements.size() && !meter().exhausted; ++i) {
      INVAR_CHECK_OK(between(i == 0, depth + 1));
      INVAR_CHECK_OK(value(elements[i], depth + 1));
    }
    if (!elements.empty()) {
      INVAR_CHECK_OK(line(depth));
    }
    return append(out, "]");
  }
  Status object(const Dict& d, int depth) {
    std::vector<const std::pair<Value, Value>*> members;
    for (const auto& m : d.members) members.push_back(&m);
    if (style.sort_keys) {
      bool ordered = true;
      std::stable_sort(members.begin(), members.end(), [&](const auto* a, const auto* b) {
        const auto before = less(a->first, b->first);
        ordered &= before.has_value();
        return before.value_or(false);
      });
      if (!ordered) return bad_input("sort_keys: keys of several types cannot be sorted");
    }
    out += '{';
    for (size_t i = 0; i < members.size() && !meter().exhausted; ++i) {
      INVAR_CHECK_OK(between(i == 0, depth + 1));
      INVAR_TRY(const std::string key, json_key(members[i]->first));
      INVAR_CHECK_OK(string(key));
      INVAR_CHECK_OK(append(out, style.key_separator));
      INVAR_CHECK_OK(value(members[i]->second, depth + 1));
    }
    if (!members.empty()) {
      INVAR_CHECK_OK(line(depth));
    }
    return append(out, "}");
  }
  Status value(const Value& v, int depth) {
    charge(1);
    if (const std::string* s = v.string()) return string(*s);
    if (v.none()) return out += "null", Status();
    if (const bool* b = std::get_if<bool>(&v.v)) return out += *b ? "true" : "false", Status();
    if (v.number()) {
      INVAR_TRY(const std::string number, str(v));
      out += number;
      return {};
    }
    const Sequence* s = v.sequence();
    if (s && (s->kind == Sequence::list || s->kind == Sequence::tuple)) return array(s->elements, depth);
    if (v.dict()) return object(*v.dict(), depth);
    return not_json(v);
  }
};

}  // namespace

Result<std::string> to_json(const Value& v, const JsonStyle& style) {
  JsonWriter writer{style, {}};
  INVAR_CHECK_OK(writer.value(v, 0));
  return std::move(writer.out);
}

}  // namespace invar::prompt::jinja
