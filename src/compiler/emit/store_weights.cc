// repro-store-weights: weights get their digest and their place in a file, as the plan has them.
// Values that a plan does not have are refused.
#include "base/hash/sha256.h"
#include "compiler/emit/weight_hashing.h"
#include "compiler/lowering/rule_registry.h"
#include "compiler/passes/passes.h"
#include "kernels/op_contract.h"

namespace invar::compiler {
namespace {

class StoreWeights : public PassWrapper<StoreWeights, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(StoreWeights)
  explicit StoreWeights(WeightStorage* storage) : storage_(storage) {}
  StringRef getArgument() const final { return "repro-store-weights"; }
  StringRef getDescription() const final { return "Hash weights, and store those that no file has"; }
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
  Status store_weights(WeightStorage&);
  Status check_values();
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

Status StoreWeights::store_weights(WeightStorage& storage) {
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
    w.setFile(file);
    w.setOffset(static_cast<uint64_t>(offset));
    w.removeDataAttr();
    w->setAttr(kSha256Attr, StringAttr::get(&getContext(), to_hex(digest)));
  }
  return {};
}

Status StoreWeights::check_values() {
  func::FuncOp function = getOperation();
  bool computes = false;
  std::set<std::string> states;
  for (BlockArgument a : function.getArguments())
    INVAR_CHECK_OK(check_type(port(function, true, a.getArgNumber()), a.getType()));
  for (Operation& op : function.front()) {
    if (!isa<ReproOp, ReproFlowOp>(op)) continue;
    computes = true;
    const auto state = op.getAttrOfType<StringAttr>("state");
    if (state && !states.insert(state.str()).second)
      return not_covered("memory \"" + state.str() + "\" is used by more than one operation");
    for (Type type : op.getResultTypes()) INVAR_CHECK_OK(check_type("result of " + text_of(op), type));
  }
  if (!computes) return not_covered("the graph has no outputs");
  return {};
}

// Outputs, control-flow operands and bound values must be computed or fed. A weight or input in
// their place is copied.
void StoreWeights::copy_returned_weights() {
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

Status StoreWeights::run() {
  WeightStorage standard;
  WeightStorage& storage = storage_ ? *storage_ : standard;
  if (storage.constants_file.empty()) storage.constants_file = "constants.bin";
  copy_returned_weights();
  INVAR_CHECK_OK(check_values());
  return store_weights(storage);
}

}  // namespace

std::unique_ptr<Pass> store_weights_pass(WeightStorage* storage) {
  return std::make_unique<StoreWeights>(storage);
}

}  // namespace invar::compiler
