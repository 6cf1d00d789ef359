#include "compiler/lowering/dynamic_shapes/data_dependent_dims.h"

#include "compiler/lowering/rule_registry.h"
#include "compiler/lowering/dynamic_shapes/shape_value_propagation.h"

namespace invar::compiler {
using namespace mlir;

void add_names(Type type, std::set<std::string>& names) {
  for (const Extent& e : shape_of(type))
    if (const auto p = e.constant() ? std::nullopt : Polynomial::parse(e.name))
      p->all_names([&](const std::string& name) { return names.insert(name), true; });
}

Bound::Bound(func::FuncOp function) : names_(std::make_shared<Names>()) {
  for (Type type : function.getArgumentTypes()) add_names(type, names_->given);
  names_->taken = names_->given;
}

std::string Bound::fresh(llvm::StringRef like) {
  std::string name, made;
  for (char c : like.lower()) made += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '_';
  int& number = names_->numbers[made];
  do name = made + "_" + std::to_string(number++);
  while (!names_->taken.insert(name).second);
  own_.insert(name), names_->any = true;
  return name;
}

// Operands first, as far as they have no numbers yet: chains can be longer than a stack.
int Bound::number_of(Value value) {
  SmallVector<Value> open = {value};
  while (!open.empty()) {
    const Value v = open.back();
    if (values_.count(v)) {
      open.pop_back();
      continue;
    }
    Operation* op = v.getDefiningOp();
    const bool plain = op && !op->getNumRegions() && !op->hasAttr("state") && op->getNumResults() == 1;
    const size_t before = open.size();
    if (plain)
      for (Value operand : op->getOperands())
        if (!values_.count(operand)) open.push_back(operand);
    if (open.size() != before) continue;
    const int next = static_cast<int>(values_.size());
    if (!plain) {
      values_[v] = next;
      continue;
    }
    std::vector<const void*> key = {op->getName().getAsOpaquePointer(),
                                    op->getAttrDictionary().getAsOpaquePointer(),
                                    v.getType().getAsOpaquePointer()};
    std::vector<int> operands;
    for (Value operand : op->getOperands()) operands.push_back(values_.lookup(operand));
    values_[v] = computations_.try_emplace({std::move(key), std::move(operands)}, next).first->second;
  }
  return values_.lookup(value);
}

Polynomial Bound::size(OpBuilder& build, Value value, int64_t element, llvm::StringRef wanted_by) {
  const auto [known, is_new] = elements_.try_emplace({number_of(value), element});
  if (!is_new) return Polynomial::of(known->second);
  const std::string name = fresh(wanted_by);
  build.create<ReproBindOp>(value.getLoc(), value, build.getI64IntegerAttr(element),
                            build.getStringAttr(name));
  known->second = name;
  shaped(name, value);
  return Polynomial::of(name);
}

bool Bound::has(const Polynomial& sizes) const {
  return names_->any &&
         !sizes.all_names([this](const std::string& name) { return names_->given.contains(name); });
}

Value Bound::named_in(llvm::StringRef text) const {
  for (const auto& [name, value] : bound_)
    if (text.contains(name)) return value;
  return {};
}

ReproBindOp binding_of(Block* block, const std::string& name) {
  std::set<std::string> given;
  for (Type type : block->getArgumentTypes()) add_names(type, given);
  if (given.contains(name)) return {};
  for (ReproBindOp bind : block->getOps<ReproBindOp>())
    if (bind.getName() == llvm::StringRef(name)) return bind;
  return {};
}

bool may_be_bound(Block* block, const Polynomial& sizes) {
  Operation* function = block ? block->getParentOp() : nullptr;
  if (function && function->hasAttr(kBody)) return !sizes.constant();
  std::set<std::string> given;
  if (block)
    for (Type type : block->getArgumentTypes()) add_names(type, given);
  return !sizes.all_names([&](const std::string& name) { return given.contains(name); });
}

bool Node::is_bound(const Extent& e) const {
  const std::optional<Polynomial> p = polynomial_of(e);
  return p && ports_.bound.has(*p);
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
  if (const auto type = cast<RankedTensorType>(v.getType()); type.getRank() > 1)
    v = settled(make_op(build_, op_.getLoc(), ReshapeOp::getOperationName(), v, {},
                        RankedTensorType::get(type.getNumElements(), type.getElementType())));
  if (!element_of(v).isSignlessInteger(64)) v = converted(v, build_.getI64Type());
  return ports_.bound.size(build_, v, element, op_.getOpType());
}

}  // namespace invar::compiler
