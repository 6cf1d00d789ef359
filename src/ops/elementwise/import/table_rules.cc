// The rules of operators that become one operation of the same operands, from ops.toml.
#include "compiler/room_api.h"
#include "ops/elementwise/import/rules.h"
#include "ops/elementwise/table.h"

namespace invar::compiler {
Result<Value> second_operand(NodeView& node) {
  if (node.version() >= 7) {
    INVAR_CHECK_OK(node.expect(2, 2, {}));
    return node.in(1);
  }
  INVAR_CHECK_OK(node.expect(2, 2, {"axis", "broadcast"}));
  INVAR_TRY(const int64_t broadcasts, node.int_attr("broadcast", 0));
  const Shape to = node.shape(0);
  Shape shape = node.shape(1);
  const DimText text = "shapes " + text_of(to) + " and " + text_of(shape);
  if (!broadcasts && shape != to)
    return unequal_shapes(to, shape, text + " differ, and \"broadcast\" is not 1");
  if (!node.attribute("axis")) return node.in(1);
  INVAR_TRY(int64_t axis, node.int_attr("axis", 0));
  if (axis < 0) axis += static_cast<int64_t>(to.size());
  const int64_t after = static_cast<int64_t>(to.size()) - axis - static_cast<int64_t>(shape.size());
  if (axis < 0 || after < 0) return bad_input(text + " do not broadcast from axis " + std::to_string(axis));
  shape.insert(shape.end(), static_cast<size_t>(after), Dim::of(1));
  return reshape(node, node.in(1), shape);
}

Status check_second_operand(NodeView& node, Value result) {
  const Shape made = shape_of(result.getType());
  if (node.version() >= 7 || made == node.shape(0)) return {};
  return unequal_shapes(made, node.shape(0), "operand 1 does not broadcast to operand 0");
}

namespace {

// Tells what a constructor of kinds.h means for a rule.
struct Signature {
  unsigned operands;
  Widening widens = Widening::floats;
};
namespace signature {
constexpr Signature light{1}, light_real{1}, unary{1}, binary64{1}, scaled{1}, scaled_heavy{1}, test_real{1},
    test{1}, negation{1}, unary_number{1, Widening::integers}, unary_bits{1, Widening::integers}, binary{2},
    binary_graph{2}, binary_heavy{2}, power{2}, logic{2}, binary_wrapping{2, Widening::integers},
    binary_number{2, Widening::integers}, binary_bits{2, Widening::integers},
    binary_integer{2, Widening::integers}, compare{2, Widening::integers}, compare_all{2, Widening::integers},
    ternary_select{3};
}

template <class Op>
Status lower_binary(NodeView& node) {
  INVAR_TRY(const Value other, second_operand(node));
  INVAR_TRY(Value out, node.make<Op>({node.in(0), other}));
  INVAR_CHECK_OK(check_second_operand(node, out));
  return node.replace(out);
}

// NAME-OPSET, or nothing.
constexpr bool is_operator(std::string_view text) {
  const size_t dash = text.rfind('-');
  const std::string_view since = text.substr(dash + 1);
  return text.empty() ||
         (dash != text.npos && !since.empty() && since.find_first_not_of("0123456789") == since.npos);
}
void add(RuleRegistry& registry, llvm::StringRef onnx, Rule rule, Widening widens) {
  const auto [op_type, opset] = onnx.rsplit('-');
  int64_t since;
  if (!opset.getAsInteger(10, since)) registry.add_rule(op_type, since, rule, widens);
}

}  // namespace

void import_table(RuleRegistry& registry) {
#define INVAR_EACH(how, name, onnx, ...)                                                      \
  {                                                                                           \
    static_assert(is_operator(onnx), "table.h: the operator of " #name " is not NAME-OPSET"); \
    struct Op {                                                                               \
      static llvm::StringRef getOperationName() { return "repro." #name; }                    \
    };                                                                                        \
    add(                                                                                      \
        registry, onnx,                                                                       \
        [](NodeView& node) {                                                                  \
          constexpr unsigned operands = signature::how.operands;                              \
          return operands == 2 ? lower_binary<Op>(node) : lower_to<Op>(node, operands);       \
        },                                                                                    \
        signature::how.widens);                                                               \
  }
  INVAR_ELEMENTWISE(INVAR_EACH)
#undef INVAR_EACH
}

}  // namespace invar::compiler
