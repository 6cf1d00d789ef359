// The rules of operators that become one operation of the same operands, from table.h.
#include "ops/elementwise/import/rules.h"
#include "ops/elementwise/table.h"

namespace invar::compiler {
namespace {

// What follows for a rule from a constructor of kinds.h.
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
#define INVAR_EACH(how, name, onnx, ...)                                                            \
  {                                                                                                 \
    static_assert(is_operator(onnx), "table.h: the operator of " #name " is not NAME-OPSET");       \
    struct Op {                                                                                     \
      static llvm::StringRef getOperationName() { return "repro." #name; }                          \
    };                                                                                              \
    add(                                                                                            \
        registry, onnx, [](NodeView& node) { return lower_to<Op>(node, signature::how.operands); }, \
        signature::how.widens);                                                                     \
  }
  INVAR_ELEMENTWISE(INVAR_EACH)
#undef INVAR_EACH
}

}  // namespace invar::compiler
