#include <algorithm>

#include "prompt/jinja/evaluate/interpreter.h"
#include "prompt/jinja/value/python_text.h"

namespace invar::prompt::jinja {

Result<Value> Interpreter::checked(Value v) {
  INVAR_TRY(v, within_levels(std::move(v)));
  const std::string* s = v.string();
  INVAR_CHECK_OK(spend(s ? s->size() / kBytesCopied : 0));
  return v;
}

Result<Value> Interpreter::evaluate(const Node& node, Scope& scope) {
  if (++depth_ > kDeepest) return place(node, not_covered("the template nests deeper than is allowed"));
  if (Status enough = spend(1); !enough) return place(node, enough.error());
  auto v = evaluate_unplaced(node, scope);
  --depth_;
  if (!v) return place(node, v.error());
  return v;
}

Result<std::vector<Value>> Interpreter::evaluate_all(const Nodes& nodes, Scope& scope) {
  std::vector<Value> values;
  for (const NodePtr& node : nodes) {
    INVAR_TRY(Value v, evaluate(*node, scope));
    values.push_back(std::move(v));
  }
  return values;
}

Result<Value> Interpreter::variable(const std::string& name, const Scope& scope) const {
  for (const Scope* s = &scope; s; s = s->parent) {
    charge(s->variables.size() / 16);
    for (const auto& [known, value] : s->variables)
      if (known == name) return value;
  }
  if (const Value* v = variables_.dict()->find(name)) return *v;
  if (is_global(name)) return Value{std::make_shared<const Callable>(Callable{Callable::global, name})};
  for (const std::string_view other : {"cycler", "joiner", "lipsum", "varargs", "kwargs", "self"})
    if (name == other) return not_covered("'" + name + "' of Jinja is not covered");
  return undefined("'" + name + "' is undefined");
}

Result<Arguments> Interpreter::arguments(const Node& node, Scope& scope) {
  Arguments given;
  INVAR_TRY(given.positional, evaluate_all(node.arguments, scope));
  for (const auto& [name, child] : node.named) {
    INVAR_TRY(Value v, evaluate(*child, scope));
    given.named.emplace_back(name, std::move(v));
  }
  if (node.star) {
    INVAR_TRY(const Value v, evaluate(*node.star, scope));
    INVAR_TRY(std::vector<Value> more, iterate(v));
    std::move(more.begin(), more.end(), std::back_inserter(given.positional));
  }
  if (node.double_star) {
    INVAR_TRY(const Value v, evaluate(*node.double_star, scope));
    if (!v.dict()) return unsupported(v, "argument after ** must be a mapping");
    INVAR_CHECK_OK(spend(v.dict()->members.size()));
    for (const auto& [key, value] : v.dict()->members) {
      INVAR_TRY(const std::string name, string_of(key, "a name of an argument"));
      given.named.emplace_back(name, value);
    }
  }
  return given;
}

// a < b < c: the operands are computed once, up to the first comparison that does not hold.
Result<Value> Interpreter::comparison(const Node& node, Scope& scope) {
  INVAR_TRY(Value left, evaluate(*node.children[0], scope));
  for (size_t i = 0; i < node.operators.size(); ++i) {
    INVAR_TRY(Value right, evaluate(*node.children[i + 1], scope));
    INVAR_TRY(const bool holds, compare(node.operators[i], left, right));
    if (!holds) return Value{false};
    left = std::move(right);
  }
  return Value{true};
}

// Long because it is one switch over the kinds of expressions.
Result<Value> Interpreter::evaluate_unplaced(const Node& node, Scope& scope) {
  const auto child = [&](size_t i) { return evaluate(*node.children[i], scope); };
  switch (node.kind) {
    case Node::constant: return node.value;
    case Node::variable: return variable(node.name, scope);
    case Node::list:
    case Node::tuple: {
      INVAR_TRY(std::vector<Value> elements, evaluate_all(node.children, scope));
      return checked(
          sequence(node.kind == Node::list ? Sequence::list : Sequence::tuple, std::move(elements)));
    }
    case Node::dict: {
      INVAR_TRY(std::vector<Value> all, evaluate_all(node.children, scope));
      std::vector<std::pair<Value, Value>> members;
      for (size_t i = 0; i < all.size(); i += 2) {
        if (!hashable(all[i])) return bad_input("unhashable type: '" + std::string(type_name(all[i])) + "'");
        members.emplace_back(all[i], all[i + 1]);
      }
      return checked(dict(std::move(members)));
    }
    case Node::attribute: {
      INVAR_TRY(const Value of, child(0));
      return attribute(of, node.name);
    }
    case Node::item: {
      INVAR_TRY(const Value of, child(0));
      if (node.children[1]->kind == Node::slice)
        return slice(of, *node.children[0], *node.children[1], scope);
      INVAR_TRY(const Value key, child(1));
      return item(of, key);
    }
    case Node::call: {
      INVAR_TRY(const Value callee, child(0));
      INVAR_TRY(Arguments given, arguments(node, scope));
      return call(callee, std::move(given));
    }
    case Node::filter: {
      Value input = scope.variables.empty() ? Value{} : scope.variables[0].second;  // of a block
      if (node.children[0]) {
        INVAR_TRY(input, child(0));
      }
      INVAR_TRY(const Arguments given, arguments(node, scope));
      INVAR_TRY(Value made, filter(node.name, input, given));
      return checked(std::move(made));
    }
    case Node::test: {
      INVAR_TRY(const Value operand, child(0));
      INVAR_TRY(const Arguments given, arguments(node, scope));
      INVAR_TRY(const bool holds, test(node.name, operand, given));
      return Value{holds};
    }
    case Node::unary: {
      INVAR_TRY(const Value operand, child(0));
      return unary(node.name, operand);
    }
    case Node::binary: {
      INVAR_TRY(const Value a, child(0));
      INVAR_TRY(const Value b, child(1));
      INVAR_TRY(Value made, binary(*this, node.name, a, b));
      return checked(std::move(made));
    }
    case Node::logical: {
      INVAR_TRY(Value a, child(0));
      if (truth(a) == (node.name == "or")) return a;
      return child(1);
    }
    case Node::concat: {
      INVAR_TRY(const std::vector<Value> parts, evaluate_all(node.children, scope));
      std::string joined;
      for (const Value& part : parts) {
        INVAR_TRY(const std::string s, str(part));
        joined += s;
        if (joined.size() > kLongestText) return too_long("~");
      }
      return checked(text(std::move(joined)));
    }
    case Node::comparison: return comparison(node, scope);
    case Node::conditional: {
      INVAR_TRY(const Value condition, child(0));
      if (truth(condition)) return child(1);
      if (node.children[2]) return child(2);
      return undefined("the inline if-expression on line " + std::to_string(node.line) +
                       " evaluated to false and no else section was defined.");
    }
    default: return Error{Code::internal, "an expression of an unknown kind"};
  }
}

Result<std::vector<Value>> Interpreter::iterate(const Value& v) {
  if (v.undefined()) return std::vector<Value>();
  if (const Sequence* s = v.sequence()) {
    INVAR_CHECK_OK(spend(s->elements.size()));
    if (s->kind == Sequence::generator && std::exchange(s->consumed, true)) return std::vector<Value>();
    return s->elements;
  }
  std::vector<Value> items;
  if (const Dict* d = v.dict()) {
    INVAR_CHECK_OK(spend(d->members.size()));
    for (const auto& [key, value] : d->members) items.push_back(key);
    return items;
  }
  if (const std::string* s = v.string()) {
    INVAR_CHECK_OK(spend(kNewValue * s->size()));
    for (const char32_t c : code_points(*s)) items.push_back(text(utf8(std::u32string(1, c))));
    return items;
  }
  if (const auto* loop = std::get_if<std::shared_ptr<Loop>>(&v.v); loop)
    return not_covered("a loop object is iterated over");
  return bad_input("'" + std::string(type_name(v)) + "' object is not iterable");
}

Result<Value> Interpreter::slice(const Value& of, const Node& sliced, const Node& node, Scope& scope) {
  std::optional<int64_t> parts[3];
  for (size_t i = 0; i < 3; ++i) {
    if (!node.children[i]) continue;
    INVAR_TRY(const Value v, evaluate(*node.children[i], scope));
    if (v.none()) continue;
    parts[i] = v.integer();
    if (!parts[i]) return unsupported(v, "slice indices must be integers or None");
  }
  if (of.undefined()) return unsupported(of, "");
  const Sequence* s = of.sequence();
  const bool is_list =
      s && (s->kind == Sequence::list || s->kind == Sequence::tuple || s->kind == Sequence::range);
  if (!is_list && !of.string()) {
    const std::string what = "'" + std::string(type_name(of)) + "' object has no slices";
    for (const Node::Kind literal : {Node::constant, Node::list, Node::tuple, Node::dict})
      if (sliced.kind == literal) return not_covered(what);  // which jinja2 makes undefined
    return bad_input(what);
  }
  const std::u32string characters = s ? U"" : code_points(*of.string());
  const auto n = static_cast<int64_t>(s ? s->elements.size() : characters.size());
  INVAR_CHECK_OK(spend(s ? s->elements.size() : 0));
  const int64_t step = parts[2].value_or(1);
  if (step == 0) return bad_input("slice step cannot be zero");
  const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
  const auto clamped = [&](std::optional<int64_t> at, int64_t otherwise) {
    if (!at) return otherwise;
    return std::clamp(*at < 0 ? std::max(*at, -n - 1) + n : *at, low, high);
  };
  const int64_t begin = clamped(parts[0], step < 0 ? high : low),
                end = clamped(parts[1], step < 0 ? low : high);
  std::vector<Value> chosen;
  std::u32string kept;
  const int64_t wide = std::clamp(step, -n - 1, n + 1);  // no sum of it overflows
  for (int64_t i = begin; step < 0 ? i > end : i < end; i += wide) {
    if (s)
      chosen.push_back(s->elements[static_cast<size_t>(i)]);
    else
      kept += characters[static_cast<size_t>(i)];
  }
  return checked(s ? sequence(s->kind, std::move(chosen)) : text(utf8(kept)));
}

}  // namespace invar::prompt::jinja
