// The conversion of nodes to reproducible operations, one after the other, and of the graphs within nodes.
#pragma once

#include "compiler/passes/passes.h"
#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {

class Conversion {
 public:
  // settled: names of dimensions that are something, and what refusals add to it; null: nothing is settled.
  Conversion(func::FuncOp function, bool stateless, Settled* settled)
      : end_(cast<func::ReturnOp>(function.front().getTerminator())),
        ports_{llvm::BitVector(function.getNumArguments()), llvm::BitVector(function.getNumResults()),
               stateless, Bound(function)},
        shared_(std::make_shared<Shared>()),
        settled_(settled),
        names_(names_of(function)) {}

  // The operations of the block from `first` up to `last`. Nodes that cannot be converted stay.
  void convert(Operation* first, Operation* last);
  const Ports& ports() const { return ports_; }
  func::ReturnOp end() const { return end_; }
  // What cannot be converted, and why.
  llvm::DenseMap<Operation*, Error>& failed() { return failed_; }
  // What could not be converted but as if names were what it needs them to be.
  const std::vector<Error>& unsettled() const { return unsettled_; }
  // Nodes that nothing reads do no harm.
  void remove_unused();

 private:
  using Flow = Status (Conversion::*)(NodeOp);
  struct FlowEntry {
    llvm::StringRef op_type;
    int64_t since;
    Flow rule;
  };
  // Results of a body; nothing where it reads what could not be converted.
  using Yields = std::optional<SmallVector<Value>>;
  // Axes and directions of a Scan.
  struct Steps;
  // What all conversions of a model share.
  struct Shared {
    int64_t made = 0;  // operations of copies of graphs
    int tries = 0;     // steps that are unrolled: another way is tried where they fail
  };

  Conversion(func::FuncOp body, const Conversion& outer)
      : end_(cast<func::ReturnOp>(body.front().getTerminator())),
        ports_{llvm::BitVector(body.getNumArguments()), llvm::BitVector(end_->getNumOperands()),
               /*stateless=*/true, Bound(outer.ports_.bound, nullptr), outer.ports_.evaluated},
        shared_(outer.shared_) {}
  Status covered(NodeOp);
  Status surveyed(NodeOp);
  Status convert_node(NodeOp);
  Error hinted(NodeOp, const Error&);
  Node node(NodeOp op) { return Node(op, end_, ports_); }
  // The errors of the operations between two, as one; nodes there that nothing reads go. before: null is the block's begin.
  std::optional<Error> taken_errors(Operation* before, Operation* last);

  // settled.cc
  static std::vector<std::string> names_of(func::FuncOp);
  // The program goes on as if names were what a refusal says; false: it says nothing new, or why that is impossible.
  bool settle(Error&);
  // What was made for a node, behind `before` (null: the block's begin), goes.
  void drop_made(Operation* before, NodeOp);

  // flow.cc
  static const FlowEntry* find_flow(NodeOp);
  Status branch(NodeOp);
  Status loop(NodeOp);
  Status scan(NodeOp);
  // False: it is not to be unrolled, and all that was made for it is gone.
  Result<bool> unrolled(NodeOp, Region&, SmallVector<Value> carried, std::optional<int64_t> trips);
  Result<Yields> scanned(NodeOp, Region&, const Steps&, SmallVector<Value> states, ValueRange inputs);
  Result<Yields> scanned_batch(NodeOp, Region&, const Steps&, size_t states, ValueRange operands);
  // A copy of a graph of the node, of these inputs, in front of it.
  struct Copy {
    Operation* first;
    YieldOp end;
  };
  Result<Copy> copied(NodeOp, Region&, ValueRange inputs);
  Status count_copy(Region&, int64_t most);
  // The same, converted.
  Result<Yields> inlined(NodeOp, Region&, ValueRange inputs);

  // flow_at_run_time.cc
  struct Body;
  struct Looped;
  using Inputs = llvm::function_ref<SmallVector<Value>(OpBuilder&, ValueRange arguments)>;
  // A graph of the node as a function, of values of these types and, behind them, of what it reads from around: `captured`, to which
  // it adds. `inputs` says what the graph's inputs are, `here` what names are that are something else around; nothing where it reads what could not be converted.
  Result<std::optional<Body>> outlined(NodeOp, Region&, ArrayRef<Type> arguments, Inputs,
                                       SmallVector<Value>& captured, const Settled& here = {});
  // A branch, which needs names to be something only where it runs: `here`.
  Result<std::optional<Body>> outlined_branch(NodeOp, Region&, SmallVector<Value>& captured, Settled& here);
  Result<std::optional<SmallVector<Value>>> looped(NodeOp, Region&, const Looped&);
  Status loop_at_run_time(NodeOp, Region&, SmallVector<Value> carried);
  Status branch_at_run_time(NodeOp, Value condition, Region& then_body, Region& else_body);
  Result<Yields> scanned_at_run_time(NodeOp, Region&, const Steps&, SmallVector<Value> states,
                                     ValueRange inputs, const Polynomial& count);

  func::ReturnOp end_;
  Ports ports_;
  llvm::DenseMap<Operation*, Error> failed_;
  std::shared_ptr<Shared> shared_;
  Settled* settled_ = nullptr;      // of the program; bodies tell what is around them
  std::vector<std::string> names_;  // of its inputs, in their order
  std::vector<Error> unsettled_;
};

struct Conversion::Steps {
  std::vector<int64_t> in_axes, in_backwards, out_axes, out_backwards;
};

// Dimensions of slices that are clamped become those of slices that are not, where calls fail otherwise.
void take_unclamped(Block&, const Ports&);
// An empty body of control flow, in front of the function that runs it.
func::FuncOp make_body(func::FuncOp around, Location, Bound&, TypeRange arguments);
// Adds that a name is of this size; false: it says nothing new.
bool learn(Settled&, const std::string& name, Polynomial size);
// Dimensions of a type, or what a program computes as numbers, as another polynomial each; nothing: they stay.
using Replacing = llvm::function_ref<std::optional<Polynomial>(const Polynomial&)>;
Type replaced(Type, Replacing);
void replace(ReproSizesOp, Replacing);
// What stands for names that are settled takes their place.
class Settling {
 public:
  explicit Settling(const Settled& by) : by_(by) {}
  Type of(Type);
  std::optional<Polynomial> of(const Polynomial&) const;
  void operator()(Value v) { v.setType(of(v.getType())); }
  void operator()(ReproSizesOp);

 private:
  const Settled& by_;
  llvm::DenseMap<Type, Type> known_;
};

// What kernels read of dimensions becomes operations, once for equal ones.
void measure(Block&);

}  // namespace invar::compiler
