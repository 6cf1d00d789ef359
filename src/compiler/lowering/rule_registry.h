// How a room (src/ops/NAME/import.cc) or a composition (compositions/NAME.cc) says which ONNX nodes it covers and what they become.
#pragma once

#include <initializer_list>
#include <map>
#include <set>
#include <vector>

#include "shape/dim_expr.h"
#include "base/status.h"
#include "compiler/lowering/dynamic_shapes/data_dependent_dims.h"
#include "compiler/dialects/dialects.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"

namespace invar::compiler {
using namespace mlir;

inline Type element_of(Value v) {
  return getElementTypeOrSelf(v.getType());
}

// The length of a slice of which nothing is clamped. It is so where `lower` is no more than `upper`.
struct Unclamped {
  Polynomial length, lower, upper;
};

// What the conversion of a function keeps.
struct Ports {
  llvm::BitVector arguments, results;  // became memory and are taken away when it is done
  bool stateless = false;              // none does
  Bound bound;
  int64_t evaluated = 0;                                       // bytes of constants computed so far
  std::map<std::string, std::vector<Unclamped>> clamped = {};  // by the text of the length that ONNX means
  std::map<std::string, std::set<std::string>> spread = {};    // by a size, those that broadcast to it
  // What names of dimensions must be as refusals say, where a node is refused (spec/onnx.md onnx.25).
  std::map<std::string, std::string> forced{};
};

// Which operands a node's rule may get wider where it does not take them as they are (spec/onnx.md onnx.10, onnx.14): what a
// kernel of the wider type computes has the low bits that are wanted.
enum class Widens : uint8_t {
  floats,    // f16, bf16 -> f32
  integers,  // and integers of 8 and 16 bits -> i32, u32 -> i64
  wrapping,  // and u64 -> i64: neither order nor quotients matter
  ordered,   // and u64 -> i64 with the top bit flipped: only order matters
  exact,     // floats, and integers of 8 and 16 bits -> f32
};

// One ONNX node under conversion. Its operands are already operations of the reproducible dialect. Everything a rule
// does not look at explicitly is refused: unknown attributes by expect(), unknown operands by its bounds.
class Node {
 public:
  // typeless: of operands neither types nor values are known. The rule runs for what it refuses before it looks at one.
  Node(NodeOp op, func::ReturnOp end, Ports& ports, bool typeless = false)
      : op_(op),
        end_(end),
        ports_(ports),
        build_(op),
        results_(op.getOutputs().size()),
        typeless_(typeless) {}
  // The rule looked at an operand that is not known: what it says follows from what was there instead.
  bool looked() const { return looked_; }

  int64_t version() const { return op_.getVersion(); }
  // At least `least` operands and none beyond `most`, results only up to `results`, attributes only these. An operand
  // below `least` must be there.
  Status expect(unsigned least, unsigned most, std::initializer_list<llvm::StringRef> attributes,
                unsigned results = 1);
  bool has(unsigned i) const;
  Value in(unsigned i) const;  // one that the node does not have is absent, as one without a name is
  Shape shape(unsigned i) const { return shape_of(in(i).getType()); }
  Value out(unsigned i) const { return op_.getOutputs()[i]; }
  unsigned results() const { return op_.getOutputs().size(); }

