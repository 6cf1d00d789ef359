// Steps that a rule makes itself: a loop of control flow (spec/plan.md plan.16) whose body is no graph of the model.
#include "compiler/dialects/constant_data.h"
#include "compiler/lowering/lower_onnx.h"

namespace invar::compiler {

func::FuncOp make_body(func::FuncOp around, Location loc, Bound& bound, TypeRange arguments) {
  OpBuilder build(around);
  auto function = build.create<func::FuncOp>(loc, bound.fresh_body(), build.getFunctionType(arguments, {}));
  function->setAttr(kBody, build.getUnitAttr());
  function.addEntryBlock();
  return function;
}

Result<SmallVector<Value>> Node::steps(const Polynomial& count, ValueRange carried, ValueRange fixed,
                                       StepRule body) {
  const Location loc = op_.getLoc();
  OpBuilder build(op_.getContext());
  SmallVector<Type> types{RankedTensorType::get({}, build.getI64Type())};
  llvm::append_range(types, carried.getTypes());
  llvm::append_range(types, fixed.getTypes());
  func::FuncOp function = make_body(cast<func::FuncOp>(end_->getParentOp()), loc, ports_.bound, types);
  Block* block = &function.front();
  build.setInsertionPointToStart(block);
  // Where the rule stands: a node that nobody reads.
  auto here = build.create<NodeOp>(loc, TypeRange(op_.getOutputs().getTypes()), op_.getOpTypeAttr(),
                                   ValueRange(), op_.getNameAttr(), op_.getDomainAttr(), op_.getVersionAttr(),
                                   op_.getParamsAttr(), DictionaryAttr(), ArrayAttr(), 0u);
  auto end = build.create<func::ReturnOp>(loc);
  Ports ports{llvm::BitVector(function.getNumArguments()), llvm::BitVector(0), /*stateless=*/true,
              Bound(ports_.bound, nullptr), ports_.evaluated};
  Node step(here, end, ports);
  const Result<SmallVector<Value>> made =
      body(step, block->getArgument(0), block->getArguments().slice(1, carried.size()),
           block->getArguments().drop_front(1 + carried.size()));
  ports_.evaluated = ports.evaluated;
  ports_.forced.merge(ports.forced);
  if (!made) {
    function.erase();
    return made.error();
  }
  SmallVector<Value> given{step.constant(llvm::StringRef("\1", 1), DType::boolean)};
  llvm::append_range(given, *made);
  end->setOperands(given);
  here.erase();
  measure(*block);
  function.setFunctionType(build.getFunctionType(types, end->getOperandTypes()));
  SmallVector<Type> results;
  for (auto [i, v] : llvm::enumerate(*made)) {
    Shape shape = shape_of(v.getType());
    if (i >= carried.size()) shape.insert(shape.begin(), Extent::of(count));
    results.push_back(tensor_of(shape, element_of(v)));
    if (i < carried.size() && results.back() != carried[i].getType()) {
      function.erase();
      return Error{Code::internal, "a step changes the type of what it carries"};
    }
  }
  SmallVector<Value> operands{sizes(count, {}), constant(llvm::StringRef("\1", 1), DType::boolean)};
  llvm::append_range(operands, carried);
  llvm::append_range(operands, fixed);
  auto flow = build_.create<ReproFlowOp>(loc, results, build_.getStringAttr("loop"),
                                         build_.getArrayAttr({FlatSymbolRefAttr::get(function)}), operands,
                                         build_.getI64IntegerAttr(static_cast<int64_t>(carried.size())));
  return SmallVector<Value>(flow.getOutputs());
}

}  // namespace invar::compiler
