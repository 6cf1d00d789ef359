// repro-to-torch: lowers the repro dialect, with stored weights, to the torch dialect. Every
// operation becomes a call of invar.primitives, or an expression of torch's own functions.
#include "compiler/dialects/torch/dialect.h"
#include "compiler/emit/torch/spelling.h"
#include "compiler/emit/torch/torch_module.h"
#include "compiler/lowering/dynamic_shapes/data_dependent_dims.h"
#include "compiler/passes/constant_evaluator.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/type_inference.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace invar::compiler {
namespace {
using namespace mlir;

class LowerToTorch : public PassWrapper<LowerToTorch, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerToTorch)
  LowerToTorch(std::vector<Error>* errors, bool plain) : errors_(errors) { plain_ = plain; }
  LowerToTorch(const LowerToTorch& other)
      : PassWrapper(other), errors_(other.errors_), sizes_(other.sizes_) {}
  StringRef getArgument() const final { return "repro-to-torch"; }
  StringRef getDescription() const final { return "Turn operations into calls that a module of torch makes"; }
  void getDependentDialects(DialectRegistry& registry) const final { registry.insert<TorchDialect>(); }
  void runOnOperation() final;

 private:
  Status lower(Operation&);
  Status lower_call(Operation&);
  bool follows(Operation&, const Attributes&);
  std::optional<TensorType> at_some_size(Type);

  std::vector<Error>* errors_;
  std::map<std::string, int64_t> sizes_;  // of symbols, distinct
  Option<bool> plain_{*this, "plain", llvm::cl::desc("torch's own functions instead of Invar's operations")};
};

// A type with numbers for the dimensions that a call decides.
std::optional<TensorType> LowerToTorch::at_some_size(Type type) {
  const std::optional<DType> dtype = dtype_of(cast<RankedTensorType>(type).getElementType());
  if (!dtype) return std::nullopt;
  TensorType found{*dtype, {}};
  for (const Dim& dim : shape_of(type)) {
    const std::optional<int64_t> n =
        dim.constant() ? dim.value : dim.expr.evaluate([&](const std::string& symbol) {
          return std::optional(
              sizes_.try_emplace(symbol, 101 + 2 * static_cast<int64_t>(sizes_.size())).first->second);
        });
    if (!n || *n < 0) return std::nullopt;
    found.shape.push_back(*n);
  }
  return found;
}

// Whether primitives.OP gives the result's type on its own. What does not follow for one assignment
// of the symbols does not follow.
bool LowerToTorch::follows(Operation& op, const Attributes& attributes) {
  std::vector<TensorType> operands;
  for (Type type : op.getOperandTypes()) {
    const std::optional<TensorType> known = at_some_size(type);
    if (!known) return false;
    operands.push_back(*known);
  }
  const std::optional<TensorType> wanted = at_some_size(op.getResult(0).getType());
  const Result<TensorType> found =
      infer_type(getContext(), op.getName().stripDialect().str(), attributes, operands);
  return found && wanted && found->dtype == wanted->dtype && found->shape == wanted->shape;
}

Status LowerToTorch::lower_call(Operation& op) {
  if (const auto state = op.getAttrOfType<StringAttr>("state"))
    return not_covered("memory \"" + state.str() +
                       "\": a module of torch is a function of tensors; compile without states");
  NamedAttrList params(params_of(&op));
  params.erase("numerics");
  INVAR_TRY(const Attributes attributes, kernel_attributes(params));
  const StringRef name = op.getName().stripDialect();
  OpBuilder build(&op);
  const DictionaryAttr kept = params.getDictionary(&getContext());
  const Type type = op.getResult(0).getType();
  Value made;
  if (plain_) {
    TorchCall call{name.str(), attributes, {}, {}, {}};
    const auto typed = [](Value v) {
      return TorchCall::Type{*dtype_of(cast<RankedTensorType>(v.getType()).getElementType()),
                             shape_of(v.getType())};
    };
    for (const auto [i, v] : llvm::enumerate(op.getOperands()))
      call.types.push_back(typed(v)), call.operands.push_back("{" + std::to_string(i) + "}");
    call.type = typed(op.getResult(0));
    INVAR_TRY(const std::string text, TorchSpellings::all().spell(call));
    made = build.create<TorchExpressionOp>(op.getLoc(), type, build.getStringAttr(name), op.getOperands(),
                                           kept, build.getStringAttr(text));
  } else {
    const UnitAttr typed = follows(op, attributes) ? UnitAttr() : build.getUnitAttr();
    made = build.create<TorchPrimitiveOp>(op.getLoc(), type, build.getStringAttr(name), op.getOperands(),
                                          kept, typed);
  }
  op.getResult(0).replaceAllUsesWith(made);
  op.erase();
  return {};
}

Status LowerToTorch::lower(Operation& op) {
  OpBuilder build(&op);
  if (isa<ReproOp>(op)) return lower_call(op);
  if (auto w = dyn_cast<ReproWeightOp>(op)) {
    auto made = build.create<TorchWeightOp>(w.getLoc(), w.getType(), w.getNameAttr(), w.getFileAttr(),
                                            w.getOffsetAttr(), w.getLengthAttr(), StringAttr());
    w.replaceAllUsesWith(made.getOut());
    w.erase();
  } else if (auto bind = dyn_cast<ReproBindOp>(op)) {
    build.create<TorchSizeOp>(bind.getLoc(), bind.getNameAttr(), bind.getValue(), bind.getElementAttr());
    bind.erase();
  } else if (auto flow = dyn_cast<ReproFlowOp>(op)) {
    auto made = build.create<TorchFlowOp>(flow.getLoc(), flow.getResultTypes(), flow.getOpAttr(),
                                          flow.getBodiesAttr(), flow.getInputs(), flow.getCarriedAttr());
    flow.replaceAllUsesWith(made.getOutputs());
    flow.erase();
  }
  return {};
}

void LowerToTorch::runOnOperation() {
  for (Operation& op : llvm::make_early_inc_range(getOperation().front())) {
    const Status status = lower(op);
    if (status) continue;
    if (errors_)
      errors_->push_back(status.error());
    else
      getOperation()->emitError(status.error().message);
    return signalPassFailure();
  }
  if (getOperation()->hasAttr(kBody)) return;
  const StringRef operations = plain_ ? "plain" : "reproducible";
  getOperation()->setAttr(kTorchOperations, StringAttr::get(&getContext(), operations));
}

}  // namespace

std::unique_ptr<Pass> lower_to_torch_pass(std::vector<Error>* errors, bool plain) {
  return std::make_unique<LowerToTorch>(errors, plain);
}

Result<std::string> torch_expression(const std::string& op, const Attributes& attributes,
                                     const std::vector<TensorType>& operands, const TensorType& result) {
  const auto typed = [](const TensorType& t) {
    TorchCall::Type type{t.dtype, {}};
    for (const int64_t n : t.shape) type.shape.push_back(Dim::of(n));
    return type;
  };
  TorchCall call{op, attributes, {}, typed(result), {}};
  for (const TensorType& t : operands) {
    call.types.push_back(typed(t));
    call.operands.push_back("{" + std::to_string(call.operands.size()) + "}");
  }
  return TorchSpellings::all().spell(call);
}

}  // namespace invar::compiler
