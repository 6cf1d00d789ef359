// The registry of all rooms' rules, and the creation of operations of the repro dialect.
#include "compiler/lowering/rule_registry.h"

#include "base/hash/sha256.h"
#include "base/opset.h"
#include "compiler/dialects/constant_data.h"
#include "rooms.inc"

namespace invar::compiler {

const RuleRegistry& RuleRegistry::all() {
  static const RuleRegistry registry = [] {
    RuleRegistry r;
#define INVAR_ROOM(name) import_##name(r);
    INVAR_ROOMS
#undef INVAR_ROOM
#define INVAR_DECOMPOSITION(name) decompose_##name(r);
    INVAR_DECOMPOSITIONS
#undef INVAR_DECOMPOSITION
    return r;
  }();
  return registry;
}

void RuleRegistry::add_rule(llvm::StringRef op_type, int64_t since, Rule rule, Widening widens,
                            llvm::StringLiteral types) {
  rules_[op_type.str()] = {since, rule, widens, types};
}

static std::string registered_name(llvm::StringRef domain, llvm::StringRef op_type) {
  const bool standard = domain.empty() || domain == "ai.onnx";
  return standard ? op_type.str() : (domain + "." + op_type).str();
}
const RuleRegistry::Entry* RuleRegistry::find(llvm::StringRef domain, llvm::StringRef op_type) const {
  auto it = rules_.find(registered_name(domain, op_type));
  return it == rules_.end() ? nullptr : &it->second;
}
Expansion RuleRegistry::find_expansion(llvm::StringRef domain, llvm::StringRef op_type) const {
  auto it = expansions_.find(registered_name(domain, op_type));
  return it == expansions_.end() ? nullptr : it->second;
}

Value make_constant(OpBuilder& build, Location loc, llvm::StringRef bytes, DType dtype,
                    llvm::ArrayRef<int64_t> shape) {
  const std::string hex = hex_from_bytes(std::string_view(bytes));
  // The name is derived from type, shape and bytes, since names are unique in a plan.
  std::string name = std::string(name_of(dtype)) + " ";
  for (size_t d = 0; d < shape.size(); ++d)
    name += std::to_string(shape[d]) + (d + 1 == shape.size() ? " " : "x");
  name += hex.size() <= 32 ? hex : to_hex(sha256(hex));
  return build.create<ReproWeightOp>(
      loc, RankedTensorType::get(shape, type_of(build.getContext(), dtype)), build.getStringAttr(name),
      build.getStringAttr(""), build.getI64IntegerAttr(0),
      build.getI64IntegerAttr(static_cast<int64_t>(bytes.size())), build.getStringAttr(bytes), UnitAttr());
}

Operation* make_op(OpBuilder& build, Location loc, llvm::StringRef op, ValueRange operands,
                   llvm::ArrayRef<NamedAttribute> attrs, Type result) {
  OperationState state(loc, op);
  state.addOperands(operands);
  state.addAttributes(attrs);
  std::string_view room(op);
  room.remove_prefix(ReproDialect::getDialectNamespace().size() + 1);
  if (const OpInfo* info = op_info(room)) {
    state.addAttribute("numerics", build.getStringAttr(llvm::StringRef(info->numerics)));
    state.addAttribute("version", build.getI64IntegerAttr(info->version));
  }
  state.addTypes(result);
  return build.create(state);
}

Result<Operation*> make_checked(OpBuilder& build, Location loc, llvm::StringRef op, ValueRange operands,
                                llvm::ArrayRef<NamedAttribute> attrs, Type type,
                                std::optional<Constraint>* constraint) {
  MLIRContext* context = build.getContext();
  InferenceError refusal;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic& d) {
    if (refusal.error.message.empty()) refusal = inference_error_of(d);
  });
  Operation* made = make_op(build, loc, op, operands, attrs, type ? type : operands[0].getType());
  // Element types and other constraints of the operation (after the shapes fit) are a matter of
  // coverage.
  bool fits = true;
  if (!type) {
    auto infer = dyn_cast<InferTypeOpInterface>(made);
    if (!infer) refusal = {not_covered("the type of its result does not follow from its operands")};
    SmallVector<Type> types;
    fits = infer && succeeded(infer.inferReturnTypes(context, made->getLoc(), made->getOperands(),
                                                     made->getAttrDictionary(), made->getPropertiesStorage(),
                                                     made->getRegions(), types));
    if (fits) made->getResult(0).setType(types[0]);
  }
  bool shapes_fit = fits;
  if (fits) {
    auto registered = made->getName().getRegisteredInfo();
    fits = registered && succeeded(registered->verifyInvariants(made));
  }
  if (fits) return made;
  made->erase();
  if (constraint) *constraint = refusal.constraint;
  if (refusal.operand) refusal.error.message = refusal_of_type(operands[*refusal.operand].getType());
  if (shapes_fit) refusal.error.code = Code::not_covered;
  return refusal.error;
}

}  // namespace invar::compiler
