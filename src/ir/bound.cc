#include "ir/bound.h"

#include "ir/rules.h"
#include "ir/sizes.h"

namespace invar::ir {
namespace {
using namespace mlir;

// The same operations of the same operands. False where that takes many steps to see.
bool equal(Value a, Value b, int& steps) {
  if (a == b) return true;
  Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
  if (!x || !y || --steps < 0 || x->getName() != y->getName() || a.getType() != b.getType() ||
      x->getAttrDictionary() != y->getAttrDictionary() || x->getNumOperands() != y->getNumOperands() ||
      x->getNumRegions() || x->hasAttr("state"))
    return false;
  for (auto [p, q] : llvm::zip(x->getOperands(), y->getOperands()))
    if (!equal(p, q, steps)) return false;
  return true;
}

}  // namespace

Bound::Bound(func::FuncOp function) {
  for (Type type : function.getArgumentTypes())
    for (const Extent& e : shape_of(type))
      if (const auto p = e.constant() ? std::nullopt : Polynomial::parse(e.name))
        p->all_names([this](const std::string& name) { return taken_.insert(name), true; });
}

Polynomial Bound::size(OpBuilder& build, Value value, int64_t element, llvm::StringRef wanted_by) {
  for (const Entry& e : entries_)
    if (int steps = 256; e.element == element && equal(e.value, value, steps)) return Polynomial::of(e.name);
  std::string name, made;
  for (char c : wanted_by.lower()) made += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '_';
  int number = 0;
  do name = made + "_" + std::to_string(number++);
  while (!taken_.insert(name).second);
  build.create<ReproBindOp>(value.getLoc(), value, build.getI64IntegerAttr(element),
                            build.getStringAttr(name));
  entries_.push_back({value, element, name});
  return Polynomial::of(name);
}

ReproBindOp binding_of(Block* block, const Polynomial& sizes) {
  ReproBindOp found;
  for (ReproBindOp bind : block->getOps<ReproBindOp>())
    if (!sizes.all_names([&](const std::string& name) { return bind.getName() != llvm::StringRef(name); }))
      found = bind;
  return found;
}

// Of an operand that is a list or a number.
static Result<std::vector<Traced>> traced(const Node& node, unsigned i) {
  const Value v = node.in(i);
  if (auto type = dyn_cast<RankedTensorType>(v.getType()); type && type.getRank() <= 1)
    if (const std::optional<std::vector<Traced>> list = trace_sizes(v)) return *list;
  std::vector<Traced> all;
  INVAR_TRY(const std::vector<int64_t> numbers, node.constants(i));
  for (int64_t n : numbers) all.push_back({n, {}, 0});
  return all;
}

Result<std::vector<Polynomial>> Node::sizes(unsigned i) {
  INVAR_TRY(const std::vector<Traced> list, traced(*this, i));
  std::vector<Polynomial> all;
  for (const Traced& t : list) all.push_back(t.known ? *t.known : bind(t.from, t.element));
  return all;
}

Result<std::vector<std::optional<Polynomial>>> Node::known_sizes(unsigned i) const {
  INVAR_TRY(const std::vector<Traced> list, traced(*this, i));
  std::vector<std::optional<Polynomial>> all;
  for (const Traced& t : list) all.push_back(t.known);
  return all;
}

Polynomial Node::bind(Value v, int64_t element) {
  if (!element_of(v).isSignlessInteger(64)) v = converted(v, build_.getI64Type());
  return ports_.bound.size(build_, v, element, op_.getOpType());
}

// Operands that broadcast if values so decide, over the larger of their dimensions, which kernels check. None: they do not.
Result<SmallVector<Value>> Node::spread_at_run_time(ValueRange operands) {
  Shape common;  // the last dimension first
  bool decided = false;
  for (Value v : operands) {
    Shape shape = shape_of(v.getType());
    std::reverse(shape.begin(), shape.end());
    common.resize(std::max(common.size(), shape.size()), Extent::of(1));
    for (size_t d = 0; d < shape.size(); ++d) {
      if (common[d] == shape[d] || shape[d] == Extent::of(1)) continue;
      const std::optional<Polynomial> a = polynomial_of(common[d]), b = polynomial_of(shape[d]);
      if (!a || !b) return SmallVector<Value>();
      const bool one = common[d] == Extent::of(1);
      if (!one && !binding_of(build_.getBlock(), *a) && !binding_of(build_.getBlock(), *b))
        return SmallVector<Value>();
      const std::optional<Polynomial> larger = one ? b : most(*a, *b);
      if (!larger) return SmallVector<Value>();
      decided |= !one, common[d] = Extent::of(*larger);
    }
  }
  SmallVector<Value> spread;
  if (!decided) return spread;
  for (Value v : operands) {
    Shape shape = shape_of(v.getType());
    for (size_t d = 0; d < shape.size(); ++d)
      if (shape[d] != Extent::of(1)) shape[d] = common[shape.size() - 1 - d];
    if (shape == shape_of(v.getType())) {
      spread.push_back(v);
    } else {
      INVAR_TRY(Value wide, make<ExpandOp>(v, {}, tensor_of(shape, element_of(v))));
      spread.push_back(wide);
    }
  }
  return spread;
}

}  // namespace invar::ir
