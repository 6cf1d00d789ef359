// Evaluates the tree of a template. Everything is bounded: steps, bytes that values hold, output,
// depth of the recursion.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prompt/jinja/syntax/syntax.h"
#include "prompt/jinja/template.h"

namespace invar::prompt::jinja {

// The variables of a block; what is not found there is sought in the parent.
struct Scope {
  Scope* parent;
  std::vector<std::pair<std::string_view, Value>> variables = {};
  bool captured = false;  // a macro lives in it
};

struct Loop {
  std::vector<Value> items;
  size_t index = 0;
  int depth = 1;
  const Node* node;
  Scope* scope;
  std::vector<Value> last = {};  // arguments of the last call of changed()
  bool asked = false;
};

struct Callable {
  enum Kind { macro, method, global, loop } kind;
  std::string name;
  const Node* node = nullptr;  // of a macro, or the block of `caller`
  Scope* scope = nullptr;      // where it was defined
  Value receiver = {};         // of a method
  std::shared_ptr<Loop> recursion = {};
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};
// The values of parameters, null where none is given.
using BoundArguments = std::vector<const Value*>;
// `parameters` are names with a comma between. Errors: too many, unknown, or given twice.
Result<BoundArguments> bind_arguments(const std::string& function, std::string_view parameters,
                                      const Arguments&);

class Interpreter {
 public:
  Interpreter(const Value& variables, const Date& date);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Result<std::string> render(const Nodes&);
  bool used_date() const { return used_date_; }

  // Filters, tests, methods and functions call these. Their errors have no place; the node adds it.
  Status spend(size_t steps);  // charges; an error where the time or the memory is used up
  Result<std::vector<Value>> iterate(const Value&);
  Result<Value> call(const Value& callee, Arguments);
  Result<Value> filter(const std::string& name, const Value& input, const Arguments&);
  Result<bool> test(const std::string& name, const Value& operand, const Arguments&);
  Result<Value> attribute(const Value&, const std::string& name);  // a.name
  Result<Value> item(const Value&, const Value& key);              // a[key]
  Result<Value> new_namespace(Arguments);
  const Date& date() { return used_date_ = true, date_; }

 private:
  static constexpr size_t kMostSteps = 20'000'000, kMostBytes = size_t{512} << 20,
                          kMostOutput = size_t{64} << 20;
  static constexpr int kDeepest = 700;
  enum class Flow { next, stop_loop, next_round };

  // statements.cc
  Status run(const Nodes&, Scope&, std::string& out);
  Status run(const Node&, Scope&, std::string& out);
  Status run_loop(const Node&, Scope&, std::string& out, std::vector<Value> items, int depth);
  Result<std::vector<Value>> loop_items(const Node&, Scope&, const Value& iterable);
  Status assign(const Node& target, Scope&, const Value&);
  Result<Value> call_macro(const Callable&, Arguments);
  Result<std::string> block(const Nodes&, Scope& parent);

  // expressions.cc
  Result<Value> evaluate(const Node&, Scope&);
  Result<Value> evaluate_unplaced(const Node&, Scope&);
  Result<std::vector<Value>> evaluate_all(const Nodes&, Scope&);
  Result<Arguments> arguments(const Node&, Scope&);
  Result<Value> variable(const std::string& name, const Scope&) const;
  Result<Value> comparison(const Node&, Scope&);
  Result<Value> slice(const Value&, const Node& of, const Node& range, Scope&);
  Result<Value> checked(Value);  // its depth and the memory that all values take

  Error place(const Node&, Error);
  Scope& open_scope(Scope* parent);
  void close_scope(Scope&);

  const Value& variables_;
  const Date date_;
  bool used_date_ = false, placed_ = false;
  const size_t bytes_before_;
  int depth_ = 0;
  Flow flow_ = Flow::next;
  std::deque<Scope> scopes_;
  std::deque<Namespace> namespaces_;
};

// operators.cc
Result<Value> unary(const std::string& op, const Value&);
Result<Value> binary(Interpreter&, const std::string& op, const Value&, const Value&);
Result<bool> compare(const std::string& op, const Value&, const Value&);
Result<Value> format_percent(const std::string& format, const Value& arguments);
// str.format with {}, {0} and {name}.
Result<Value> format_braces(const std::string& format, const Arguments&);
// attributes.cc. Null where the type of the value has no such method.
using Function = Result<Value> (*)(Interpreter&, const Value& receiver, const BoundArguments&);
Result<Value> call_method(Interpreter&, const Value& receiver, const std::string& name, const Arguments&);
enum class Method { none, safe, unsafe };
Method method_of(const Value&, std::string_view name);
// globals.cc
bool is_global(std::string_view name);
Result<Value> call_global(Interpreter&, const std::string& name, Arguments);
Result<std::string> strftime(const std::string& format, const Date&);

// The error for a bad operand. It says what is undefined where the value is.
Error unsupported(const Value&, const std::string& what);
// The values of arguments: an absent one is `otherwise`.
Result<int64_t> integer_or(const Value*, int64_t otherwise, const char* parameter);
Result<std::string> string_of(const Value&, const char* what);

}  // namespace invar::prompt::jinja