  Attribute attribute(llvm::StringRef name) const { return op_.getParams().get(name); }
  Result<int64_t> i(llvm::StringRef name, int64_t fallback) const;
  Result<float> f(llvm::StringRef name, float fallback) const;
  Result<std::vector<int64_t>> ints(llvm::StringRef name) const;  // absent: empty
  // The attribute must be absent or have this value.
  Status only(llvm::StringRef name, int64_t value) const;
  Status only(llvm::StringRef name, float value) const;
  // The content of an integer constant operand of rank 0 or 1 that lies in the model file.
  Result<std::vector<int64_t>> constants(unsigned i) const;
  // The elements of an integer operand of rank 0 or 1. What depends on more than constants and dimensions of the inputs is bound to
  // symbols when the program runs, where it must be at least 0.
  Result<std::vector<Polynomial>> sizes(unsigned i);
  // The same, nothing for elements that would be bound.
  Result<std::vector<std::optional<Polynomial>>> known_sizes(unsigned i) const;
  // An element of an i64 value as a symbol.
  Polynomial bind(Value v, int64_t element);
  // Whether two dimensions that must be equal are.
  Status equal(const Extent& a, const Extent& b, llvm::StringRef what);
  // What two dimensions broadcast to, if they do: in other calls, one of them does not broadcast to that.
  std::optional<Extent> common(const Extent& a, const Extent& b);
  // The same of a dimension and the one it is to have, which no operand has: in other calls the first does not broadcast to that.
  std::optional<Extent> widened(const Extent& from, const Extent& to);
  // A slice has a length that is another where nothing is clamped.
  void is_clamped(const Polynomial& length, const Unclamped& otherwise) {
    const std::optional<Polynomial> room = difference(1, length);
    const bool repeats = room && room->never_negative() && otherwise.length != 1;  // whatever it meets
    if (length != otherwise.length && !repeats) ports_.clamped[length.text()].push_back(otherwise);
  }
  // Whether values decide a dimension when the program runs.
  bool is_bound(const Extent&) const;
  // The bytes of operand i where it is a constant that lies in the model file.
  std::optional<std::string> bytes(unsigned i) const;
  // Operand i must be known and is not: why, and which inputs of the graph it comes from.
  Error unknown(unsigned i, llvm::StringRef what = "a constant") const;
  // The same of another value, with the reason in words.
  Error unknown(Value, std::string message) const;
  // A constant; of rank 0 where no shape is given.
  Value constant(llvm::StringRef bytes, DType, llvm::ArrayRef<int64_t> shape = {});
  Value constant(float);
  Value constant(llvm::ArrayRef<int64_t> list);
  // Integers of that shape; a constant where all are.
  Value sizes(llvm::ArrayRef<Polynomial>, llvm::ArrayRef<int64_t> shape);
  // An axis in [-rank, rank) -> [0, rank).
  static Result<int64_t> axis(int64_t axis, size_t rank);

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
  // Adds an operation with its numerics and version. Without a type, the operation infers it. Of small constants, the result
  // is a constant, too.
  template <class Op>
  Result<Value> make(ValueRange operands, llvm::ArrayRef<NamedAttribute> attrs = {}, Type type = {}) {
    return make(Op::getOperationName(), operands, attrs, type);
  }
  // As many steps as `count` says when the program runs, none below 1 (spec/plan.md plan.16). `body` makes one of them by the node it is
  // given, in a function of its own: from the number of the step, i64 [], and what is carried and fixed there, to what is carried next, of
  // the same types, and one element for each further result. Returns what is carried at last, and those along a new leading axis.
  using StepRule = llvm::function_ref<Result<SmallVector<Value>>(Node& step, Value number, ValueRange carried,
                                                                 ValueRange fixed)>;
  Result<SmallVector<Value>> steps(const Polynomial& count, ValueRange carried, ValueRange fixed,
                                   StepRule body);
  // Lets `value` take the place of result 0 when the rule is done.
  Status replace(Value value);
  // The same for another result, where the node has it. stays_wide: its type does not follow that of the operands.
  void replace(unsigned result, Value value, bool stays_wide = false) {
    if (result < results_.size()) results_[result] = {value, stays_wide};
  }
  // Checks that operands of one type variable have one element type, and notes the types of results (Rooms::on).
  Status typed(llvm::StringRef variables);
  // A node whose rule does not take its operands as they are: they are widened, which is exact, and its results converted
  // once. False: it has no such operands.
  bool widen(Widens);
  // The rule is done: its values take the places of the results.
  void commit();
  OpBuilder& build() { return build_; }
  MLIRContext* context() const { return op_.getContext(); }

  // Whether past operand `in` and present result `out` may become memory: nothing else reads either, `in` is an input of the
  // graph and `out` one of its outputs, and the program may have a memory.
  bool remembers(unsigned in, unsigned out) const;
  // They become it. Returns the name of the input.
  std::string memory(unsigned in, unsigned out);

 private:
  Result<Value> make(llvm::StringRef op, ValueRange operands, llvm::ArrayRef<NamedAttribute>, Type);
  Error refused(const Error&, const std::optional<Forced>&);
  Status expect_parts(unsigned least, unsigned most, std::initializer_list<llvm::StringRef> attributes,
                      unsigned results) const;
  Result<SmallVector<Value>> spread_at_run_time(ValueRange operands);
  Value settled(Operation* made);
  Value converted(Value, Type element);
  Value flipped(Value);  // u64: the top bit

