// a.name and a[key], in the order of jinja2's sandbox: a.name is a method of Python's type first, a
// key of a dict then; a[key] the other way round.
#include "prompt/jinja/evaluate/interpreter.h"
#include "prompt/jinja/value/python_text.h"

namespace invar::prompt::jinja {
namespace {

Value unsafe(const Value& of, const std::string& name) {
  return undefined("access to attribute '" + name + "' of '" + std::string(type_name(of)) +
                   "' object is unsafe.");
}
Value missing(const Value& of, const std::string& name) {
  const bool object = of.dict() || of.sequence() || of.string() || of.number() || of.none();
  const std::string type = of.none() ? "None" : std::string(type_name(of)) + (object ? " object" : "");
  return undefined("'" + type + "' has no attribute '" + name + "'");
}

Value loop_attribute(const std::shared_ptr<Loop>& loop, const Value& of, const std::string& name) {
  const auto n = static_cast<int64_t>(loop->items.size()), i = static_cast<int64_t>(loop->index);
  if (name == "index") return Value{i + 1};
  if (name == "index0") return Value{i};
  if (name == "revindex") return Value{n - i};
  if (name == "revindex0") return Value{n - i - 1};
  if (name == "first") return Value{i == 0};
  if (name == "last") return Value{i + 1 == n};
  if (name == "length") return Value{n};
  if (name == "depth") return Value{int64_t{loop->depth}};
  if (name == "depth0") return Value{int64_t{loop->depth - 1}};
  if (name == "previtem")
    return i > 0 ? loop->items[loop->index - 1] : undefined("there is no previous item");
  if (name == "nextitem")
    return i + 1 < n ? loop->items[loop->index + 1] : undefined("there is no next item");
  return missing(of, name);
}

// What Python's object has under this name.
std::optional<Value> own(const Value& of, const std::string& name) {
  if (name.starts_with("__")) return unsafe(of, name);
  switch (method_of(of, name)) {
    case Method::safe: {
      Callable method{Callable::method, name};
      method.receiver = of;
      return Value{std::make_shared<const Callable>(std::move(method))};
    }
    case Method::unsafe: return unsafe(of, name);
    case Method::none: break;
  }
  if (auto* space = std::get_if<Namespace*>(&of.v))
    for (const auto& [known, value] : (*space)->members)
      if (known == name) return value;
  if (auto* loop = std::get_if<std::shared_ptr<Loop>>(&of.v)) return loop_attribute(*loop, of, name);
  if (auto* held = std::get_if<std::shared_ptr<const Callable>>(&of.v); held && name == "name")
    return text((*held)->name);
  return std::nullopt;
}

// What is at this key; absent: nothing.
std::optional<Value> element(const Value& of, const Value& key) {
  if (const Dict* d = of.dict()) {
    const Value* v = hashable(key) ? d->find(key) : nullptr;
    return v ? std::optional(*v) : std::nullopt;
  }
  const auto index = key.integer();
  if (!index) return std::nullopt;
  const auto at = [&](int64_t n) { return *index < 0 ? *index + n : *index; };
  if (const Sequence* s = of.sequence()) {
    const bool indexed =
        s->kind == Sequence::list || s->kind == Sequence::tuple || s->kind == Sequence::range;
    const auto n = static_cast<int64_t>(s->elements.size());
    if (!indexed || at(n) < 0 || at(n) >= n) return std::nullopt;
    return s->elements[static_cast<size_t>(at(n))];
  }
  if (const std::string* s = of.string()) {
    const int64_t n = length(*s);
    if (at(n) < 0 || at(n) >= n) return std::nullopt;
    if (n == static_cast<int64_t>(s->size())) return text(s->substr(static_cast<size_t>(at(n)), 1));
    return text(utf8(code_points(*s).substr(static_cast<size_t>(at(n)), 1)));
  }
  return std::nullopt;
}

}  // namespace

Result<Value> Interpreter::attribute(const Value& of, const std::string& name) {
  if (of.undefined()) return unsupported(of, "");
  if (auto v = own(of, name)) return *v;
  if (of.dict())
    if (const Value* v = of.dict()->find(name)) return *v;
  return missing(of, name);
}

Result<Value> Interpreter::item(const Value& of, const Value& key) {
  if (of.undefined()) return unsupported(of, "");
  const std::string* s = of.string();
  INVAR_CHECK_OK(spend(s ? s->size() / 64 : 0));
  if (auto v = element(of, key)) return *v;
  if (const std::string* name = key.string()) {
    if (auto v = own(of, *name)) return *v;
    return missing(of, *name);
  }
  if (key.undefined()) return unsupported(key, "");
  auto shown = repr(key);
  return undefined(std::string(type_name(of)) + " object has no element " +
                   (shown ? *shown : std::string("of this key")));
}

}  // namespace invar::prompt::jinja
