// Transposes move behind what computes or moves every element by itself, where they meet others that undo them or a kernel that reads
// either order. An element's value does not depend on where it lies, so the bits stay (elementwise.2, cast.1, move.1).
#include "compiler/passes/canonicalize/patterns.h"

namespace invar::compiler {
namespace {

// The transpose that makes v, as large as the result.
TransposeOp turn_of(Value v, const Shape& result) {
  auto turn = v.getDefiningOp<TransposeOp>();
  return turn && shape_of(v.getType()) == result ? turn : TransposeOp();
}

int64_t bytes_of(Value v) {
  const std::optional<DType> dtype = dtype_of(element_of(v));
  return dtype ? static_cast<int64_t>(size_of(*dtype)) : 0;
}

class Sink {
 public:
  explicit Sink(Operation* op) : op_(op), build_(op) {}
  void run() {
    auto room = dyn_cast<ReproOp>(op_);
    if (!room) return;
    if (room.pointwise()) return pointwise();
    if (auto concat = dyn_cast<ConcatOp>(op_)) return joined(concat);
    if (auto slice = dyn_cast<SliceOp>(op_)) return moved({"starts", "steps"});
    if (isa<PadOp, PadEdgeOp, PadReflectOp, PadWrapOp>(op_)) return moved({"begins"});
  }

 private:
  void pointwise();
  void joined(ConcatOp);
  void moved(llvm::ArrayRef<llvm::StringRef> lists);
  std::optional<Value> before(Value v, llvm::ArrayRef<int64_t> perm);
  // The operation on operands as they were before, turned afterwards.
  void replace(ValueRange operands, llvm::ArrayRef<int64_t> perm) {
    Operation* made = build_.clone(*op_);
    made->setOperands(operands);
    const Shape to = shape_of(op_->getResult(0).getType());
    Shape from(to.size());
    for (size_t d = 0; d < to.size(); ++d) from[static_cast<size_t>(perm[d])] = to[d];
    made->getResult(0).setType(tensor_of(from, element_of(op_->getResult(0))));
    made_ = made;
    op_->getResult(0).replaceAllUsesWith(transposed(build_, op_->getLoc(), made->getResult(0), perm));
  }
  Operation* op_;
  OpBuilder build_;
  Operation* made_ = nullptr;
};

// What takes v's place where the result is of the order before: v is turned the same way, is one element, or has one dimension that
// another shape moves.
std::optional<Value> Sink::before(Value v, llvm::ArrayRef<int64_t> perm) {
  if (auto turn = v.getDefiningOp<TransposeOp>(); turn && turn.getPerm() == perm) return turn.getX();
  const Shape shape = shape_of(v.getType());
  Shape placed(perm.size(), Extent::of(1));
  int wide = 0;
  for (size_t i = 1; i <= shape.size(); ++i) {
    if (shape[shape.size() - i] == Extent::of(1)) continue;
    ++wide;
    placed[static_cast<size_t>(perm[perm.size() - i])] = shape[shape.size() - i];
  }
  if (wide == 0) return v;
  if (wide > 1 || !v.getDefiningOp<ReproWeightOp>()) return std::nullopt;
  return reshaped(build_, op_->getLoc(), v, placed);
}

void Sink::pointwise() {
  const Shape result = shape_of(op_->getResult(0).getType());
  TransposeOp turn;
  for (Value v : op_->getOperands())
    if (!turn) turn = turn_of(v, result);
  if (!turn || bytes_of(op_->getResult(0)) > bytes_of(turn.getX())) return;
  const SmallVector<int64_t> perm(turn.getPerm());
  SmallVector<Value> operands;
  for (Value v : op_->getOperands()) {
    const std::optional<Value> b = before(v, perm);
    if (!b) return;
    operands.push_back(*b);
  }
  replace(operands, perm);
}

void Sink::joined(ConcatOp op) {
  SmallVector<Value> operands;
  SmallVector<int64_t> perm;
  for (Value v : op.getOperands()) {
    auto turn = v.getDefiningOp<TransposeOp>();
    if (!turn || (!perm.empty() && turn.getPerm() != llvm::ArrayRef(perm))) return;
    perm.assign(turn.getPerm().begin(), turn.getPerm().end());
    operands.push_back(turn.getX());
  }
  const int64_t axis = perm[static_cast<size_t>(op.getAxis())];
  replace(operands, perm);
  cast<ConcatOp>(made_).setAxis(axis);
}

// Lists have an entry for each dimension. What is padded with, operand 1, is one element.
void Sink::moved(llvm::ArrayRef<llvm::StringRef> lists) {
  auto turn = op_->getOperand(0).getDefiningOp<TransposeOp>();
  if (!turn) return;
  const SmallVector<int64_t> perm(turn.getPerm());
  SmallVector<Value> operands(op_->getOperands());
  operands[0] = turn.getX();
  replace(operands, perm);
  for (llvm::StringRef name : lists) {
    const auto given = op_->getAttrOfType<DenseI64ArrayAttr>(name).asArrayRef();
    SmallVector<int64_t> list(perm.size());
    for (size_t d = 0; d < perm.size(); ++d) list[static_cast<size_t>(perm[d])] = given[d];
    made_->setAttr(name, build_.getDenseI64ArrayAttr(list));
  }
}

// Composed right away, so that what comes behind sees an operand that is not turned.
void compose(TransposeOp outer) {
  auto inner = outer.getX().getDefiningOp<TransposeOp>();
  if (!inner) return;
  SmallVector<int64_t> both;
  for (int64_t d : outer.getPerm()) both.push_back(inner.getPerm()[static_cast<size_t>(d)]);
  OpBuilder build(outer);
  outer.getOut().replaceAllUsesWith(
      llvm::is_sorted(both) ? inner.getX() : transposed(build, outer.getLoc(), inner.getX(), both));
}

}  // namespace

void sink_transposes(Block& block) {
  SmallVector<Operation*> all;
  for (Operation& op : block) all.push_back(&op);
  for (Operation* op : all) {
    if (auto turn = dyn_cast<TransposeOp>(op))
      compose(turn);
    else
      Sink(op).run();
  }
}

}  // namespace invar::compiler
