// Conversion: the lowering of a function's ONNX nodes to the repro dialect in graph order, and of
// the graphs within nodes (If, Loop, Scan).
#pragma once

#include "compiler/lowering/dynamic_shapes/dim_constraints.h"
#include "compiler/lowering/rule_registry.h"
#include "compiler/passes/passes.h"

namespace invar::compiler {

class Conversion {
 public:
  // constraints: the known constraints on symbols, to which refusals add; null: none are learnt.
  Conversion(func::FuncOp function, bool stateless, DimConstraints* constraints, DifferingRanks ranks)
      : end_(cast<func::ReturnOp>(function.front().getTerminator())),
        state_{llvm::BitVector(function.getNumArguments()), llvm::BitVector(function.getNumResults()),
               stateless, DataDependentDims(function)},
        shared_(std::make_shared<SharedCounters>(SharedCounters{.differing_ranks = ranks})),
        constraints_(constraints),
        names_(input_dim_names(function)) {}

  // Converts the operations from `first` up to, not including, `last`. Nodes that cannot be
  // converted stay.
  void convert(Operation* first, Operation* last);
  const FunctionLoweringState& state() const { return state_; }
  func::ReturnOp end() const { return end_; }
  // The nodes that cannot be converted, with the reason.
  llvm::DenseMap<Operation*, Error>& failed() { return failed_; }
  // The errors that the constraints learnt here would lift.
  const std::vector<Error>& constraint_errors() const { return constraint_errors_; }
  bool ranks_differ() const { return shared_->ranks_differ; }
  // Erases nodes without uses, so that they are not refused.
  void remove_unused();

 private:
  using ControlFlowRule = Status (Conversion::*)(NodeOp);
  struct ControlFlowEntry {
    llvm::StringRef op_type;
    int64_t since;
    ControlFlowRule rule;
  };
  // The results of a body; nullopt if it reads a node that was not converted (which is reported
  // already).
  using Yields = std::optional<SmallVector<Value>>;
  // Axes and directions of a Scan.
  struct ScanAxes;
  // Of all conversions of a model.
  struct SharedCounters {
    int64_t cloned_ops = 0;   // operations in copies of bodies
    int unroll_attempts = 0;  // nested unrollings that may still be abandoned for a run-time loop
    DifferingRanks differing_ranks = DifferingRanks::refused;
    bool ranks_differ = false;  // an `If` was refused for it
  };

  // Converts the body of a control-flow operation.
  Conversion(func::FuncOp body, const Conversion& outer)
      : end_(cast<func::ReturnOp>(body.front().getTerminator())),
        state_{llvm::BitVector(body.getNumArguments()), llvm::BitVector(end_->getNumOperands()),
               /*stateless=*/true, DataDependentDims(outer.state_.dims, nullptr), outer.state_.folded_bytes},
        shared_(outer.shared_) {}
  // Whether there is a rule for this operator and opset.
  Status check_supported(NodeOp);
  // The errors that do not depend on the types of operands: for nodes behind one that was not
  // converted.
  Status check_without_types(NodeOp);
  Status convert_node(NodeOp);
  Result<Operation*> expand_node(NodeOp);
  // Adds to a refusal for a data-dependent dimension the graph inputs that decide it (--bind).
  Error with_bind_hint(NodeOp, const Error&);
  NodeView node(NodeOp op) { return NodeView(op, end_, state_); }
  // Takes the errors of the operations between two, as one error, and erases nodes there without
  // uses. before == null: from the begin of the block.
  std::optional<Error> take_errors(Operation* before, Operation* last);
  // Erases what was created for a node, after `before` (null: the begin of the block).
  void erase_created(Operation* before, NodeOp);

  // dynamic_shapes/dim_constraints.cc
  static std::vector<std::string> input_dim_names(func::FuncOp);
  // Adds the constraints that the last refusal asks for and continues with them. False if none is
  // new or they cannot hold; then it may append the reason to the error.
  bool learn_constraints(Error&);

