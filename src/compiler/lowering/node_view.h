// NodeView: what a lowering rule sees of the ONNX node that it converts: operands, attributes,
// dimensions, and the operations that it emits in the node's place.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "base/status.h"
#include "compiler/dialects/dialects.h"
#include "compiler/lowering/dynamic_shapes/data_dependent_dims.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include "shape/dim_expr.h"

namespace invar::compiler {
using namespace mlir;

using Ints = llvm::ArrayRef<int64_t>;

inline Type element_of(Value v) {
  return getElementTypeOrSelf(v.getType());
}

// The length of a slice if no bound is clamped. It is the length in every call where lower <=
// upper.
struct UnclampedSlice {
  DimExpr length, lower, upper;
};

// The state that the lowering of one function accumulates.
struct FunctionLoweringState {
  // Arguments and results that became session state (onnx.20). They are erased when the function is
  // lowered.
  llvm::BitVector state_arguments, state_results;
  bool stateless = false;  // no argument may become state
  DataDependentDims dims;
  int64_t folded_bytes = 0;  // of the constants computed so far
  // A clamped length -> its values in the cases that no bound clamps (onnx.27).
  std::map<DimExpr, std::vector<UnclampedSlice>> clamped_slices = {};
  // A dimension -> the dimensions that broadcast to it (onnx.24).
  std::map<DimExpr, std::set<DimExpr>> broadcasts_to = {};
  // Constraints that would make refused nodes valid: symbol -> its value (onnx.25).
  std::map<std::string, DimExpr> constraints{};
};

// How the operands of a node may be widened if its rule does not take their type (onnx.10,
// onnx.14). The low bits of the wider result are the bits of the narrow one.
enum class Widening : uint8_t {
  floats,    // f16, bf16 -> f32
  integers,  // also integers of 8 and 16 bits -> i32, u32 -> i64
  wrapping,  // also u64 -> i64: the result depends neither on order nor on quotients
  ordered,   // also u64 -> i64 with the top bit flipped: the result depends on order alone
  exact,     // floats, and integers of 8 and 16 bits -> f32
};

// One ONNX node whose operands are lowered already. What a rule does not ask for is refused:
// expect() refuses unknown attributes, operands and results.
class NodeView {
 public:
  // typeless: types and values of the operands are unknown. The rule runs for the errors that it
  // finds without them.
  NodeView(NodeOp op, func::ReturnOp end, FunctionLoweringState& state, bool typeless = false)
      : op_(op),
        end_(end),
        state_(state),
        build_(op),
        results_(op.getOutputs().size()),
        typeless_(typeless) {}
  // A typeless view: the rule read an operand, so an error that it returns may follow from the
  // dummy type.
  bool read_operand_types() const { return read_operand_types_; }

  int64_t version() const { return op_.getVersion(); }
  // Requires operands [0, least), no operand from `most` on, no used result from `results` on, and
  // only these attributes.
  Status expect(unsigned least, unsigned most, llvm::ArrayRef<llvm::StringRef> attributes,
                unsigned results = 1);
  bool has(unsigned i) const;
  Value in(unsigned i) const;  // AbsentType if the node has no such operand
  Shape shape(unsigned i) const { return shape_of(in(i).getType()); }
  Value out(unsigned i) const { return op_.getOutputs()[i]; }
  unsigned num_results() const { return op_.getOutputs().size(); }

  Attribute attribute(llvm::StringRef name) const { return op_.getParams().get(name); }
  Result<int64_t> int_attr(llvm::StringRef name, int64_t fallback) const;
  Result<float> float_attr(llvm::StringRef name, float fallback) const;
  Result<std::vector<int64_t>> ints_attr(llvm::StringRef name) const;  // empty if absent
  // The attribute must be absent or have this value.
  Status require_attr(llvm::StringRef name, int64_t value) const;
  Status require_attr(llvm::StringRef name, float value) const;

  // ---- operands that are constants or dimensions

  // The elements of an integer constant operand of rank 0 or 1.
  Result<std::vector<int64_t>> constant_ints(unsigned i) const;
  // The bytes of operand i if it is a constant.
  std::optional<std::string> constant_bytes(unsigned i) const;
  // The error for an operand that must be a constant and is not. It names the graph inputs to give
  // with --bind.
  Error not_constant(unsigned i, llvm::StringRef what = "a constant") const;
  Error not_constant(Value, std::string message) const;
  // The elements of an integer operand of rank 0 or 1 as dimension expressions. An element that
  // does not follow from constants and input dimensions becomes a new symbol; at run time its value
  // must be at least 0 (onnx.22).
  Result<std::vector<DimExpr>> dim_exprs(unsigned i);
  // The same, with nullopt for elements that would need a new symbol.
  Result<std::vector<std::optional<DimExpr>>> known_dim_exprs(unsigned i) const;
  // The elements of a small integer value if all of them are known.
  static std::optional<std::vector<DimExpr>> known_dim_values(Value);

  // ---- dimensions

