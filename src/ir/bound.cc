#include "ir/bound.h"

#include "ir/shape.h"

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

}  // namespace invar::ir