  mutable NodeOp op_;  // MLIR handles are never const
  func::ReturnOp end_;
  Ports& ports_;
  OpBuilder build_;
  struct Replacement {
    Value value;
    bool stays_wide = false;
  };
  std::vector<Replacement> results_;
  // Of the results, where type variables say so: rules may give f32 for f16 and bf16.
  SmallVector<Type> types_;
  Type narrow_, wide_;  // where integers were widened: results of wide_ become narrow_
  bool flips_ = false;
  bool typeless_ = false;
  mutable bool looked_ = false;
};

using Rule = Status (*)(Node&);
// One element of a result from the elements of the operands, dimensions or constants.
using SizeRule = std::optional<Polynomial> (*)(llvm::ArrayRef<Polynomial>);

// The rules and folds of all rooms.
class Rooms {
 public:
  struct Entry {
    int64_t since;
    Rule rule;
    Widens widens;
    llvm::StringRef types;
  };
  // Nodes `op_type` (of another domain: DOMAIN.TYPE) from opset `since` on. types: ONNX's type variables, one letter for each operand
  // and, behind ">", for each result; those of "*" are the rule's own. Without it, and before an opset that stands behind "@", all that
  // are floats have one type.
  void on(llvm::StringRef op_type, int64_t since, Rule rule, Widens widens = Widens::floats,
          llvm::StringLiteral types = "") {
    rules_[op_type.str()] = {since, rule, widens, types};
  }
  void on(llvm::StringRef op_type, int64_t since, Rule rule, llvm::StringLiteral types) {
    on(op_type, since, rule, Widens::floats, types);
  }
  const Entry* find(llvm::StringRef domain, llvm::StringRef op_type) const;
  // Rewrites within the reproducible dialect; each keeps the bits.
  template <class Pattern>
  void fold() {
    folds_.push_back([](RewritePatternSet& set) { set.add<Pattern>(set.getContext()); });
  }
  // What becomes of a weight that stays transposed, because not all that reads it can read it so.
  void turn(void (*rule)(ReproWeightOp)) { turn_ = rule; }
  void turn(ReproWeightOp weight) const { turn_(weight); }
  // A value that is computed, where `value` is an input or a weight: the program returns only such.
  void copy(Value (*rule)(OpBuilder&, Value)) { copy_ = rule; }
  Value copy(OpBuilder& build, Value value) const { return copy_(build, value); }
  // How an operation computes dimensions: by a rule, or (null) it carries elements to other places.
  struct Sizing {
    SizeRule rule;
  };
  template <class... Op>
  void carries() {
    (sizings_.insert({Op::getOperationName(), {nullptr}}), ...);
  }
  template <class Op>
  void sizes(SizeRule rule) {
    sizings_.insert({Op::getOperationName(), {rule}});
  }
  const Sizing* sizing(llvm::StringRef op) const {
    auto it = sizings_.find(op);
    return it == sizings_.end() ? nullptr : &it->second;
  }
  // Operations that compute what `sizes` stands for.
  void measure(Value (*rule)(OpBuilder&, ReproSizesOp)) { measure_ = rule; }
  Value measure(OpBuilder& build, ReproSizesOp sizes) const { return measure_(build, sizes); }
  void populate(RewritePatternSet& set) const {
    for (auto add : folds_) add(set);
  }
  static const Rooms& all();

 private:
  std::map<std::string, Entry> rules_;
  std::vector<void (*)(RewritePatternSet&)> folds_;
  void (*turn_)(ReproWeightOp) = nullptr;
  Value (*copy_)(OpBuilder&, Value) = nullptr;
  llvm::StringMap<Sizing> sizings_;
  Value (*measure_)(OpBuilder&, ReproSizesOp) = nullptr;
};

// The rule of an operation that takes the node's operands as they are.
template <class Op>
Status direct(Node& node, unsigned operands) {
  INVAR_CHECK_OK(node.expect(operands, operands, {}));
  SmallVector<Value> in;
  for (unsigned i = 0; i < operands; ++i) in.push_back(node.in(i));
  INVAR_TRY(Value out, node.make<Op>(in));
  return node.replace(out);
}

// A constant that lies in the model file.
Value make_constant(OpBuilder&, Location, llvm::StringRef bytes, DType, llvm::ArrayRef<int64_t> shape);
// Adds an operation of the reproducible dialect with the numerics and version of spec/opset.toml.
Operation* make_op(OpBuilder&, Location, llvm::StringRef op, ValueRange operands,
                   llvm::ArrayRef<NamedAttribute>, Type result);
// The same, verified; without a type, the operation infers it.
Result<Operation*> make_checked(OpBuilder&, Location, llvm::StringRef op, ValueRange operands,
                                llvm::ArrayRef<NamedAttribute>, Type, std::optional<Forced>* = nullptr);

}  // namespace invar::compiler
