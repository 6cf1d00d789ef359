// If whose condition is known at run time only (onnx.23): an `if` operation over two outlined
// branches, or, where both are cheap and cannot fail, both branches and a `where`.
#include "compiler/lowering/control_flow/control_flow.h"
#include "compiler/lowering/op_builder.h"
#include "kernels/registry.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/IR/IRMapping.h"

namespace invar::compiler {
namespace {

// Operations of a branch that is computed whatever the condition is, so that control flow does not
// split the program.
constexpr int kMaxSelectedOps = 16;

// Whether a branch is small and cannot fail, so that it may be computed whatever the condition is.
bool can_speculate(const NodeView& node, func::FuncOp branch) {
  int operations = 0;
  for (Operation& inner : branch.front().without_terminator()) {
    if (isa<ReproWeightOp>(inner)) continue;
    const ops::OpContract* contract = ops::contract_of(std::string_view(inner.getName().stripDialect()));
    auto repro = dyn_cast<ReproOp>(inner);
    const auto fixed = [](TypeRange types) {
      return llvm::all_of(types, [](Type t) { return cast<RankedTensorType>(t).hasStaticShape(); });
    };
    const bool divides = isa<DivOp, ModOp>(inner) && !isa<FloatType>(element_of(inner.getResult(0)));
    // May fail for symbolic dimensions.
    const bool moves = repro && repro.copies() && !repro.pointwise();
    const bool cheap = repro && !divides && (repro.pointwise() || repro.elementwise() || moves) &&
                       (!moves || (fixed(inner.getOperandTypes()) && fixed(inner.getResultTypes())));
    if (!cheap || !contract || contract->find_out_of_bounds || ++operations > kMaxSelectedOps) return false;
    for (const Dim& e : shape_of(inner.getResult(0).getType()))
      if (node.is_data_dependent(e)) return false;
  }
  return true;
}

// Clones a branch in front of its node and erases its function. Returns the results.
SmallVector<Value> inline_branch(NodeOp op, func::FuncOp branch, ValueRange captured) {
  IRMapping map;
  map.map(branch.getArguments(), captured);
  OpBuilder build(op);
  for (Operation& inner : branch.front().without_terminator()) build.clone(inner, map);
  SmallVector<Value> values;
  for (Value v : branch.front().getTerminator()->getOperands()) values.push_back(map.lookup(v));
  branch.erase();
  return values;
}

bool is_one_element(Type type) {
  const auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() && tensor.getNumElements() == 1;
}

// Whether the user of a value of one element asks it whether it is true.
bool is_condition(OpOperand& use) {
  if (use.getOperandNumber() != 0) return false;
  auto yielding =
      dyn_cast<NodeOp>(isa<YieldOp>(use.getOwner()) ? use.getOwner()->getParentOp() : use.getOwner());
  return yielding && yielding.getDomain().empty() &&
         yielding.getOpType() == (isa<YieldOp>(use.getOwner()) ? "Loop" : "If");
}

// Whether nothing shows the rank of a value of one element: it is a condition, or goes elementwise
// with a value that has axes, or becomes another such value.
bool rank_says_nothing(Value v) {
  static const llvm::StringSet<> elementwise = {"Cast", "Identity", "Not",  "And",    "Or",  "Xor",
                                                "Add",  "Sub",      "Mul",  "Div",    "Min", "Max",
                                                "Neg",  "Equal",    "Less", "Greater"};
  return llvm::all_of(v.getUses(), [](OpOperand& use) {
    if (is_condition(use)) return true;
    auto user = dyn_cast<NodeOp>(use.getOwner());
    if (!user || !user.getDomain().empty() || !elementwise.contains(user.getOpType())) return false;
    const bool has_axes = llvm::any_of(user.getInputs(), [&](Value other) {
      const auto type = dyn_cast<RankedTensorType>(other.getType());
      return other != use.get() && type && type.getRank() > 0;
    });
    return has_axes || rank_says_nothing(user.getOutputs()[0]);
  });
}

}  // namespace

Result<std::optional<Conversion::OutlinedBody>> Conversion::outline_branch(NodeOp op, Region& region,
                                                                           SmallVector<Value>& captured,
                                                                           DimConstraints& here) {
  const auto none = [](OpBuilder&, ValueRange) { return SmallVector<Value>(); };
  for (const SmallVector<Value> before = captured;; captured = before) {
    const auto outer = std::exchange(state_.constraints, {});
    auto body = outline_body(op, region, {}, none, captured, here);
    const auto found = std::exchange(state_.constraints, outer);
    if (body) return body;
    bool learnt = false;
    for (const auto& [name, size] : found)
      if (!state_.dims.contains(size)) learnt |= learn_constraint(here, name, size);
    if (!learnt) return body;
  }
}

// Takes one branch in the place of its node: a call whose condition asks for the other is an error,
// that of an index into one element.
Status Conversion::take_branch(NodeOp op, Value condition, Region& branch, bool required) {
  NodeView n = node(op);
  if (required) {
    INVAR_TRY(condition, n.make<LogicalNotOp>(condition));
  }
  INVAR_TRY(const Value index, n.make<CastOp>(condition, {}, tensor_of({}, n.builder().getI64Type())));
  INVAR_TRY(const Yields results, inline_body(op, branch, {}));
  if (!results) return {};  // the node that it reads is refused already
  for (unsigned i = 0; i < n.num_results(); ++i) {
    if (n.out(i).use_empty()) continue;
    Shape shape = shape_of((*results)[i].getType());
    shape.insert(shape.begin(), Dim::of(1));
    INVAR_TRY(const Value row, reshape(n, (*results)[i], shape));
    INVAR_TRY(const Value out, n.make<GatherOp>({row, index}, n.attr("axis", int64_t{0})));
    n.replace(i, out);
  }
  n.commit();
  return {};
}

// Computes both branches and selects if they are small, cannot fail and give the same shapes; else
// emits an `if`.
Status Conversion::lower_dynamic_if(NodeOp op, Value condition, Region& then_region, Region& else_region) {
  NodeView n = node(op);
  SmallVector<Value> captured;
  DimConstraints of_a, of_b;
  INVAR_TRY(std::optional<OutlinedBody> a, outline_branch(op, then_region, captured, of_a));
  if (!a) return {};  // the node that it reads is refused already
  INVAR_TRY(std::optional<OutlinedBody> b, outline_branch(op, else_region, captured, of_b));
  if (!b) return {};
  DimSubstitution substitution(of_a);
  for (Value v : ArrayRef(captured).drop_front(a->function.getNumArguments()))
    a->function.front().addArgument(substitution.of(v.getType()), v.getLoc());
  a->update_type();
  bool select =
      of_a.empty() && of_b.empty() && can_speculate(n, a->function) && can_speculate(n, b->function);
  std::vector<std::pair<std::string, unsigned>> new_symbols;
  SmallVector<Type> results;
  for (unsigned i = 0; i < n.num_results(); ++i) {
    const auto type_in = [i](OutlinedBody& branch) { return branch.end()->getOperand(i).getType(); };
    if (type_in(*a) != type_in(*b) && is_one_element(type_in(*a)) && is_one_element(type_in(*b)) &&
        rank_says_nothing(n.out(i))) {
      for (OutlinedBody* branch : {&*a, &*b}) {
        OpBuilder build(branch->end());
        const Value v = branch->end()->getOperand(i);
        Operation* scalar = make_op(build, op.getLoc(), ReshapeOp::getOperationName(), v, {},
                                    RankedTensorType::get({}, element_of(v)));
        branch->end()->setOperand(i, scalar->getResult(0));
        branch->update_type();
      }
    }
    const Type x = type_in(*a), y = type_in(*b);
    if (!check_same_type(x, y, "")) {
      const bool same_element = getElementTypeOrSelf(x) == getElementTypeOrSelf(y);
      shared_->ranks_differ |= same_element;
      const bool takes_then = shared_->differing_ranks == DifferingRanks::take_then;
      if (same_element && shared_->differing_ranks != DifferingRanks::refused)
        return take_branch(op, condition, takes_then ? then_region : else_region, takes_then);
      return n.not_constant(condition, ("its condition is not a constant, and it gives " + text_of_type(x) +
                                        " or " + text_of_type(y))
                                           .text);
    }
    const Type element = getElementTypeOrSelf(x);
    select &= !element.isF16() && !element.isBF16();  // `where` does not take them
    Shape shape = shape_of(x);
    const Shape other = shape_of(y);
    for (size_t d = 0; d < shape.size(); ++d) {
      const std::optional<DimExpr> p = dim_expr_of(shape[d]);
      if (known_equal(shape[d], other[d]) && p && !a->dims.defines(*p)) continue;
      const std::string name = state_.dims.fresh_name(op.getOpType());
      new_symbols.push_back({name, i});
      shape[d] = Dim::of(DimExpr::symbol(name)), select = false;
    }
    results.push_back(tensor_of(shape, getElementTypeOrSelf(x)));
  }
  if (select) {
    const SmallVector<Value> x = inline_branch(op, a->function, captured),
                             y = inline_branch(op, b->function, captured);
    for (unsigned i = 0; i < n.num_results(); ++i) {
      if (n.out(i).use_empty()) continue;
      Value out = x[i];
      if (out != y[i]) {
        INVAR_TRY(out, n.make<WhereOp>({condition, x[i], y[i]}));
      }
      n.replace(i, out);
    }
  } else {
    SmallVector<Value> operands{condition};
    operands.append(captured);
    OpBuilder& build = n.builder();
    auto flow = build.create<ReproFlowOp>(
        op.getLoc(), results, build.getStringAttr("if"),
        build.getArrayAttr({FlatSymbolRefAttr::get(a->function), FlatSymbolRefAttr::get(b->function)}),
        operands, build.getI64IntegerAttr(0));
    for (const auto& [name, result] : new_symbols) state_.dims.record(name, flow.getOutputs()[result]);
    for (unsigned i = 0; i < n.num_results(); ++i) n.replace(i, flow.getOutputs()[i]);
  }
  n.commit();
  return {};
}

}  // namespace invar::compiler
