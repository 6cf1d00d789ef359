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

// The attributes that Python 3.11 to 3.14 and jinja2 3.1 give to a value of this type and nothing
// here does, a space around each (tests/chat/attributes.jsonl has all of them).
std::string_view uncovered_attributes(const Value& of) {
  constexpr std::string_view kInteger =
      " as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag is_integer numerator "
      "real to_bytes ";
  if (std::holds_alternative<double>(of.v))
    return " as_integer_ratio conjugate from_number fromhex hex imag is_integer real ";
  if (of.number()) return kInteger;
  if (of.markup()) return " escape striptags unescape ";
  if (of.dict()) return " fromkeys ";
  if (const Sequence* s = of.sequence()) {
    if (s->kind == Sequence::range) return " count index start step stop ";
    if (s->kind == Sequence::generator) return " close gi_running gi_suspended gi_yieldfrom send throw ";
    if (s->kind == Sequence::values) return " mapping ";
    return s->kind == Sequence::keys || s->kind == Sequence::items ? " isdisjoint mapping " : "";
  }
  const auto* held = std::get_if<std::shared_ptr<const Callable>>(&of.v);
  if (!held) return "";
  if ((*held)->kind == Callable::macro)
    return " arguments caller catch_kwargs catch_varargs explicit_caller ";
  return (*held)->kind == Callable::global && (*held)->name == "dict" ? " fromkeys " : "";
}

// Whether every object of Python, or its dicts, have this attribute. It is never shown, and is
// found before a key of the name.
bool is_internal(const Value& of, std::string_view name) {
  constexpr std::string_view kDict =
      " __class__ __class_getitem__ __contains__ __delattr__ __delitem__ __dir__ __doc__ __eq__ __format__ "
      "__ge__ __getattribute__ __getitem__ __getstate__ __gt__ __hash__ __init__ __init_subclass__ __ior__ "
      "__iter__ __le__ __len__ __lt__ __ne__ __new__ __or__ __reduce__ __reduce_ex__ __repr__ __reversed__ "
      "__ror__ __setattr__ __setitem__ __sizeof__ __str__ __subclasshook__ ";
  return name.starts_with("__") && (!of.dict() || kDict.find(" " + std::string(name) + " ") != kDict.npos);
}

// The attribute that Python's object has under this name.
Result<std::optional<Value>> own(const Value& of, const std::string& name) {
  const auto found = [](Value v) { return std::optional<Value>(std::move(v)); };
  if (is_internal(of, name)) return found(unsafe(of, name));
  switch (method_of(of, name)) {
    case Method::safe: {
      Callable method{Callable::method, name};
      method.receiver = of;
      return found(Value{std::make_shared<const Callable>(std::move(method))});
    }
    case Method::unsafe: return found(unsafe(of, name));
    case Method::none: break;
  }
  if (name.size() < 32 && uncovered_attributes(of).find(" " + name + " ") != std::string_view::npos) {
    const auto* held = std::get_if<std::shared_ptr<const Callable>>(&of.v);
    const bool macro = held && (*held)->kind == Callable::macro;
    return not_covered("the attribute '" + name + "' of " +
                       (macro ? "a macro" : "Python's " + std::string(type_name(of))) + " is not covered");
  }
  if (auto* space = std::get_if<Namespace*>(&of.v)) {
    charge((*space)->members.size() / 4);
    for (const auto& [known, value] : (*space)->members)
      if (known == name) return found(value);
  }
  if (auto* loop = std::get_if<std::shared_ptr<Loop>>(&of.v)) return found(loop_attribute(*loop, of, name));
  if (auto* held = std::get_if<std::shared_ptr<const Callable>>(&of.v))
    if (const Callable& c = **held; c.kind == Callable::macro && name == "name")
      return found(c.node->kind == Node::call_block ? Value{None{}} : text(c.name));
  return std::optional<Value>();
}

// The element at this key; absent: there is none.
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
  INVAR_TRY(const std::optional<Value> attribute, own(of, name));
  if (attribute) return *attribute;
  if (of.dict())
    if (const Value* v = of.dict()->find(name)) return *v;
  return missing(of, name);
}

Result<Value> Interpreter::item(const Value& of, const Value& key) {
  if (of.undefined()) return unsupported(of, "");
  if (auto v = element(of, key)) return *v;
  if (const std::string* name = key.string()) {
    INVAR_TRY(const std::optional<Value> attribute, own(of, *name));
    return attribute ? *attribute : missing(of, *name);
  }
  const auto shown = depth_of(key) ? Result<std::string>(std::string("of this key")) : repr(key);
  return undefined(std::string(type_name(of)) + " object has no element " +
                   (shown ? *shown : std::string("of this key")));
}

}  // namespace invar::prompt::jinja
