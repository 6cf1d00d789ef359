// repro -> plan: every operation a kernel call, every value in a buffer slot, every weight hashed.
#include "base/hash/sha256.h"
#include "compiler/dialects/constant_data.h"
#include "compiler/passes/passes.h"
#include "compiler/lowering/rule_registry.h"
#include "compiler/emit/weight_hashing.h"
#include "kernels/kernel.h"

namespace invar::compiler {
namespace {

class ToPlan : public PassWrapper<ToPlan, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ToPlan)
  explicit ToPlan(Storage* storage) : storage_(storage) {}
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
  Status weights(Storage&);
  Status check_values();
  Status slots();
  void call(Operation& op);
  void flow(ReproFlowOp);
  Storage* storage_;
};

// Of `what`, a value: that kernels can take it.
Status takes(const std::string& what, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !dtype_of(tensor.getElementType()))
    return not_covered(what + ": its shape or element type is unknown");
  if (!count_of(shape_of(tensor)))
    return not_covered(what + ": its shape " + text_of(shape_of(tensor)) +
                       " is unknown or has more elements than can be counted");
  if (tensor.getRank() > ops::kMaxRank)
    return not_covered(what + ": its rank is " + std::to_string(tensor.getRank()) + "; covered are " +
                       std::to_string(ops::kMaxRank) + " dimensions at most");
  return {};
}

// An operation by the node that it came from.
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

