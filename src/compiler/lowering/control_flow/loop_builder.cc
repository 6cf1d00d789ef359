// Loops that a lowering rule emits itself (plan.16): their body is no graph of the model.
#include "compiler/dialects/constant_data.h"
#include "compiler/lowering/lower_onnx.h"

namespace invar::compiler {

func::FuncOp make_body_function(func::FuncOp around, Location loc, DataDependentDims& dims,
                                TypeRange arguments) {
  OpBuilder build(around);
  auto function =
      build.create<func::FuncOp>(loc, dims.fresh_body_name(), build.getFunctionType(arguments, {}));
  function->setAttr(kBody, build.getUnitAttr());
  function.addEntryBlock();
  return function;
}

Result<SmallVector<Value>> NodeView::make_loop(const DimExpr& count, ValueRange carried, ValueRange invariant,
                                               LoopBody body) {
  const Location loc = op_.getLoc();
  OpBuilder build(op_.getContext());
  SmallVector<Type> types{RankedTensorType::get({}, build.getI64Type())};
  llvm::append_range(types, carried.getTypes());
  llvm::append_range(types, invariant.getTypes());
  func::FuncOp function =
      make_body_function(cast<func::FuncOp>(end_->getParentOp()), loc, state_.dims, types);
  Block* block = &function.front();
  build.setInsertionPointToStart(block);
  // A node without uses marks the insertion point of the body's rule.
  auto here = build.create<NodeOp>(loc, TypeRange(op_.getOutputs().getTypes()), op_.getOpTypeAttr(),
                                   ValueRange(), op_.getNameAttr(), op_.getDomainAttr(), op_.getVersionAttr(),
                                   op_.getParamsAttr(), DictionaryAttr(), ArrayAttr(), 0u);
  auto end = build.create<func::ReturnOp>(loc);
  FunctionLoweringState state{llvm::BitVector(function.getNumArguments()), llvm::BitVector(0),
                              /*stateless=*/true, DataDependentDims(state_.dims, nullptr),
                              state_.folded_bytes};
  NodeView step(here, end, state);
  const Result<SmallVector<Value>> made =
      body(step, block->getArgument(0), block->getArguments().slice(1, carried.size()),
           block->getArguments().drop_front(1 + carried.size()));
  state_.folded_bytes = state.folded_bytes;
  state_.constraints.merge(state.constraints);
  if (!made) {
    function.erase();
    return made.error();
  }
  SmallVector<Value> given{step.constant(llvm::StringRef("\1", 1), DType::boolean)};
  llvm::append_range(given, *made);
  end->setOperands(given);
  here.erase();
  materialize_dims(*block);
  function.setFunctionType(build.getFunctionType(types, end->getOperandTypes()));
  SmallVector<Type> results;
  for (auto [i, v] : llvm::enumerate(*made)) {
    Shape shape = shape_of(v.getType());
    if (i >= carried.size()) shape.insert(shape.begin(), Dim::of(count));
    results.push_back(tensor_of(shape, element_of(v)));
    if (i < carried.size() && results.back() != carried[i].getType()) {
      function.erase();
      return Error{Code::internal, "a step changes the type of what it carries"};
    }
  }
  SmallVector<Value> operands{size_tensor(count, {}), constant(llvm::StringRef("\1", 1), DType::boolean)};
  llvm::append_range(operands, carried);
  llvm::append_range(operands, invariant);
  auto flow = build_.create<ReproFlowOp>(loc, results, build_.getStringAttr("loop"),
                                         build_.getArrayAttr({FlatSymbolRefAttr::get(function)}), operands,
                                         build_.getI64IntegerAttr(static_cast<int64_t>(carried.size())));
  return SmallVector<Value>(flow.getOutputs());
}

}  // namespace invar::compiler
