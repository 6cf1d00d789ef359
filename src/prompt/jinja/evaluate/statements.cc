#include "prompt/jinja/evaluate/interpreter.h"

namespace invar::prompt::jinja {

Interpreter::Interpreter(const Value& variables, const Date& date)
    : variables_(variables), date_(date), bytes_before_(live_bytes()) {
  meter() = {kMostSteps, false};
}

Interpreter::~Interpreter() {
  meter() = {};
}

Status Interpreter::spend(size_t steps) {
  if (!charge(steps))
    return not_covered("the template takes more than " + std::to_string(kMostSteps) +
                       " steps: is it in a loop?");
  if (live_bytes() - bytes_before_ > kMostBytes)
    return not_covered("the template takes more than " + std::to_string(kMostBytes >> 20) + " MiB of memory");
  return {};
}

Error Interpreter::place(const Node& node, Error e) {
  if (const Status enough = spend(0); !enough && !placed_) e = enough.error();  // whatever came of it
  if (!placed_) e.message = "line " + std::to_string(node.line) + ": " + e.message;
  placed_ = true;
  return e;
}

Scope& Interpreter::open_scope(Scope* parent) {
  return scopes_.emplace_back(Scope{parent});
}

// Scopes end in the reverse order of their beginnings. One that a macro lives in stays.
void Interpreter::close_scope(Scope& scope) {
  if (!scope.captured && &scopes_.back() == &scope) scopes_.pop_back();
}

Result<std::string> Interpreter::render(const Nodes& nodes) {
  std::string out;
  INVAR_CHECK_OK(run(nodes, open_scope(nullptr), out));
  INVAR_CHECK_OK(spend(0));
  return out;
}

Status Interpreter::run(const Nodes& nodes, Scope& scope, std::string& out) {
  for (const NodePtr& node : nodes) {
    if (++depth_ > kDeepest) return place(*node, not_covered("the template nests deeper than is allowed"));
    if (Status enough = spend(1); !enough) return place(*node, enough.error());
    const Status status = run(*node, scope, out);
    --depth_;
    if (!status) return place(*node, status.error());
    if (out.size() > kMostOutput)
      return place(*node, not_covered("the template makes more than " + std::to_string(kMostOutput >> 20) +
                                      " MiB of text"));
    if (flow_ != Flow::next) break;
  }
  return {};
}

// The text of statements in a scope of their own.
Result<std::string> Interpreter::block(const Nodes& nodes, Scope& parent) {
  Scope& scope = open_scope(&parent);
  std::string text;
  INVAR_CHECK_OK(run(nodes, scope, text));
  close_scope(scope);
  return text;
}

// Long because it is one switch over the kinds of statements.
Status Interpreter::run(const Node& node, Scope& scope, std::string& out) {
  const auto print = [&](const Value& v) -> Status {
    INVAR_TRY(const std::string shown, str(v));
    INVAR_CHECK_OK(spend(shown.size() / kBytesCopied));
    out += shown;
    return {};
  };
  switch (node.kind) {
    case Node::data: return out += node.name, spend(node.name.size() / kBytesCopied);
    case Node::output:
      for (const NodePtr& child : node.children) {
        INVAR_TRY(const Value v, evaluate(*child, scope));
        INVAR_CHECK_OK(print(v));
      }
      return {};
    case Node::set: {
      INVAR_TRY(const Value v, evaluate(*node.children[1], scope));
      return assign(*node.children[0], scope, v);
    }
    case Node::set_block: {
      INVAR_TRY(std::string made, block(node.body, scope));
      Value v = text(std::move(made));
      if (node.children[1]) {
        Scope& inner = open_scope(&scope);
        inner.variables.emplace_back("", std::move(v));
        INVAR_TRY(v, evaluate(*node.children[1], inner));
        close_scope(inner);
      }
      return assign(*node.children[0], scope, v);
    }
    case Node::filter_block: {
      INVAR_TRY(std::string made, block(node.body, scope));
      Scope& inner = open_scope(&scope);
      inner.variables.emplace_back("", text(std::move(made)));
      INVAR_TRY(const Value v, evaluate(*node.children[0], inner));
      close_scope(inner);
      return print(v);
    }
    case Node::loop: {
      INVAR_TRY(const Value iterable, evaluate(*node.children[1], scope));
      INVAR_TRY(std::vector<Value> items, loop_items(node, scope, iterable));
      return run_loop(node, scope, out, std::move(items), 1);
    }
    case Node::branch:
      for (size_t i = 0; i < node.children.size(); ++i) {
        INVAR_TRY(const Value v, evaluate(*node.children[i], scope));
        if (truth(v)) return run(node.bodies[i], scope, out);
      }
      return run(node.bodies.back(), scope, out);
    case Node::macro: {
      for (Scope* s = &scope; s && !s->captured; s = s->parent) s->captured = true;
      Callable macro{Callable::macro, node.name, &node, &scope};
      return assign(node, scope, {std::make_shared<const Callable>(std::move(macro))});
    }
    case Node::call_block: {
      for (Scope* s = &scope; s && !s->captured; s = s->parent) s->captured = true;
      const Node& called = *node.children[0];
      INVAR_TRY(const Value callee, evaluate(*called.children[0], scope));
      INVAR_TRY(Arguments given, arguments(called, scope));
      given.named.emplace_back(
          "caller",
          Value{std::make_shared<const Callable>(Callable{Callable::macro, "caller", &node, &scope})});
      INVAR_TRY(const Value v, call(callee, std::move(given)));
      return print(v);
    }
    case Node::with: {
      Scope& inner = open_scope(&scope);
      for (size_t i = 0; i < node.children.size(); i += 2) {  // values know nothing of one another
        INVAR_TRY(Value v, evaluate(*node.children[i + 1], scope));
        inner.variables.emplace_back(node.children[i]->name, std::move(v));
      }
      INVAR_CHECK_OK(run(node.body, inner, out));
      close_scope(inner);
      return {};
    }
    case Node::generation: {
      INVAR_TRY(const std::string made, block(node.body, scope));
      out += made;
      return {};
    }
    case Node::stop_loop: flow_ = node.name == "break" ? Flow::stop_loop : Flow::next_round; return {};
    default: return Error{Code::internal, "a statement of an unknown kind"};
  }
}

Result<std::vector<Value>> Interpreter::loop_items(const Node& node, Scope& scope, const Value& iterable) {
  INVAR_TRY(std::vector<Value> all, iterate(iterable));
  if (!node.children[2]) return all;
  std::vector<Value> kept;
  for (Value& item : all) {
    Scope& inner = open_scope(&scope);
    INVAR_CHECK_OK(assign(*node.children[0], inner, item));
    INVAR_TRY(const Value chosen, evaluate(*node.children[2], inner));
    close_scope(inner);
    if (truth(chosen)) kept.push_back(std::move(item));
  }
  return kept;
}

Status Interpreter::run_loop(const Node& node, Scope& scope, std::string& out, std::vector<Value> items,
                             int depth) {
  const auto loop = std::make_shared<Loop>(Loop{std::move(items), 0, depth, &node, &scope});
  for (; loop->index < loop->items.size(); ++loop->index) {
    INVAR_CHECK_OK(spend(1));
    Scope& inner = open_scope(&scope);
    inner.variables.emplace_back("loop", Value{loop});
    INVAR_CHECK_OK(assign(*node.children[0], inner, loop->items[loop->index]));
    INVAR_CHECK_OK(run(node.body, inner, out));
    close_scope(inner);
    const Flow flow = std::exchange(flow_, Flow::next);
    if (flow == Flow::stop_loop) break;
  }
  if (!loop->items.empty()) return {};
  Scope& inner = open_scope(&scope);
  INVAR_CHECK_OK(run(node.otherwise, inner, out));
  close_scope(inner);
  return {};
}

// A variable of this scope, a member of a namespace, or the elements of a tuple. A macro is the
// variable of its name.
Status Interpreter::assign(const Node& target, Scope& scope, const Value& v) {
  if (target.kind == Node::tuple) {
    INVAR_TRY(const std::vector<Value> elements, iterate(v));
    const size_t wanted = target.children.size();
    if (elements.size() != wanted)
      return bad_input((elements.size() < wanted ? "not enough values to unpack (expected "
                                                 : "too many values to unpack (expected ") +
                       std::to_string(wanted) + ")");
    for (size_t i = 0; i < wanted; ++i) INVAR_CHECK_OK(assign(*target.children[i], scope, elements[i]));
    return {};
  }
  if (target.kind == Node::member) {
    INVAR_TRY(const Value of, variable(target.name, scope));
    Namespace* const* space = std::get_if<Namespace*>(&of.v);
    if (!space) return bad_input("cannot assign attribute on non-namespace object " + target.name);
    if (target.operators[0].starts_with('_'))
      return bad_input("a namespace has no attributes that begin with an underscore: " + target.operators[0]);
    INVAR_CHECK_OK(spend((*space)->members.size() / 4));
    for (auto& [name, value] : (*space)->members)
      if (name == target.operators[0]) return value = v, Status();
    (*space)->members.emplace_back(target.operators[0], v);
    return {};
  }
  for (auto& [name, value] : scope.variables)
    if (name == target.name) return value = v, Status();
  scope.variables.emplace_back(target.name, v);
  return {};
}

Result<Value> Interpreter::call_macro(const Callable& macro, Arguments given) {
  const Node& node = *macro.node;
  Scope& scope = open_scope(macro.scope);
  if (given.positional.size() > node.parameters.size())
    return bad_input("macro '" + macro.name + "' takes not more than " +
                     std::to_string(node.parameters.size()) + " argument(s)");
  std::vector<const Value*> values(node.parameters.size());
  for (size_t i = 0; i < given.positional.size(); ++i) values[i] = &given.positional[i];
  for (const auto& [name, value] : given.named) {
    size_t i = 0;
    while (i < values.size() && node.parameters[i].first != name) ++i;
    if (i == values.size() && name == "caller" && node.kind == Node::macro) {
      scope.variables.emplace_back("caller", value);
      continue;
    }
    if (i == values.size())
      return bad_input("macro '" + macro.name + "' takes no keyword argument '" + name + "'");
    if (values[i])
      return bad_input("macro '" + macro.name + "' got two values for the argument '" + name + "'");
    values[i] = &value;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& [name, otherwise] = node.parameters[i];
    Value v = values[i] ? *values[i] : undefined("parameter '" + name + "' was not provided");
    if (!values[i] && otherwise) {
      INVAR_TRY(v, evaluate(*otherwise, scope));
    }
    scope.variables.emplace_back(name, std::move(v));
  }
  std::string out;
  const Flow outer = std::exchange(flow_, Flow::next);
  INVAR_CHECK_OK(run(node.body, scope, out));
  flow_ = outer;
  close_scope(scope);
  return checked(text(std::move(out)));
}

Result<Value> Interpreter::call(const Value& callee, Arguments given) {
  const auto* held = std::get_if<std::shared_ptr<const Callable>>(&callee.v);
  if (const auto* loop = std::get_if<std::shared_ptr<Loop>>(&callee.v)) {
    const Loop& l = **loop;
    if (!l.node->recursive) return bad_input("the loop is not marked 'recursive', so it cannot be called");
    INVAR_TRY(const BoundArguments bound, bind_arguments("loop", "iterable", given));
    if (!bound[0]) return bad_input("loop() needs something to iterate over");
    INVAR_TRY(std::vector<Value> items, loop_items(*l.node, *l.scope, *bound[0]));
    std::string out;
    const Flow outer = std::exchange(flow_, Flow::next);
    if (++depth_ > kDeepest) return not_covered("the template nests deeper than is allowed");
    INVAR_CHECK_OK(run_loop(*l.node, *l.scope, out, std::move(items), l.depth + 1));
    --depth_;
    flow_ = outer;
    return checked(text(std::move(out)));
  }
  if (!held) return unsupported(callee, "'" + std::string(type_name(callee)) + "' object is not callable");
  const std::shared_ptr<const Callable> function = *held;  // it may be replaced while it runs
  INVAR_CHECK_OK(spend(1));
  switch (function->kind) {
    case Callable::macro: return call_macro(*function, std::move(given));
    case Callable::global: return call_global(*this, function->name, std::move(given));
    default: break;
  }
  INVAR_TRY(Value made, call_method(*this, function->receiver, function->name, given));
  return checked(std::move(made));
}

Result<Value> Interpreter::new_namespace(Arguments given) {
  Namespace& space = namespaces_.emplace_back();
  const auto add = [&](const std::string& name, const Value& v) -> Status {
    INVAR_CHECK_OK(spend(1 + space.members.size()));
    if (name.starts_with('_'))
      return bad_input("a namespace has no attributes that begin with an underscore: " + name);
    for (auto& [known, value] : space.members)
      if (known == name) return value = v, Status();
    space.members.emplace_back(name, v);
    return {};
  };
  for (const Value& from : given.positional) {
    if (!from.dict()) return bad_input("namespace() takes a dict and keyword arguments");
    for (const auto& [key, value] : from.dict()->members) {
      INVAR_TRY(const std::string name, string_of(key, "a name of a namespace"));
      INVAR_CHECK_OK(add(name, value));
    }
  }
  for (const auto& [name, value] : given.named) INVAR_CHECK_OK(add(name, value));
  INVAR_CHECK_OK(spend(16));
  return Value{&space};
}

}  // namespace invar::prompt::jinja
