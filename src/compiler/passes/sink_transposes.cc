// repro-sink-transposes: moves transposes behind pointwise operations and data movement, where they
// cancel with other transposes or meet a kernel that reads either layout. The value of an element
// does not depend on its position, so bits stay (elementwise.2, cast.1, move.1).
#include "compiler/passes/canonicalize/patterns.h"
#include "compiler/passes/passes.h"

namespace invar::compiler {
namespace {

// The transpose that defines v, if v has the shape of the result; else null.
TransposeOp full_size_transpose(Value v, const Shape& result) {
  auto transpose = v.getDefiningOp<TransposeOp>();
  return transpose && shape_of(v.getType()) == result ? transpose : TransposeOp();
}

int64_t element_bytes(Value v) {
  const std::optional<DType> dtype = dtype_of(element_of(v));
  return dtype ? static_cast<int64_t>(size_of(*dtype)) : 0;
}

// Moves the transposes of one operation's operands behind it.
class TransposeSinker {
 public:
  explicit TransposeSinker(Operation* op) : op_(op), build_(op) {}
  void run() {
    auto room = dyn_cast<ReproOp>(op_);
    if (!room) return;
    if (room.pointwise()) return sink_pointwise();
    if (auto concat = dyn_cast<ConcatOp>(op_)) return sink_concat(concat);
    if (auto slice = dyn_cast<SliceOp>(op_)) return sink_per_dim({"starts", "steps"});
    if (isa<PadOp, PadEdgeOp, PadReflectOp, PadWrapOp>(op_)) return sink_per_dim({"begins"});
  }

