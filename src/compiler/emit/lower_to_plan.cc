// repro-to-plan: lowers the repro dialect to the plan dialect. Operations become kernel calls,
// values get buffer slots, and weights are hashed.
#include "base/hash/sha256.h"
#include "compiler/emit/weight_hashing.h"
#include "compiler/lowering/rule_registry.h"
#include "compiler/passes/passes.h"
#include "kernels/op_contract.h"

namespace invar::compiler {
namespace {

class LowerToPlan : public PassWrapper<LowerToPlan, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerToPlan)
  explicit LowerToPlan(WeightStorage* storage) : storage_(storage) {}
  StringRef getArgument() const final { return "repro-to-plan"; }
  StringRef getDescription() const final {
    return "Hash weights, assign buffer slots, turn operations into calls";
  }
  void getDependentDialects(DialectRegistry& registry) const final { registry.insert<PlanDialect>(); }
  void runOnOperation() final {
    Status status = run();
    if (status) return;
    if (storage_)
      storage_->errors.push_back(status.error());
    else
      getOperation()->emitError(status.error().message);
    signalPassFailure();
  }

 private:
  Status run();
  void copy_returned_weights();
  Status lower_weights(WeightStorage&);
  Status check_values();
  Status assign_slots();
  void lower_call(Operation& op);
  void lower_flow(ReproFlowOp);
  WeightStorage* storage_;
};

// Checks that kernels support the type of a value, which `what` names in errors.
Status check_type(const std::string& what, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !dtype_of(tensor.getElementType()))
    return not_covered(what + ": its shape or element type is unknown");
  if (!element_count(shape_of(tensor)))
    return not_covered(what + ": its shape " + text_of(shape_of(tensor)) +
                       " is unknown or has more elements than can be counted");
  if (tensor.getRank() > ops::kMaxRank)
    return not_covered(what + ": its rank is " + std::to_string(tensor.getRank()) + "; covered are " +
                       std::to_string(ops::kMaxRank) + " dimensions at most");
  return {};
}

// "NAME of node "ORIGIN"", for errors.
std::string text_of(Operation& op) {
  const auto node = dyn_cast<NameLoc>(op.getLoc());
  const std::string name = op.getName().stripDialect().str();
  return node ? name + " of node \"" + node.getName().str() + "\"" : name;
}

std::string port(func::FuncOp f, bool input, unsigned i) {
  auto name = input ? f.getArgAttrOfType<StringAttr>(i, "onnx.name")
                    : f.getResultAttrOfType<StringAttr>(i, "onnx.name");
  return (input ? "input \"" : "output \"") + (name ? name.str() : std::to_string(i)) + "\"";
}

Status LowerToPlan::lower_weights(WeightStorage& storage) {
  SmallVector<ReproWeightOp> ops(getOperation().front().getOps<ReproWeightOp>());
  std::vector<HashRequest> ranges;
  uint64_t constant_bytes = 0;  // upper bound
  for (ReproWeightOp w : ops) {
    auto type = cast<RankedTensorType>(w.getType());
    std::optional<DType> dtype = dtype_of(type.getElementType());
    std::optional<DimExpr> count = element_count(shape_of(type));
    if (!dtype || !count || !count->constant())
      return not_covered("weight \"" + w.getName().str() + "\": its element type or shape");
    INVAR_CHECK_OK(check_type("weight \"" + w.getName().str() + "\"", type));
    int64_t bytes = 0;
    if (__builtin_mul_overflow(*count->constant(), int64_t(size_of(*dtype)), &bytes) ||
        bytes != int64_t(w.getLength()))
      return bad_input("weight \"" + w.getName().str() + "\": has " + std::to_string(w.getLength()) +
                       " bytes, not what its shape and type need");
    if (w.getFile().empty()) constant_bytes += (uint64_t(bytes) + 63) / 64 * 64;
    if (w.getData()) continue;
    ranges.push_back({w.getFile().str(), uint64_t(w.getOffset()), uint64_t(w.getLength())});
    if (!w.getFile().empty()) {
      HashRequest& r = ranges.back();
      const auto known = storage.presumed.find({r.file, r.offset, r.length});
      if (known != storage.presumed.end()) r.sha256 = known->second, r.presumed = true;
      continue;
    }
    const auto inline_bytes = storage.inline_constants.range(w.getOffset(), w.getLength());
    if (!inline_bytes) return bad_input("weight \"" + w.getName().str() + "\": its data are not here");
    ranges.back().bytes = *inline_bytes;
  }
  INVAR_CHECK_OK(hash_ranges(storage.folder, ranges, storage.threads, storage.hashed, storage.progress));
  storage.constants.reserve(storage.constants.size() + constant_bytes);
  size_t next = 0;
  for (ReproWeightOp w : ops) {
    OpBuilder build(w);
    std::string file = w.getFile().str();
    int64_t offset = w.getOffset();
    Digest digest;
    auto append = [&](std::string_view bytes) {
      file = storage.constants_file;
      const auto [known, is_new] = storage.constant_offsets.try_emplace({digest, bytes.size()}, 0);
      offset = known->second;
      if (!is_new) return;  // equal constants, such as those of two bodies, are stored once
      // The file is mapped, so aligned offsets make aligned addresses.
      storage.constants.resize((storage.constants.size() + 63) / 64 * 64);
      offset = known->second = static_cast<int64_t>(storage.constants.size());
      storage.constants += bytes;
    };
    if (w.getData()) {
      const std::string_view bytes(*w.getData());
      if (bytes.size() != static_cast<size_t>(w.getLength()))
        return bad_input("weight \"" + w.getName().str() + "\": its data are " +
                         std::to_string(bytes.size()) + " bytes, its length is " +
                         std::to_string(w.getLength()));
      digest = sha256(bytes);
      append(bytes);
    } else {
      const HashRequest& range = ranges[next++];
      digest = range.sha256;
      if (range.bytes.data()) append(range.bytes);
    }
    auto made = build.create<PlanWeightOp>(
        w.getLoc(), w.getType(), w.getNameAttr(), build.getStringAttr(file), build.getI64IntegerAttr(offset),
        w.getLengthAttr(), StringAttr(), build.getStringAttr(to_hex(digest)));
    w.replaceAllUsesWith(made.getOut());
    w.erase();
  }
  return {};
}

