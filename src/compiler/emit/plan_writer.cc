// Translates the repro dialect to a plan: operations become kernel calls in execution order, and
// values get buffer slots.
#include "compiler/dialects/dialects.h"
#include "compiler/dialects/origin.h"
#include "compiler/lowering/dynamic_shapes/data_dependent_dims.h"
#include "compiler/passes/constant_evaluator.h"
#include "compiler/passes/passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace invar::compiler {
namespace {
using namespace mlir;

class PlanTranslator {
 public:
  explicit PlanTranslator(ModuleOp module) : functions_(module) {}
  Result<plan::Plan> run(func::FuncOp);

 private:
  Status add_block(func::FuncOp, std::vector<plan::Node>& nodes);
  Status add_flow(ReproFlowOp, std::vector<plan::Node>& nodes);
  Result<int> add_body(func::FuncOp);
  Result<int> add_value(Value);
  Status add_weight(ReproWeightOp);
  Status add_call(Operation&, std::vector<plan::Node>& nodes);
  Status add_binding(ReproBindOp);
  Status add_port(func::FuncOp, unsigned i, bool input, Value v);

  SymbolTable functions_;
  plan::Plan plan_;
  llvm::DenseMap<Value, plan::Operand> operands_;
  std::map<DimExpr, int> symbols_;
  std::map<std::string, int> weights_;
};

Error invalid_ir(const std::string& what) {
  return {Code::internal, "plan: " + what};
}

Result<int> PlanTranslator::add_value(Value v) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  std::optional<DType> dtype = type ? dtype_of(type.getElementType()) : std::nullopt;
  if (!dtype) return invalid_ir("a value without shape or element type");
  plan::Value made{*dtype, {}, -1};
  for (const Dim& e : shape_of(type)) {
    if (!e.known()) return invalid_ir("an unknown dimension");
    if (e.constant()) {
      made.shape.push_back({e.value, -1});
      continue;
    }
    auto [it, is_new] = symbols_.emplace(e.expr, static_cast<int>(plan_.symbols.size()));
    if (is_new) plan_.symbols.push_back(e.expr);
    made.shape.push_back({0, it->second});
  }
  int index = static_cast<int>(plan_.values.size());
  plan_.values.push_back(std::move(made));
  operands_.insert({v, {plan::Operand::value, index}});
  return index;
}

Status PlanTranslator::add_weight(ReproWeightOp op) {
  const auto [known, is_new] =
      weights_.try_emplace(op.getName().str(), static_cast<int>(plan_.weights.size()));
  auto type = cast<RankedTensorType>(op.getType());
  std::optional<DType> dtype = dtype_of(type.getElementType());
  const auto sha256 = op->getAttrOfType<StringAttr>(kSha256Attr);
  std::optional<Digest> digest = sha256 ? digest_from_hex(std::string_view(sha256.getValue())) : std::nullopt;
  if (!dtype || !digest || !type.hasStaticShape()) return invalid_ir("weight \"" + op.getName().str() + "\"");
  operands_.insert({op.getOut(), {plan::Operand::weight, known->second}});
  if (!is_new) {  // a body and its parent may declare the same weight
    const plan::Weight& w = plan_.weights[known->second];
    return w.sha256 == *digest && w.shape == type.getShape().vec() && w.dtype == *dtype
               ? Status()
               : invalid_ir("weight \"" + w.name + "\" twice");
  }
  plan_.weights.push_back({op.getName().str(), *dtype, type.getShape().vec(), *digest, op.getFile().str(),
                           static_cast<uint64_t>(op.getOffset()), static_cast<uint64_t>(op.getLength())});
  return {};
}

Status PlanTranslator::add_call(Operation& op, std::vector<plan::Node>& nodes) {
  plan::Node node{op.getName().stripDialect().str(),
                  static_cast<int>(op.getAttrOfType<IntegerAttr>("version").getInt()),
                  {},
                  {},
                  -1,
                  {}};
  for (Value in : op.getOperands()) node.in.push_back(operands_.lookup(in));
  INVAR_TRY(node.attrs, kernel_attributes(params_of(&op)));
  if (const auto state = op.getAttrOfType<StringAttr>("state")) {
    node.state = static_cast<int>(plan_.states.size());
    plan_.states.push_back({state.str()});
  }
  INVAR_TRY(const int out, add_value(op.getResult(0)));
  node.out.push_back(out);
  node.origin = origin_of(op.getLoc());
  nodes.push_back(std::move(node));
  return {};
}

Result<int> PlanTranslator::add_body(func::FuncOp function) {
  const int index = static_cast<int>(plan_.bodies.size());
  plan_.bodies.emplace_back();
  plan::Body body;
  for (BlockArgument a : function.getArguments()) {
    INVAR_TRY(const int v, add_value(a));
    body.inputs.push_back(v);
  }
  INVAR_CHECK_OK(add_block(function, body.nodes));
  for (Value v : function.front().getTerminator()->getOperands()) {
    const auto at = operands_.find(v);
    if (at == operands_.end() || at->second.kind != plan::Operand::value)
      return invalid_ir("a body returns no value");
    body.outputs.push_back(at->second.index);
  }
  plan_.bodies[static_cast<size_t>(index)] = std::move(body);
  return index;
}