 private:
  void sink_pointwise();
  void sink_concat(ConcatOp);
  void sink_per_dim(llvm::ArrayRef<llvm::StringRef> attributes);
  std::optional<Value> untransposed(Value v, llvm::ArrayRef<int64_t> perm);
  // Replaces the operation by one on untransposed operands, followed by a transpose.
  void replace(ValueRange operands, llvm::ArrayRef<int64_t> perm) {
    Operation* made = build_.clone(*op_);
    made->setOperands(operands);
    const Shape to = shape_of(op_->getResult(0).getType());
    Shape from(to.size());
    for (size_t d = 0; d < to.size(); ++d) from[static_cast<size_t>(perm[d])] = to[d];
    made->getResult(0).setType(tensor_of(from, element_of(op_->getResult(0))));
    made_ = made;
    op_->getResult(0).replaceAllUsesWith(make_transpose(build_, op_->getLoc(), made->getResult(0), perm));
  }
  Operation* op_;
  OpBuilder build_;
  Operation* made_ = nullptr;
};

// The operand that replaces v in the untransposed operation. v must be transposed by the same
// permutation, have one element, or be a weight with a single dimension other than 1, which a
// reshape can move.
std::optional<Value> TransposeSinker::untransposed(Value v, llvm::ArrayRef<int64_t> perm) {
  if (auto transpose = v.getDefiningOp<TransposeOp>(); transpose && transpose.getPerm() == perm)
    return transpose.getX();
  const Shape shape = shape_of(v.getType());
  Shape placed(perm.size(), Dim::of(1));
  int wide = 0;
  for (size_t i = 1; i <= shape.size(); ++i) {
    if (shape[shape.size() - i] == Dim::of(1)) continue;
    ++wide;
    placed[static_cast<size_t>(perm[perm.size() - i])] = shape[shape.size() - i];
  }
  if (wide == 0) return v;
  if (wide > 1 || !v.getDefiningOp<ReproWeightOp>()) return std::nullopt;
  return make_reshape(build_, op_->getLoc(), v, placed);
}

void TransposeSinker::sink_pointwise() {
  const Shape result = shape_of(op_->getResult(0).getType());
  TransposeOp transpose;
  for (Value v : op_->getOperands())
    if (!transpose) transpose = full_size_transpose(v, result);
  if (!transpose || element_bytes(op_->getResult(0)) > element_bytes(transpose.getX())) return;
  const SmallVector<int64_t> perm(transpose.getPerm());
  SmallVector<Value> operands;
  for (Value v : op_->getOperands()) {
    const std::optional<Value> x = untransposed(v, perm);
    if (!x) return;
    operands.push_back(*x);
  }
  replace(operands, perm);
}

void TransposeSinker::sink_concat(ConcatOp op) {
  SmallVector<Value> operands;
  SmallVector<int64_t> perm;
  for (Value v : op.getOperands()) {
    auto transpose = v.getDefiningOp<TransposeOp>();
    if (!transpose || (!perm.empty() && transpose.getPerm() != llvm::ArrayRef(perm))) return;
    perm.assign(transpose.getPerm().begin(), transpose.getPerm().end());
    operands.push_back(transpose.getX());
  }
  const int64_t axis = perm[static_cast<size_t>(op.getAxis())];
  replace(operands, perm);
  cast<ConcatOp>(made_).setAxis(axis);
}

// Operations whose attributes list one number for each dimension. Operand 1, the value of a pad, is
// a scalar.
void TransposeSinker::sink_per_dim(llvm::ArrayRef<llvm::StringRef> attributes) {
  auto transpose = op_->getOperand(0).getDefiningOp<TransposeOp>();
  if (!transpose) return;
  const SmallVector<int64_t> perm(transpose.getPerm());
  SmallVector<Value> operands(op_->getOperands());
  operands[0] = transpose.getX();
  replace(operands, perm);
  for (llvm::StringRef name : attributes) {
    const auto given = op_->getAttrOfType<DenseI64ArrayAttr>(name).asArrayRef();
    SmallVector<int64_t> list(perm.size());
    for (size_t d = 0; d < perm.size(); ++d) list[static_cast<size_t>(perm[d])] = given[d];
    made_->setAttr(name, build_.getDenseI64ArrayAttr(list));
  }
}

// Composes two transposes at once, so that operations behind them see the combined permutation.
void compose_transposes(TransposeOp outer) {
  auto inner = outer.getX().getDefiningOp<TransposeOp>();
  if (!inner) return;
  SmallVector<int64_t> composed;
  for (int64_t d : outer.getPerm()) composed.push_back(inner.getPerm()[static_cast<size_t>(d)]);
  OpBuilder build(outer);
  outer.getOut().replaceAllUsesWith(llvm::is_sorted(composed)
                                        ? inner.getX()
                                        : make_transpose(build, outer.getLoc(), inner.getX(), composed));
}

void sink_transposes(Block& block) {
  SmallVector<Operation*> all;
  for (Operation& op : block) all.push_back(&op);
  for (Operation* op : all) {
    if (auto transpose = dyn_cast<TransposeOp>(op))
      compose_transposes(transpose);
    else
      TransposeSinker(op).run();
  }
}

int count_transposes(Block& block) {
  return static_cast<int>(llvm::range_size(block.getOps<TransposeOp>()));
}

// Keeps the result only if it has fewer transposes than before. Otherwise transposes stay where the
// model has them.
class SinkTransposes : public PassWrapper<SinkTransposes, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SinkTransposes)
  StringRef getArgument() const final { return "repro-sink-transposes"; }
  StringRef getDescription() const final { return "Move transposes to where they cancel"; }
  void runOnOperation() final {
    func::FuncOp function = getOperation();
    const int before = count_transposes(function.front());
    if (before == 0) return;
    func::FuncOp candidate = function.clone();
    sink_transposes(candidate.front());
    erase_dead_ops(candidate.front());
    canonicalize(candidate);
    if (count_transposes(candidate.front()) < before) function.getBody().takeBody(candidate.getBody());
    candidate.erase();
  }
};

}  // namespace

std::unique_ptr<Pass> sink_transposes_pass() {
  return std::make_unique<SinkTransposes>();
}

}  // namespace invar::compiler
