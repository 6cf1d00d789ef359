// x is NAME
#include "prompt/jinja/evaluate/interpreter.h"
#include "prompt/jinja/value/python_text.h"

namespace invar::prompt::jinja {
namespace {

bool is_bool(const Value& v) {
  return std::holds_alternative<bool>(v.v);
}
bool is_integer(const Value& v) {
  return std::holds_alternative<int64_t>(v.v);
}

// The test of one operand; absent: there is none of this name.
std::optional<bool> of_type(const std::string& name, const Value& v) {
  const Sequence* s = v.sequence();
  if (name == "defined") return !v.undefined();
  if (name == "undefined") return v.undefined();
  if (name == "none") return v.none();
  if (name == "boolean") return is_bool(v);
  if (name == "true") return is_bool(v) && truth(v);
  if (name == "false") return is_bool(v) && !truth(v);
  if (name == "integer") return is_integer(v);
  if (name == "float") return std::holds_alternative<double>(v.v);
  if (name == "number") return v.number().has_value();
  if (name == "string") return v.string() != nullptr;
  if (name == "mapping") return v.dict() != nullptr;
  const bool loop = std::holds_alternative<std::shared_ptr<Loop>>(v.v);
  if (name == "callable")
    return v.undefined() || loop || std::holds_alternative<std::shared_ptr<const Callable>>(v.v);
  if (name == "escaped") return v.markup();
  if (name == "iterable") return v.undefined() || v.string() || v.dict() || s || loop;
  if (name == "sequence")
    return v.undefined() || v.string() || v.dict() ||
           (s && (s->kind == Sequence::list || s->kind == Sequence::tuple || s->kind == Sequence::range));
  return std::nullopt;
}

const char* comparison_of(const std::string& name) {
  constexpr std::pair<const char*, const char*> names[] = {
      {"eq", "=="}, {"equalto", "=="},    {"==", "=="}, {"ne", "!="}, {"!=", "!="},      {"gt", ">"},
      {"ge", ">="}, {"greaterthan", ">"}, {"lt", "<"},  {"le", "<="}, {"lessthan", "<"}, {">", ">"},
      {">=", ">="}, {"<", "<"},           {"<=", "<="}, {"in", "in"}};
  for (const auto& [known, op] : names)
    if (name == known) return op;
  return nullptr;
}

}  // namespace

Result<bool> Interpreter::test(const std::string& name, const Value& v, const Arguments& given) {
  INVAR_CHECK_OK(spend(1));
  const auto one = [&](const char* parameter) -> Result<const Value*> {
    INVAR_TRY(const BoundArguments bound, bind_arguments("the test '" + name + "'", parameter, given));
    if (!bound[0]) return bad_input("the test '" + name + "' needs an argument");
    return bound[0];
  };
  if (const auto holds = of_type(name, v)) {
    INVAR_TRY(const BoundArguments none, bind_arguments("the test '" + name + "'", "", given));
    return *holds;
  }
  if (const char* op = comparison_of(name)) {
    INVAR_TRY(const Value* const other, one(name == "in" ? "seq" : "b"));
    return compare(op, v, *other);
  }
  if (name == "odd" || name == "even" || name == "divisibleby") {
    Value divisor{int64_t{2}};
    if (name == "divisibleby") {
      INVAR_TRY(const Value* const given_divisor, one("num"));
      divisor = *given_divisor;
    }
    INVAR_TRY(const Value rest, binary(*this, "%", v, divisor));
    return equal(rest, Value{int64_t{name == "odd"}});
  }
  if (name == "lower" || name == "upper") {
    INVAR_TRY(const std::string shown, str(v));
    return is_class(shown, name == "lower" ? "islower" : "isupper");
  }
  if (name == "sameas") {
    INVAR_TRY(const Value* const other, one("other"));
    const bool plain = v.none() || is_bool(v) || other->none() || is_bool(*other);
    if (!plain) return not_covered("the test 'sameas' of other values than true, false and none");
    return v.v.index() == other->v.index() && equal(v, *other);
  }
  if (name == "filter" || name == "test") return not_covered("the test '" + name + "' is not covered");
  return bad_input("No test named '" + name + "'.");
}

}  // namespace invar::prompt::jinja
