// NodeExpansion: what a rule sees that replaces an ONNX node by other ONNX nodes, which are lowered
// in its place. For operators that ONNX or their domain defines as a composition.
#pragma once

#include "base/status.h"
#include "compiler/lowering/node_view.h"

namespace invar::compiler {
class NodeExpansion {
 public:
  NodeExpansion(NodeOp op, NodeView& view) : op_(op), view_(view), build_(op) {}

  // As NodeView::expect(), of types that may be unknown.
  Status expect(unsigned least, unsigned most, llvm::ArrayRef<llvm::StringRef> attributes,
                unsigned results = 1) {
    return view_.expect(least, most, attributes, results);
  }

  size_t operands() const { return op_.getInputs().size(); }
  bool has(unsigned i) const;
  Value in(unsigned i) const { return op_.getInputs()[i]; }
  // The operand, or an absent one.
  Value in_or_absent(unsigned i);
  // The rank of a value whose type is known.
  static std::optional<int64_t> rank_of(Value);
  Attribute attribute(llvm::StringRef name) const { return op_.getParams().get(name); }
  int64_t int_attr(llvm::StringRef name, int64_t fallback) const;
  float float_attr(llvm::StringRef name, float fallback) const;
  // Those of the node, without some.
  SmallVector<NamedAttribute> attributes(std::initializer_list<llvm::StringRef> without = {}) const;
  NamedAttribute attr(llvm::StringRef name, int64_t v) {
    return build_.getNamedAttr(name, build_.getI64IntegerAttr(v));
  }
  NamedAttribute attr(llvm::StringRef name, llvm::ArrayRef<int64_t> v) {
    return build_.getNamedAttr(name, build_.getDenseI64ArrayAttr(v));
  }
  Value constant(float);
  Value constant(llvm::ArrayRef<int64_t> list);

  // Results of a node of the standard domain, by the text of an opset.
  SmallVector<Value> nodes(llvm::StringRef op_type, int64_t opset, ValueRange in,
                           llvm::ArrayRef<NamedAttribute> attrs, unsigned results);
  Value node(llvm::StringRef op_type, int64_t opset, ValueRange in,
             llvm::ArrayRef<NamedAttribute> attrs = {}) {
    return nodes(op_type, opset, in, attrs, 1)[0];
  }

 private:
  mutable NodeOp op_;  // MLIR handles are never const
  NodeView& view_;
  OpBuilder build_;
};

// Returns what replaces the results of the node.
using Expansion = Result<SmallVector<Value>> (*)(NodeExpansion&);

}  // namespace invar::compiler