Status LowerToPlan::check_values() {
  func::FuncOp function = getOperation();
  bool computes = false;
  for (BlockArgument a : function.getArguments())
    INVAR_CHECK_OK(check_type(port(function, true, a.getArgNumber()), a.getType()));
  for (Operation& op : function.front()) {
    if (!isa<ReproOp, ReproFlowOp>(op)) continue;
    computes = true;
    for (Type type : op.getResultTypes()) INVAR_CHECK_OK(check_type("result of " + text_of(op), type));
  }
  if (!computes) return not_covered("the graph has no outputs");
  return {};
}

// The memory planner works on plan::Plan (src/plan/analysis/memory_plan.cc). Its slots are written
// back, so that the MLIR text shows them.
Status LowerToPlan::assign_slots() {
  INVAR_TRY(plan::Plan plan, translate_to_plan(getOperation()->getParentOfType<ModuleOp>()));
  plan::assign_slots(plan);
  size_t next = 0;
  for (Operation& op : getOperation().front()) {
    if (auto call = dyn_cast<CallOp>(op)) call.setSlot(plan.values[plan.nodes[next].out[0]].slot);
    next += isa<CallOp, PlanFlowOp>(op);
  }
  return {};
}

void LowerToPlan::lower_call(Operation& op) {
  OpBuilder build(&op);
  SmallVector<NamedAttribute> params;
  for (NamedAttribute a : op.getAttrs())
    if (a.getName() != "version" && a.getName() != "state") params.push_back(a);
  auto made = build.create<CallOp>(op.getLoc(), op.getResult(0).getType(),
                                   build.getStringAttr(op.getName().stripDialect()), op.getOperands(),
                                   op.getAttrOfType<IntegerAttr>("version"), build.getDictionaryAttr(params),
                                   IntegerAttr(), op.getAttrOfType<StringAttr>("state"));
  op.replaceAllUsesWith(made);
  op.erase();
}

void LowerToPlan::lower_flow(ReproFlowOp op) {
  OpBuilder build(op);
  auto made = build.create<PlanFlowOp>(op.getLoc(), op.getResultTypes(), op.getOpAttr(), op.getBodiesAttr(),
                                       op.getInputs(), op.getCarriedAttr());
  op.replaceAllUsesWith(made.getOutputs());
  op.erase();
}

// Outputs, control-flow operands and bound values must be computed or fed. A weight or input in
// their place is copied.
void LowerToPlan::copy_returned_weights() {
  Block& block = getOperation().front();
  OpBuilder build(&getContext());
  for (ReproBindOp bind : block.getOps<ReproBindOp>())
    if (isa_and_nonnull<ReproWeightOp>(bind.getValue().getDefiningOp())) {
      build.setInsertionPoint(bind);
      bind.getValueMutable().assign(RuleRegistry::all().copy_value(build, bind.getValue()));
    }
  for (auto flow : block.getOps<ReproFlowOp>()) {
    build.setInsertionPoint(flow);
    for (OpOperand& in : flow->getOpOperands())
      if (isa_and_nonnull<ReproWeightOp>(in.get().getDefiningOp()))
        in.set(RuleRegistry::all().copy_value(build, in.get()));
  }
  build.setInsertionPoint(block.getTerminator());
  for (OpOperand& out : block.getTerminator()->getOpOperands())
    if (Value v = out.get(); isa<BlockArgument>(v) || isa<ReproWeightOp>(v.getDefiningOp()))
      out.set(RuleRegistry::all().copy_value(build, v));
}

Status LowerToPlan::run() {
  func::FuncOp function = getOperation();
  Block& block = function.front();
  WeightStorage standard;
  WeightStorage& storage = storage_ ? *storage_ : standard;
  if (storage.constants_file.empty()) storage.constants_file = "constants.bin";
  copy_returned_weights();
  INVAR_CHECK_OK(check_values());
  INVAR_CHECK_OK(lower_weights(storage));
  OpBuilder build(&getContext());
  std::set<std::string> states;
  for (Operation& op : llvm::make_early_inc_range(block)) {
    if (auto bind = dyn_cast<ReproBindOp>(op)) {
      build.setInsertionPoint(bind);
      build.create<PlanBindOp>(bind.getLoc(), bind.getNameAttr(), bind.getValue(), bind.getElementAttr());
      bind.erase();
      continue;
    }
    if (auto loop = dyn_cast<ReproFlowOp>(op)) {
      lower_flow(loop);
      continue;
    }
    if (!isa<ReproOp>(op)) continue;
    if (auto state = op.getAttrOfType<StringAttr>("state")) {
      if (!states.insert(state.str()).second)
        return not_covered("memory \"" + state.str() + "\" is used by more than one operation");
      build.setInsertionPoint(&op);
      build.create<StateOp>(op.getLoc(), state);
    }
    lower_call(op);
  }
  if (function->hasAttr(kBody)) return {};
  function->setAttr("plan.numerics", build.getStringAttr(llvm::StringRef(plan::kNumerics)));
  return assign_slots();
}

}  // namespace

std::unique_ptr<Pass> lower_to_plan_pass(WeightStorage* storage) {
  return std::make_unique<LowerToPlan>(storage);
}

}  // namespace invar::compiler
