// Values as text: Python's str, repr and json.dumps.
#include <algorithm>

#include "prompt/jinja/value/python_text.h"
#include "prompt/jinja/value/value.h"

namespace invar::prompt::jinja {
namespace {

template <class T, class F>
Result<std::string> joined(const std::vector<T>& items, std::string_view open, std::string_view close,
                           F&& one) {
  std::string out(open);
  for (size_t i = 0; i < items.size(); ++i) {
    INVAR_TRY(const std::string text, one(items[i]));
    out.append(i ? ", " : "").append(text);
  }
  return out.append(close);
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

Result<std::string> member_text(const std::pair<Value, Value>& m) {
  INVAR_TRY(const std::string key, repr(m.first));
  INVAR_TRY(const std::string value, repr(m.second));
  return key + ": " + value;
}

}  // namespace

Result<std::string> repr(const Value& v) {
  if (const std::string* s = v.string()) {
    if (v.markup()) return not_covered("a list with a safe string is printed");
    return repr_of(*s);
  }
  if (v.undefined()) return std::string("Undefined");
  if (const Sequence* s = v.sequence()) {
    if (s->kind == Sequence::range) return range_text(*s);
    if (s->kind == Sequence::generator)
      return not_covered("a generator is printed, whose text is another in every run: write |list");
    return joined(s->elements, opening(s->kind), closing(*s), repr);
  }
  if (const Dict* d = v.dict()) return joined(d->members, "{", "}", member_text);
  return str(v);
}

Result<std::string> str(const Value& v) {
  if (const std::string* s = v.string()) return *s;
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

  void line(int depth) {
    if (!style.indent) return;
    out += '\n';
    for (int i = 0; i < depth; ++i) out += *style.indent;
  }
  void between(bool first, int depth) {
    if (!first) out += style.item_separator;
    line(depth);
  }
  Status array(const std::vector<Value>& elements, int depth) {
    out += '[';
    for (size_t i = 0; i < elements.size(); ++i) {
      between(i == 0, depth + 1);
      INVAR_CHECK_OK(value(elements[i], depth + 1));
    }
    if (!elements.empty()) line(depth);
    out += ']';
    return {};
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
    for (size_t i = 0; i < members.size(); ++i) {
      between(i == 0, depth + 1);
      INVAR_TRY(const std::string key, json_key(members[i]->first));
      out.append(json_string(key, style.ensure_ascii)).append(style.key_separator);
      INVAR_CHECK_OK(value(members[i]->second, depth + 1));
    }
    if (!members.empty()) line(depth);
    out += '}';
    return {};
  }
  Status value(const Value& v, int depth) {
    if (const std::string* s = v.string()) return out += json_string(*s, style.ensure_ascii), Status();
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
