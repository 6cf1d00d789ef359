// Symbols for values (value numbering), and NodeView's operands read as dimension expressions.
#include "compiler/lowering/dynamic_shapes/data_dependent_dims.h"

#include "compiler/lowering/dynamic_shapes/shape_value_propagation.h"
#include "compiler/lowering/rule_registry.h"

namespace invar::compiler {
using namespace mlir;

void collect_dim_names(Type type, std::set<std::string>& names) {
  for (const Dim& e : shape_of(type))
    e.expr.all_symbols([&](const std::string& name) { return names.insert(name), true; });
}

DataDependentDims::DataDependentDims(func::FuncOp function) : names_(std::make_shared<Names>()) {
  for (Type type : function.getArgumentTypes()) collect_dim_names(type, names_->input_names);
  names_->all_names = names_->input_names;
}

std::string DataDependentDims::fresh_name(llvm::StringRef like) {
  std::string name, made;
  for (char c : like.lower()) made += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '_';
  int& number = names_->next_suffix[made];
  do name = made + "_" + std::to_string(number++);
  while (!names_->all_names.insert(name).second);
  own_symbols_.insert(name), names_->any = true;
  return name;
}

// Numbers the operands first, with an explicit worklist: a chain of operations can be too long for
// recursion.
int DataDependentDims::value_number(Value value) {
  SmallVector<Value> open = {value};
  while (!open.empty()) {
    const Value v = open.back();
    if (value_numbers_.count(v)) {
      open.pop_back();
      continue;
    }
    Operation* op = v.getDefiningOp();
    const bool plain = op && !op->getNumRegions() && !op->hasAttr("state") && op->getNumResults() == 1;
    const size_t before = open.size();
    if (plain)
      for (Value operand : op->getOperands())
        if (!value_numbers_.count(operand)) open.push_back(operand);
    if (open.size() != before) continue;
    const int next = static_cast<int>(value_numbers_.size());
    if (!plain) {
      value_numbers_[v] = next;
      continue;
    }
    std::vector<const void*> key = {op->getName().getAsOpaquePointer(),
                                    op->getAttrDictionary().getAsOpaquePointer(),
                                    v.getType().getAsOpaquePointer()};
    std::vector<int> operands;
    for (Value operand : op->getOperands()) operands.push_back(value_numbers_.lookup(operand));
    value_numbers_[v] = expressions_.try_emplace({std::move(key), std::move(operands)}, next).first->second;
  }
  return value_numbers_.lookup(value);
}

DimExpr DataDependentDims::symbol_for(OpBuilder& build, Value value, int64_t element, llvm::StringRef user) {
  const auto [known, is_new] = elements_.try_emplace({value_number(value), element});
  if (!is_new) return DimExpr::symbol(known->second);
  const std::string name = fresh_name(user);
  build.create<ReproBindOp>(value.getLoc(), value, build.getI64IntegerAttr(element),
                            build.getStringAttr(name));
  known->second = name;
  record(name, value);
  return DimExpr::symbol(name);
}

bool DataDependentDims::contains(const DimExpr& sizes) const {
  return names_->any &&
         !sizes.all_symbols([this](const std::string& name) { return names_->input_names.contains(name); });
}

Value DataDependentDims::value_of(llvm::StringRef symbols) const {
  SmallVector<llvm::StringRef> names;
  symbols.split(names, ' ');
  for (const auto& [name, value] : symbols_)
    if (llvm::is_contained(names, name)) return value;
  return {};
}

ReproBindOp binding_of(Block* block, const std::string& name) {
  std::set<std::string> input_names;
  for (Type type : block->getArgumentTypes()) collect_dim_names(type, input_names);
  if (input_names.contains(name)) return {};
  for (ReproBindOp bind : block->getOps<ReproBindOp>())
    if (bind.getName() == llvm::StringRef(name)) return bind;
  return {};
}

bool may_be_data_dependent(Block* block, const DimExpr& sizes) {
  Operation* function = block ? block->getParentOp() : nullptr;
  if (function && function->hasAttr(kBody)) return !sizes.constant();
  std::set<std::string> input_names;
  if (block)
    for (Type type : block->getArgumentTypes()) collect_dim_names(type, input_names);
  return !sizes.all_symbols([&](const std::string& name) { return input_names.contains(name); });
}

bool NodeView::is_data_dependent(const Dim& e) const {
  const std::optional<DimExpr> p = dim_expr_of(e);
  return p && state_.dims.contains(*p);
}

// The elements of an operand of rank 0 or 1.
static Result<std::vector<TracedElement>> trace_operand(const NodeView& node, unsigned i) {
  const Value v = node.in(i);
  if (auto type = dyn_cast<RankedTensorType>(v.getType()); type && type.getRank() <= 1)
    if (const std::optional<std::vector<TracedElement>> list = trace_elements(v)) return *list;
  std::vector<TracedElement> all;
  INVAR_TRY(const std::vector<int64_t> next_suffix, node.constant_ints(i));
  for (int64_t n : next_suffix) all.push_back({n, {}, 0});
  return all;
}

Result<std::vector<DimExpr>> NodeView::dim_exprs(unsigned i) {
  INVAR_TRY(const std::vector<TracedElement> list, trace_operand(*this, i));
  std::vector<DimExpr> all;
  for (const TracedElement& t : list) all.push_back(t.known ? *t.known : bind_dim(t.from, t.element));
  return all;
}

Result<std::vector<std::optional<DimExpr>>> NodeView::known_dim_exprs(unsigned i) const {
  INVAR_TRY(const std::vector<TracedElement> list, trace_operand(*this, i));
  std::vector<std::optional<DimExpr>> all;
  for (const TracedElement& t : list) all.push_back(t.known);
  return all;
}

DimExpr NodeView::bind_dim(Value v, int64_t element) {
  if (const auto type = cast<RankedTensorType>(v.getType()); type.getRank() > 1)
    v = fold_result(make_op(build_, op_.getLoc(), ReshapeOp::getOperationName(), v, {},
                            RankedTensorType::get(type.getNumElements(), type.getElementType())));
  if (!element_of(v).isSignlessInteger(64)) v = cast_element(v, build_.getI64Type());
  return state_.dims.symbol_for(build_, v, element, op_.getOpType());
}

}  // namespace invar::compiler