Status ToPlan::weights(Storage& storage) {
  SmallVector<ReproWeightOp> ops(getOperation().front().getOps<ReproWeightOp>());
  std::vector<Range> ranges;
  uint64_t most = 0;  // bytes of constants
  for (ReproWeightOp w : ops) {
    auto type = cast<RankedTensorType>(w.getType());
    std::optional<DType> dtype = dtype_of(type.getElementType());
    std::optional<Polynomial> count = count_of(shape_of(type));
    if (!dtype || !count || !count->constant())
      return not_covered("weight \"" + w.getName().str() + "\": its element type or shape");
    INVAR_CHECK_OK(takes("weight \"" + w.getName().str() + "\"", type));
    int64_t bytes = 0;
    if (__builtin_mul_overflow(*count->constant(), int64_t(size_of(*dtype)), &bytes) ||
        bytes != int64_t(w.getLength()))
      return bad_input("weight \"" + w.getName().str() + "\": has " + std::to_string(w.getLength()) +
                       " bytes, not what its shape and type need");
    if (w.getFile().empty()) most += (uint64_t(bytes) + 63) / 64 * 64;
    if (w.getData()) continue;
    ranges.push_back({w.getFile().str(), uint64_t(w.getOffset()), uint64_t(w.getLength())});
    if (!w.getFile().empty()) continue;
    const auto inlined = storage.inlined.range(w.getOffset(), w.getLength());
    if (!inlined) return bad_input("weight \"" + w.getName().str() + "\": its data are not here");
    ranges.back().bytes = *inlined;
  }
  INVAR_CHECK_OK(hash_ranges(storage.folder, ranges, storage.threads, storage.hashed));
  storage.constants.reserve(storage.constants.size() + most);
  size_t next = 0;
  for (ReproWeightOp w : ops) {
    OpBuilder build(w);
    std::string file = w.getFile().str();
    int64_t offset = w.getOffset();
    Digest digest;
    auto append = [&](std::string_view bytes) {
      file = storage.constants_file;
      const auto [known, is_new] = storage.constants_at.try_emplace({digest, bytes.size()}, 0);
      offset = known->second;
      if (!is_new) return;                                                  // a body has it, too
      storage.constants.resize((storage.constants.size() + 63) / 64 * 64);  // as mapped, so aligned
      offset = known->second = static_cast<int64_t>(storage.constants.size());
      storage.constants += bytes;
    };
    if (w.getData()) {
      std::optional<std::string> bytes = bytes_from_hex(*w.getData());
      if (!bytes || bytes->size() != static_cast<size_t>(w.getLength()))
        return bad_input("weight \"" + w.getName().str() + "\": its data are not hexadecimal of its length");
      digest = sha256(*bytes);
      append(*bytes);
    } else {
      const Range& range = ranges[next++];
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

Status ToPlan::check_values() {
  func::FuncOp function = getOperation();
  bool computes = false;
  for (BlockArgument a : function.getArguments())
    INVAR_CHECK_OK(takes(port(function, true, a.getArgNumber()), a.getType()));
  for (Operation& op : function.front()) {
    if (!isa<ReproOp, ReproFlowOp>(op)) continue;
    computes = true;
    for (Type type : op.getResultTypes()) INVAR_CHECK_OK(takes("result of " + text_of(op), type));
  }
  if (!computes) return not_covered("the graph has no outputs");
  return {};
}

// Planned on the plan itself (src/plan/analysis/memory_plan.cc), written back so that the text shows it.
Status ToPlan::slots() {
  INVAR_TRY(plan::Plan plan, plan_from(getOperation()->getParentOfType<ModuleOp>()));
  plan::assign_slots(plan);
  size_t next = 0;
  for (Operation& op : getOperation().front()) {
    if (auto call = dyn_cast<CallOp>(op)) call.setSlot(plan.values[plan.nodes[next].out[0]].slot);
    next += isa<CallOp, PlanFlowOp>(op);
  }
  return {};
}

void ToPlan::call(Operation& op) {
  OpBuilder build(&op);
  SmallVector<NamedAttribute> numerics;
  for (NamedAttribute a : op.getAttrs())
    if (a.getName() != "version" && a.getName() != "state") numerics.push_back(a);
  auto made = build.create<CallOp>(
      op.getLoc(), op.getResult(0).getType(), build.getStringAttr(op.getName().stripDialect()),
      op.getOperands(), op.getAttrOfType<IntegerAttr>("version"), build.getDictionaryAttr(numerics),
      IntegerAttr(), op.getAttrOfType<StringAttr>("state"));
  op.replaceAllUsesWith(made);
  op.erase();
}

void ToPlan::flow(ReproFlowOp op) {
  OpBuilder build(op);
  auto made = build.create<PlanFlowOp>(op.getLoc(), op.getResultTypes(), op.getOpAttr(), op.getBodiesAttr(),
                                       op.getInputs(), op.getCarriedAttr());
  op.replaceAllUsesWith(made.getOutputs());
  op.erase();
}

Status ToPlan::run() {
  func::FuncOp function = getOperation();
  Block& block = function.front();
  Storage standard;
  Storage& storage = storage_ ? *storage_ : standard;
  if (storage.constants_file.empty()) storage.constants_file = "constants.bin";
  OpBuilder build(&getContext());
  build.setInsertionPoint(block.getTerminator());
  // A symbol is an element of what is computed or given, and so is what control flow takes.
  for (ReproBindOp bind : block.getOps<ReproBindOp>())
    if (isa_and_nonnull<ReproWeightOp>(bind.getValue().getDefiningOp())) {
      build.setInsertionPoint(bind);
      bind.getValueMutable().assign(Rooms::all().copy(build, bind.getValue()));
    }
  build.setInsertionPoint(block.getTerminator());
  for (auto flow : block.getOps<ReproFlowOp>()) {
    build.setInsertionPoint(flow);
    for (OpOperand& in : flow->getOpOperands())
      if (isa_and_nonnull<ReproWeightOp>(in.get().getDefiningOp()))
        in.set(Rooms::all().copy(build, in.get()));
  }
  build.setInsertionPoint(block.getTerminator());
  for (OpOperand& out : block.getTerminator()->getOpOperands())
    if (Value v = out.get(); isa<BlockArgument>(v) || isa<ReproWeightOp>(v.getDefiningOp()))
      out.set(Rooms::all().copy(build, v));
  INVAR_CHECK_OK(check_values());
  INVAR_CHECK_OK(weights(storage));
  std::set<std::string> states;
  for (Operation& op : llvm::make_early_inc_range(block)) {
    if (auto bind = dyn_cast<ReproBindOp>(op)) {
      build.setInsertionPoint(bind);
      build.create<PlanBindOp>(bind.getLoc(), bind.getNameAttr(), bind.getValue(), bind.getElementAttr());
      bind.erase();
      continue;
    }
    if (auto loop = dyn_cast<ReproFlowOp>(op)) {
      flow(loop);
      continue;
    }
    if (!isa<ReproOp>(op)) continue;
    if (auto state = op.getAttrOfType<StringAttr>("state")) {
      if (!states.insert(state.str()).second)
        return not_covered("memory \"" + state.str() + "\" is used by more than one operation");
      build.setInsertionPoint(&op);
      build.create<StateOp>(op.getLoc(), state);
    }
    call(op);
  }
  if (function->hasAttr(kBody)) return {};
  function->setAttr("plan.numerics", build.getStringAttr(llvm::StringRef(plan::kNumerics)));
  return slots();
}

}  // namespace

std::unique_ptr<Pass> to_plan(Storage* storage) {
  return std::make_unique<ToPlan>(storage);
}

}  // namespace invar::compiler
