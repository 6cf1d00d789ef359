// Makes a function of the body of a control-flow node (onnx.23): captured values become arguments,
// and the body is converted.
#include "compiler/lowering/control_flow/control_flow.h"
#include "llvm/ADT/ScopeExit.h"
#include "mlir/IR/IRMapping.h"

namespace invar::compiler {

Value make_true(OpBuilder& build, Location loc) {
  return make_constant(build, loc, llvm::StringRef("\1", 1), DType::boolean, {});
}

Status check_same_type(Type a, Type b, const std::string& what) {
  auto x = dyn_cast<RankedTensorType>(a), y = dyn_cast<RankedTensorType>(b);
  if (x && y && x.getElementType() == y.getElementType() && x.getRank() == y.getRank()) return {};
  return not_covered(what + text_of_type(a) + " and " + text_of_type(b));
}

Result<std::optional<Conversion::OutlinedBody>> Conversion::outline_body(NodeOp op, Region& region,
                                                                         ArrayRef<Type> arguments,
                                                                         BodyInputs inputs,
                                                                         SmallVector<Value>& captured,
                                                                         const DimConstraints& here) {
  INVAR_CHECK_OK(count_cloned_ops(region, 2 * kMaxClonedOps));
  SmallVector<Type> types(arguments);
  DimSubstitution substitution(here);
  for (Value v : captured) types.push_back(substitution.of(v.getType()));
  func::FuncOp function =
      make_body_function(cast<func::FuncOp>(end_->getParentOp()), op.getLoc(), state_.dims, types);
  auto drop = llvm::make_scope_exit([&] { function.erase(); });
  Block* block = &function.front();
  OpBuilder build = OpBuilder::atBlockBegin(block);
  IRMapping map;
  map.map(captured, block->getArguments().drop_front(arguments.size()));
  const SmallVector<Value> given = inputs(build, block->getArguments().take_front(arguments.size()));
  INVAR_CHECK_OK(check_body_inputs(region, given));
  map.map(region.front().getArguments(), given);
  bool lost = false;
  region.walk([&](Operation* inner) {
    for (Value v : inner->getOperands()) {
      if (map.contains(v) || region.isAncestor(v.getParentRegion())) continue;
      Operation* from = v.getDefiningOp();
      if (isa_and_nonnull<ReproWeightOp, ReproSizesOp, AbsentOp>(from)) {
        Operation* copy = build.clone(*from);
        if (auto sizes = dyn_cast<ReproSizesOp>(copy)) substitution(sizes);
        map.map(v, copy->getResult(0));
      } else {
        lost |= !isa<RankedTensorType>(v.getType()) || isa_and_nonnull<NodeOp>(from);
        captured.push_back(v);
        map.map(v, block->addArgument(substitution.of(v.getType()), v.getLoc()));
      }
    }
  });
  if (lost) return std::optional<OutlinedBody>();
  for (Operation& inner : region.front().without_terminator()) build.clone(inner, map);
  SmallVector<Value> results;
  for (Value v : region.front().getTerminator()->getOperands()) results.push_back(map.lookup(v));
  build.create<func::ReturnOp>(op.getLoc(), results);
  function.setFunctionType(build.getFunctionType(block->getArgumentTypes(), {}));

  Conversion child(function, *this);
  child.convert(&block->front(), child.end());
  state_.folded_bytes = child.state_.folded_bytes;
  if (const std::optional<Error> error = child.take_errors(nullptr, child.end())) {
    state_.constraints.merge(child.state_.constraints);
    return *error;
  }
  for (Value v : child.end()->getOperands())
    if (isa_and_nonnull<NodeOp>(v.getDefiningOp())) return std::optional<OutlinedBody>();
  child.remove_unused();
  materialize_dims(*block);
  drop.release();
  OutlinedBody body{function, child.state_.dims};
  body.update_type();
  return std::optional<OutlinedBody>(std::move(body));
}

}  // namespace invar::compiler