  // control_flow/unroll.cc
  static const ControlFlowEntry* find_control_flow(NodeOp);
  Status lower_if(NodeOp);
  Status lower_loop(NodeOp);
  Status lower_scan(NodeOp);
  // False if it cannot be unrolled; then everything created for it is erased again.
  Result<bool> unroll_loop(NodeOp, Region&, SmallVector<Value> carried, std::optional<int64_t> trips);
  // One sequence: final states, then the stacked scan outputs.
  Result<Yields> lower_scan_sequence(NodeOp, Region&, const ScanAxes&, SmallVector<Value> states,
                                     ValueRange inputs);
  Result<Yields> lower_scan_batch(NodeOp, Region&, const ScanAxes&, size_t states, ValueRange operands);
  // A copy of a body in front of its node, with these inputs.
  struct ClonedBody {
    Operation* first;
    YieldOp end;
  };
  Result<ClonedBody> clone_body(NodeOp, Region&, ValueRange inputs);
  Status count_cloned_ops(Region&, int64_t most);
  // The same, converted.
  Result<Yields> inline_body(NodeOp, Region&, ValueRange inputs);

  // control_flow/outline.cc
  struct OutlinedBody;
  // The inputs of the body's graph, from the arguments of its function.
  using BodyInputs = llvm::function_ref<SmallVector<Value>(OpBuilder&, ValueRange arguments)>;
  // Makes a function of a body. Its arguments have the types `arguments`, followed by the values
  // that the body captures, which are added to `captured`. `here`: constraints that hold inside it.
  // nullopt as for Yields.
  Result<std::optional<OutlinedBody>> outline_body(NodeOp, Region&, ArrayRef<Type> arguments, BodyInputs,
                                                   SmallVector<Value>& captured,
                                                   const DimConstraints& here = {});

  // control_flow/dynamic_loop.cc
  struct LoopOperands;
  // Outlines the body of a loop. `types`: those of its arguments at first; the carried ones become
  // those of a fixed point. `changing`: the symbols of dimensions that change between iterations.
  Result<std::optional<OutlinedBody>> outline_loop_body(NodeOp, Region&, const LoopOperands&,
                                                        SmallVector<Type>& types,
                                                        std::set<std::string>& changing,
                                                        SmallVector<Value>& captured);
  Result<std::optional<SmallVector<Value>>> make_dynamic_loop(NodeOp, Region&, const LoopOperands&);
  Status lower_dynamic_loop(NodeOp, Region&, SmallVector<Value> carried);
  Result<Yields> lower_dynamic_scan(NodeOp, Region&, const ScanAxes&, SmallVector<Value> states,
                                    ValueRange inputs, const DimExpr& count);

  // control_flow/dynamic_if.cc
  // A branch may need constraints that hold only where it runs: they are added to `here`.
  Result<std::optional<OutlinedBody>> outline_branch(NodeOp, Region&, SmallVector<Value>& captured,
                                                     DimConstraints& here);
  Status take_branch(NodeOp, Value condition, Region&, bool required);
  Status lower_dynamic_if(NodeOp, Value condition, Region& then_body, Region& else_body);

  func::ReturnOp end_;
  FunctionLoweringState state_;
  llvm::DenseMap<Operation*, Error> failed_;
  std::shared_ptr<SharedCounters> shared_;
  // Null in bodies, which report theirs to the function around them.
  DimConstraints* constraints_ = nullptr;
  std::vector<std::string> names_;  // symbols of the inputs' dimensions, in their order
  std::vector<Error> constraint_errors_;
};

// The error of a node, with the node's operator and name before it.
Error at(NodeOp, const Error&);
// An error about nodes of a body, and what can be done about those of another.
Error joined(Error, const Error& other);

struct Conversion::ScanAxes {
  std::vector<int64_t> in_axes, in_backwards, out_axes, out_backwards;
};

// Creates the empty function of a control-flow body, in front of the function that runs it.
func::FuncOp make_body_function(func::FuncOp around, Location, DataDependentDims&, TypeRange arguments);
// Replaces each `repro.sizes` by operations that compute it, once for equal ones.
void materialize_dims(Block&);

}  // namespace invar::compiler