  // A symbol for one element of an integer value.
  DimExpr bind_dim(Value v, int64_t element);
  // Whether the values of a call decide this dimension.
  bool is_data_dependent(const Dim&) const;
  // An error unless both dimensions are known to be equal.
  Status require_equal(const Dim& a, const Dim& b, const DimText& what);
  // The dimension that both broadcast to. Calls where they do not broadcast fail in a kernel's
  // check (onnx.24).
  std::optional<Dim> broadcast(const Dim& a, const Dim& b);
  // The dimension that Expand gives `from` for a requested `to`. Calls where it does not broadcast
  // fail in the kernel.
  std::optional<Dim> expand_to(const Dim& from, const Dim& to);
  // Records that a clamped slice of this length has another length where nothing is clamped
  // (onnx.27).
  void note_clamped_slice(const DimExpr& length, const UnclampedSlice& otherwise) {
    const std::optional<DimExpr> room = difference(1, length);
    // Broadcasts to any size.
    const bool repeats = room && room->is_nonnegative() && otherwise.length != 1;
    if (length != otherwise.length && !repeats) state_.clamped_slices[length].push_back(otherwise);
  }
  // An axis in [-rank, rank) -> [0, rank).
  static Result<int64_t> normalize_axis(int64_t axis, size_t rank);

  // ---- emission

  // A constant; of rank 0 if no shape is given.
  Value constant(llvm::StringRef bytes, DType, llvm::ArrayRef<int64_t> shape = {});
  Value constant(float);
  Value constant(llvm::ArrayRef<int64_t> list);
  // An i64 tensor of dimension expressions; a constant if all of them are.
  Value size_tensor(llvm::ArrayRef<DimExpr>, llvm::ArrayRef<int64_t> shape);
  NamedAttribute attr(llvm::StringRef name, int64_t v) {
    return build_.getNamedAttr(name, build_.getI64IntegerAttr(v));
  }
  NamedAttribute attr(llvm::StringRef name, float v) {
    return build_.getNamedAttr(name, build_.getF32FloatAttr(v));
  }
  NamedAttribute attr(llvm::StringRef name, llvm::StringRef v) {
    return build_.getNamedAttr(name, build_.getStringAttr(v));
  }
  NamedAttribute attr(llvm::StringRef name, llvm::ArrayRef<int64_t> v) {
    return build_.getNamedAttr(name, build_.getDenseI64ArrayAttr(v));
  }
  // Adds an operation with its numerics and version. Without `type` the result type is inferred.
  // The result is folded to a constant if all operands are small constants.
  template <class Op>
  Result<Value> make(ValueRange operands, llvm::ArrayRef<NamedAttribute> attrs = {}, Type type = {}) {
    return make(Op::getOperationName(), operands, attrs, type);
  }
  // A loop of `count` iterations, none if it is below 1 (plan.16). `body` emits one iteration into
  // a function of its own: from the iteration number (i64 []), the carried and the loop-invariant
  // values it returns the next carried values, of the same types, and then one element of each scan
  // output. Returns the final carried values and the scan outputs, stacked along a new leading
  // axis.
  using LoopBody = llvm::function_ref<Result<SmallVector<Value>>(NodeView& step, Value number,
                                                                 ValueRange carried, ValueRange invariant)>;
  Result<SmallVector<Value>> make_loop(const DimExpr& count, ValueRange carried, ValueRange invariant,
                                       LoopBody body);
  // Sets the value that replaces result 0 on commit().
  Status replace(Value value);
  // The same for another result, if the node has it. stays_wide: commit() does not narrow it to the
  // operands' type.
  void replace(unsigned result, Value value, bool stays_wide = false) {
    if (result < results_.size()) results_[result] = {value, stays_wide};
  }
  OpBuilder& builder() { return build_; }
  MLIRContext* context() const { return op_.getContext(); }

  // ---- types

  // Checks that operands of one ONNX type variable share an element type, and records the types of
  // the results. `variables` as in RuleRegistry::add_rule.
  Status check_operand_types(llvm::StringRef variables);
  // Widens the operands, which is exact; commit() then narrows the results once. False if no
  // operand can be widened.
  bool widen_operands(Widening);
  // Replaces the node's results by the rule's values.
  void commit();

  // ---- session state (onnx.20)

  // Whether past operand `in` and present result `out` may become session state: `in` is a graph
  // input without other uses, `out` a graph output without other uses, and the program may have
  // state.
  bool can_become_state(unsigned in, unsigned out) const;
  // Makes them state. Returns the name of the input.
  std::string become_state(unsigned in, unsigned out);

 private:
  Result<Value> make(llvm::StringRef op, ValueRange operands, llvm::ArrayRef<NamedAttribute>, Type);
  Error record_constraint(const Error&, const std::optional<Constraint>&);
  Status check_arity_and_attributes(unsigned least, unsigned most, llvm::ArrayRef<llvm::StringRef> attributes,
                                    unsigned results) const;
  // The operands expanded to a common shape that the kernels check; empty if they cannot broadcast.
  Result<SmallVector<Value>> expand_operands_dynamic(ValueRange operands);
  Value fold_result(Operation* made);
  Value cast_element(Value, Type element);
  Value flip_top_bit(Value);  // of u64

  mutable NodeOp op_;  // MLIR handles are never const
  func::ReturnOp end_;
  FunctionLoweringState& state_;
  OpBuilder build_;
  struct Replacement {
    Value value;
    bool stays_wide = false;
  };
  std::vector<Replacement> results_;
  SmallVector<Type> types_;  // of the results by the type variables; null where those say nothing
  Type narrow_, wide_;       // if integers were widened: results of type wide_ become narrow_
  bool flips_ = false;
  bool typeless_ = false;
  mutable bool read_operand_types_ = false;
};

}  // namespace invar::compiler
