// The conversion of nodes to reproducible operations, one after the other, and of the graphs within nodes.
#pragma once

#include "ir/passes.h"
#include "ir/rules.h"

namespace invar::ir {

class Conversion {
 public:
  Conversion(func::FuncOp function, bool stateless)
      : end_(cast<func::ReturnOp>(function.front().getTerminator())),
        ports_{llvm::BitVector(function.getNumArguments()), llvm::BitVector(function.getNumResults()),
               stateless, Bound(function)} {}

  // The operations of the block from `first` up to `last`. Nodes that cannot be converted stay.
  void convert(Operation* first, Operation* last);
  const Ports& ports() const { return ports_; }
  func::ReturnOp end() const { return end_; }
  // What cannot be converted, and why.
  llvm::DenseMap<Operation*, Error>& failed() { return failed_; }

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

  Status convert_node(NodeOp);
  Error hinted(NodeOp, const Error&);
  Node node(NodeOp op) { return Node(op, end_, ports_); }

  // flow.cc
  static const FlowEntry* find_flow(NodeOp);
  Status branch(NodeOp);
  Status loop(NodeOp);
  Status scan(NodeOp);
  Result<Yields> scanned(NodeOp, Region&, const Steps&, SmallVector<Value> states, ValueRange inputs);
  Result<Yields> scanned_batch(NodeOp, Region&, const Steps&, size_t states, ValueRange operands);
  // A copy of a graph of the node, of these inputs, in front of it.
  struct Copy {
    Operation* first;
    YieldOp end;
  };
  Result<Copy> copied(NodeOp, Region&, ValueRange inputs);
  // The same, converted.
  Result<Yields> inlined(NodeOp, Region&, ValueRange inputs);

  func::ReturnOp end_;
  Ports ports_;
  llvm::DenseMap<Operation*, Error> failed_;
  int64_t made_ = 0;  // operations of copies of graphs
};

}  // namespace invar::ir