Status PlanTranslator::add_flow(ReproFlowOp op, std::vector<plan::Node>& nodes) {
  plan::Node node{op.getOp().str(), 1, {}, {}, -1, {}};
  for (Value in : op.getInputs()) node.in.push_back(operands_.lookup(in));
  if (node.op == "loop") node.attrs["carried"] = static_cast<int64_t>(op.getCarried());
  for (Attribute name : op.getBodies()) {
    auto function = functions_.lookup<func::FuncOp>(cast<FlatSymbolRefAttr>(name).getValue());
    if (!function) return invalid_ir("there is no body " + cast<FlatSymbolRefAttr>(name).getValue().str());
    INVAR_TRY(const int made, add_body(function));
    node.bodies.push_back(made);
  }
  for (Value out : op.getOutputs()) {
    INVAR_TRY(const int made, add_value(out));
    node.out.push_back(made);
  }
  node.origin = origin_of(op.getLoc());
  nodes.push_back(std::move(node));
  return {};
}

Status PlanTranslator::add_binding(ReproBindOp op) {
  const plan::Operand value = operands_.lookup(op.getValue());
  const DimExpr name = DimExpr::symbol(op.getName().str());
  const auto [symbol, is_new] = symbols_.emplace(name, static_cast<int>(plan_.symbols.size()));
  if (!is_new || value.kind != plan::Operand::value)
    return invalid_ir("symbol \"" + op.getName().str() + "\"");
  plan_.symbols.push_back(name);
  plan_.bindings.push_back({symbol->second, value.index, static_cast<int64_t>(op.getElement())});
  return {};
}

Status PlanTranslator::add_port(func::FuncOp function, unsigned i, bool input, Value v) {
  auto name = input ? function.getArgAttrOfType<StringAttr>(i, "onnx.name")
                    : function.getResultAttrOfType<StringAttr>(i, "onnx.name");
  plan::Operand operand = operands_.lookup(v);
  if (!name || operand.kind != plan::Operand::value) return invalid_ir("a port without name or value");
  (input ? plan_.inputs : plan_.outputs).push_back({name.str(), operand.index});
  return {};
}

Status PlanTranslator::add_block(func::FuncOp function, std::vector<plan::Node>& nodes) {
  if (auto choices = function->getAttrOfType<ArrayAttr>(kChoicesAttr))
    for (auto choice : choices.getAsRange<StringAttr>()) plan_.choices.push_back(choice.str());
  for (Operation& op : function.front()) {
    if (auto w = dyn_cast<ReproWeightOp>(op)) {
      INVAR_CHECK_OK(add_weight(w));
    }
    if (isa<ReproOp>(op)) {
      INVAR_CHECK_OK(add_call(op, nodes));
    }
    if (auto f = dyn_cast<ReproFlowOp>(op)) {
      INVAR_CHECK_OK(add_flow(f, nodes));
    }
    if (auto b = dyn_cast<ReproBindOp>(op)) {
      INVAR_CHECK_OK(add_binding(b));
    }
  }
  return {};
}

Result<plan::Plan> PlanTranslator::run(func::FuncOp function) {
  plan_.numerics = plan::kNumerics;
  for (BlockArgument a : function.getArguments()) {
    INVAR_TRY([[maybe_unused]] int index, add_value(a));  // the caller feeds it, so no slot
    INVAR_CHECK_OK(add_port(function, a.getArgNumber(), true, a));
  }
  INVAR_CHECK_OK(add_block(function, plan_.nodes));
  std::sort(plan_.choices.begin(), plan_.choices.end());
  plan_.choices.erase(std::unique(plan_.choices.begin(), plan_.choices.end()), plan_.choices.end());
  std::sort(plan_.bindings.begin(), plan_.bindings.end(), [](const plan::Binding& a, const plan::Binding& b) {
    return std::pair(a.value, a.element) < std::pair(b.value, b.element);
  });
  for (OpOperand& out : function.front().getTerminator()->getOpOperands())
    INVAR_CHECK_OK(add_port(function, out.getOperandNumber(), false, out.get()));
  plan::assign_slots(plan_);
  return std::move(plan_);
}

}  // namespace

SmallVector<NamedAttribute> params_of(Operation* op) {
  SmallVector<NamedAttribute> params;
  for (const NamedAttribute a : op->getAttrs())
    if (a.getName() != "version" && a.getName() != "state") params.push_back(a);
  return params;
}

Result<plan::Plan> translate_to_plan(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    if (!function->hasAttr(kBody)) return PlanTranslator(module).run(function);
  return invalid_ir("no function");
}

}  // namespace invar::compiler
