#include "compiler/passes/choose_exact16.h"

#include "base/profile.h"
#include "compiler/dialects/origin.h"
#include "compiler/passes/canonicalize/patterns.h"
#include "num/exact16/quantize.h"

namespace invar::compiler {
namespace {

// exact16.9 and exact16.11: the operators whose products are of the profile.
constexpr llvm::StringRef kProducts[] = {"MatMul", "Gemm", "FusedMatMul", "MatMulNBits", "MoE"},
                          kIntegerProducts[] = {"MatMulNBits", "QMoE"}, kConvolutions[] = {"Conv"},
                          kChoosing[] = {"Gather", "MoE"};

class ChooseExact16 : public PassWrapper<ChooseExact16, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ChooseExact16)
  explicit ChooseExact16(std::vector<RefusedNodes>* refused) : refused_(refused) {}
  ChooseExact16(const ChooseExact16& other) : PassWrapper(other), refused_(other.refused_) {}
  StringRef getArgument() const final { return "repro-choose-exact16"; }
  StringRef getDescription() const final {
    return "Compute products with the program's tensors in rows of 16-bit integers";
  }
  void runOnOperation() final;

 private:
  bool is_constant(Value, bool indices_count);
  // Whether the operation is a product of the profile.
  bool is_product(Operation*, Value a, Value b, llvm::ArrayRef<llvm::StringRef> operators);
  Status choose(MatmulOp);
  Status choose(ConvOp);
  // An operation of the profile in the place of `op`, with its operands and attributes.
  template <class Exact>
  Status choose_same(Operation* op);
  Status choose_any(Operation*);
  void state_choice();
  std::vector<RefusedNodes>* refused_;
  llvm::DenseMap<Value, bool> known_[2];  // by indices_count
};

// Whether the value follows from constants alone. The indices of a Gather of matrices along axis 0,
// which choose an expert, may not count.
bool ChooseExact16::is_constant(Value v, bool indices_count) {
  llvm::DenseMap<Value, bool>& all = known_[indices_count];
  if (const auto known = all.find(v); known != all.end()) return known->second;
  Operation* op = v.getDefiningOp();
  bool yes = isa_and_nonnull<ReproWeightOp>(op);
  if (!yes && isa_and_nonnull<ReproOp>(op) && !op->hasAttr("state")) {
    auto gather = dyn_cast<GatherOp>(op);
    const bool chosen = !indices_count && gather && gather.getAxis().value_or(0) == 0 &&
                        shape_of(gather.getTable().getType()).size() > 2 &&
                        llvm::is_contained(kChoosing, origin_of(op->getLoc()).op);
    yes = chosen ? is_constant(gather.getTable(), false)
                 : llvm::all_of(op->getOperands(), [&](Value x) { return is_constant(x, indices_count); });
  }
  all[v] = yes;
  return yes;
}

Status check_length(int64_t k) {
  if (k <= num::kExact16LongestRow) return {};
  return not_covered("rows of " + std::to_string(k) + " elements; exact16.3 covers " +
                     std::to_string(num::kExact16LongestRow));
}

Status ChooseExact16::choose(MatmulOp op) {
  Value a = op.getA();
  const Shape rows = shape_of(a.getType());
  OpBuilder build(op);
  if (op.getTransA().value_or(0)) {
    SmallVector<int64_t> perm = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(rows.size())));
    std::swap(perm.back(), perm[perm.size() - 2]);
    a = make_transpose(build, op.getLoc(), a, perm);
  }
  const Dim k = shape_of(a.getType()).back();
  INVAR_CHECK_OK(check_length(k.constant() ? k.value : 0));
  INVAR_TRY(Operation * made,
            make_checked(build, op.getLoc(), MatmulExact16Op::getOperationName(), {a, op.getB()},
                         {build.getNamedAttr("trans_b", op.getTransBAttr())}, op.getType()));
  op.replaceAllUsesWith(made->getResult(0));
  op.erase();
  return {};
}

template <class Exact>
Status ChooseExact16::choose_same(Operation* op) {
  OpBuilder build(op);
  SmallVector<NamedAttribute> attrs(op->getAttrs());
  llvm::erase_if(attrs,
                 [](NamedAttribute a) { return a.getName() == "numerics" || a.getName() == "version"; });
  INVAR_TRY(Operation * made, make_checked(build, op->getLoc(), Exact::getOperationName(), op->getOperands(),
                                           attrs, op->getResult(0).getType()));
  op->replaceAllUsesWith(made);
  op->erase();
  return {};
}

bool ChooseExact16::is_product(Operation* op, Value a, Value b, llvm::ArrayRef<llvm::StringRef> operators) {
  return llvm::is_contained(operators, origin_of(op->getLoc()).op) && !is_constant(a, true) &&
         is_constant(b, false);
}

Status ChooseExact16::choose_any(Operation* op) {
  if (isa<AttentionOp>(op)) return choose_same<AttentionExact16Op>(op);
  if (auto n = dyn_cast<MatmulNbitsOp>(op); n && is_product(op, n.getA(), n.getB(), kIntegerProducts))
    return choose_same<MatmulNbitsExact16Op>(op);
  if (auto conv = dyn_cast<ConvOp>(op)) return choose(conv);
  auto product = dyn_cast<MatmulOp>(op);
  if (!product || element_of(product.getA()).isF64() ||
      !is_product(op, product.getA(), product.getB(), kProducts))
    return {};
  return choose(product);
}

Status ChooseExact16::choose(ConvOp op) {
  const Shape w = shape_of(op.getWeight().getType());
  if (w[1] == Dim::of(1) || !is_product(op, op.getX(), op.getWeight(), kConvolutions)) return {};
  int64_t k = 1;
  for (size_t i = 1; i < w.size(); ++i) k *= w[i].value;
  INVAR_CHECK_OK(check_length(k));
  return choose_same<ConvExact16Op>(op);
}

void ChooseExact16::state_choice() {
  Builder build(&getContext());
  SmallVector<Attribute> names;
  if (auto before = getOperation()->getAttrOfType<ArrayAttr>(kChoicesAttr))
    names.append(before.begin(), before.end());
  names.push_back(build.getStringAttr(llvm::StringRef(kExact16Choice)));
  getOperation()->setAttr(kChoicesAttr, build.getArrayAttr(names));
}

void ChooseExact16::runOnOperation() {
  if (getOperation()->hasAttr(kBody)) return;
  for (auto& known : known_) known.clear();
  state_choice();
  bool failed = false;
  for (Operation& op : llvm::make_early_inc_range(getOperation().front())) {
    const plan::Origin origin = origin_of(op.getLoc());
    const Status done = choose_any(&op);
    if (done) continue;
    failed = true;
    if (refused_)
      refused_->push_back({.code = done.error().code,
                           .op = origin.op + " (exact16",
                           .node = origin.name,
                           .reason = done.error().message});
    else
      op.emitError(done.error().message);
  }
  if (failed) signalPassFailure();
}

}  // namespace

std::unique_ptr<Pass> choose_exact16_pass(std::vector<RefusedNodes>* refused) {
  return std::make_unique<ChooseExact16>(refused);
}

}  // namespace invar::compiler
