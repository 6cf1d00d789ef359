// Dimension constraints (onnx.25): a refusal may name the value that a symbol must have; lowering
// then continues with it.
#include <algorithm>

#include "compiler/lowering/lower_onnx.h"

namespace invar::compiler {
namespace {

void substitute(DimExpr& in, const std::string& name, const DimExpr& by) {
  in = in.substitute([&](auto& n) { return n == name ? std::optional(by) : std::nullopt; }).value_or(in);
}

}  // namespace

Type substitute_dims(Type type, DimReplacement by) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor) return type;
  Shape shape = shape_of(type);
  for (Dim& e : shape)
    if (const std::optional<DimExpr> p = e.constant() ? std::nullopt : dim_expr_of(e))
      if (const std::optional<DimExpr> size = by(*p)) e = Dim::of(*size);
  return tensor_of(shape, tensor.getElementType());
}

void substitute_dims(ReproSizesOp sizes, DimReplacement by) {
  DimList dims = sizes.getSizes().getDims();
  for (std::optional<DimExpr>& dim : dims)
    if (const std::optional<DimExpr> size = by(*dim)) dim = size;
  sizes.setSizesAttr(DimsAttr::get(sizes.getContext(), dims));
}

bool learn_constraint(DimConstraints& known, const std::string& name, DimExpr size) {
  // Known constraints are substituted, so that no chain of them leads back to its begin.
  for (const auto& [known_name, by] : known) substitute(size, known_name, by);
  const bool another =
      size.all_symbols([&](const std::string& n) { return n != name && !known.contains(n); });
  if (known.contains(name) || !another || size.constant().value_or(0) < 0) return false;
  for (auto& [known_name, by] : known) substitute(by, name, size);
  return known.emplace(name, std::move(size)).second;
}

std::optional<DimExpr> DimSubstitution::of(const DimExpr& p) const {
  return p.substitute([&](const std::string& name) {
    const auto at = by_.find(name);
    return at == by_.end() ? std::nullopt : std::optional(at->second);
  });
}

Type DimSubstitution::of(Type type) {
  if (by_.empty()) return type;
  Type& made = known_[type];
  return made ? made : made = substitute_dims(type, [&](const DimExpr& p) { return of(p); });
}

void DimSubstitution::operator()(ReproSizesOp sizes) {
  substitute_dims(sizes, [&](const DimExpr& p) { return of(p); });
}

std::vector<std::string> Conversion::input_dim_names(func::FuncOp function) {
  std::vector<std::string> names;
  for (Type input : function.getArgumentTypes())
    if (isa<RankedTensorType>(input))
      for (const Dim& e : shape_of(input))
        if (const std::string* symbol = e.expr.as_symbol()) names.push_back(*symbol);
  return names;
}

// The operations converted so far get the new types, so that later refusals ask for other
// constraints. This attempt fails all the same: the compiler imports the graph again with the
// constraints in place from the first node on.
bool Conversion::learn_constraints(Error& error) {
  const auto found = std::exchange(state_.constraints, {});
  if (!constraints_ || shared_->unroll_attempts) return state_.constraints = found, false;
  const auto position = [&](const std::string& n) { return std::find(names_.begin(), names_.end(), n); };
  DimConstraints extended = *constraints_;
  for (const auto& [symbol, expr] : found) {
    std::string name = symbol;
    DimExpr size = expr;
    // The symbol that occurs first in the inputs replaces the other one.
    if (const std::string* other = size.as_symbol(); other && position(*other) > position(name))
      size = DimExpr::symbol(std::exchange(name, std::string(*other)));
    const auto is_input = [&](const std::string& n) { return position(n) != names_.end(); };
    if (is_input(name) && size.all_symbols(is_input)) learn_constraint(extended, name, size);
  }
  if (extended.size() == constraints_->size()) return false;
  DimSubstitution substitution(extended);
  Block& block = *end_->getBlock();
  for (BlockArgument argument : block.getArguments())
    for (const Dim& e : isa<RankedTensorType>(argument.getType()) ? shape_of(argument.getType()) : Shape())
      if (const std::optional<DimExpr> p = dim_expr_of(e)) {
        const std::optional<DimExpr> size = substitution.of(*p);
        if (size && size->constant().value_or(0) >= 0) continue;
        error.message += "; where they are, an input's dimension " + text_of(e).text + " is none";
        return false;
      }
  *constraints_ = extended;
  for (BlockArgument argument : block.getArguments()) substitution(argument);
  for (Operation& op : block) {
    for (OpResult result : op.getResults()) substitution(result);
    if (auto sizes = dyn_cast<ReproSizesOp>(op)) substitution(sizes);
  }
  return true;
}

}  // namespace invar::compiler
