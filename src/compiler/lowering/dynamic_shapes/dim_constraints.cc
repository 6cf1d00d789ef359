// Names of dimensions that must be something (spec/onnx.md onnx.25).
#include <algorithm>

#include "compiler/lowering/lower_onnx.h"

namespace invar::compiler {
namespace {

void replace(Polynomial& in, const std::string& name, const Polynomial& by) {
  in = in.with([&](auto& n) { return n == name ? std::optional(by) : std::nullopt; }).value_or(in);
}

}  // namespace

Type replaced(Type type, Replacing by) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor) return type;
  Shape shape = shape_of(type);
  for (Extent& e : shape)
    if (const std::optional<Polynomial> p = e.constant() ? std::nullopt : polynomial_of(e))
      if (const std::optional<Polynomial> size = by(*p)) e = Extent::of(*size);
  return tensor_of(shape, tensor.getElementType());
}

void replace(ReproSizesOp sizes, Replacing by) {
  std::vector<std::string> texts;
  for (Attribute text : sizes.getSizes()) {
    texts.push_back(cast<StringAttr>(text).str());
    if (const std::optional<Polynomial> p = Polynomial::parse(texts.back()))
      if (const std::optional<Polynomial> size = by(*p)) texts.back() = size->text();
  }
  const SmallVector<llvm::StringRef> refs(texts.begin(), texts.end());
  sizes.setSizesAttr(Builder(sizes.getContext()).getStrArrayAttr(refs));
}

bool learn(Settled& known, const std::string& name, Polynomial size) {
  // What others were found to be stands instead of them: none leads back to itself.
  for (const auto& [settled, by] : known) replace(size, settled, by);
  const bool another = size.all_names([&](const std::string& n) { return n != name && !known.contains(n); });
  if (known.contains(name) || !another || size.constant().value_or(0) < 0) return false;
  for (auto& [settled, by] : known) replace(by, name, size);
  return known.emplace(name, std::move(size)).second;
}

std::optional<Polynomial> Settling::of(const Polynomial& p) const {
  return p.with([&](const std::string& name) {
    const auto at = by_.find(name);
    return at == by_.end() ? std::nullopt : std::optional(at->second);
  });
}

Type Settling::of(Type type) {
  if (by_.empty()) return type;
  Type& made = known_[type];
  return made ? made : made = replaced(type, [&](const Polynomial& p) { return of(p); });
}

void Settling::operator()(ReproSizesOp sizes) {
  replace(sizes, [&](const Polynomial& p) { return of(p); });
}

std::vector<std::string> Conversion::names_of(func::FuncOp function) {
  std::vector<std::string> names;
  for (Type input : function.getArgumentTypes())
    if (isa<RankedTensorType>(input))
      for (const Extent& e : shape_of(input))
        if (polynomial_of(e) == Polynomial::of(e.name)) names.push_back(e.name);
  return names;
}

// What was converted so far has the new types, too, so that further refusals are of other names. The attempt has failed all the same: a
// program is what is made of a graph whose names are settled from the first node on.
bool Conversion::settle(Error& error) {
  const auto forced = std::exchange(ports_.forced, {});
  if (!settled_ || shared_->tries) return ports_.forced = forced, false;
  const auto place = [&](const std::string& n) { return std::find(names_.begin(), names_.end(), n); };
  Settled more = *settled_;
  for (const auto& [what, text] : forced) {
    std::string name = what;
    std::optional<Polynomial> size = Polynomial::parse(text);
    // Of two names the first stays.
    if (size == Polynomial::of(text) && place(text) > place(name))
      size = Polynomial::of(std::exchange(name, text));
    const auto given = [&](const std::string& n) { return place(n) != names_.end(); };
    if (size && given(name) && size->all_names(given)) learn(more, name, *size);
  }
  if (more.size() == settled_->size()) return false;
  Settling settling(more);
  Block& block = *end_->getBlock();
  for (BlockArgument argument : block.getArguments())
    for (const Extent& e : isa<RankedTensorType>(argument.getType()) ? shape_of(argument.getType()) : Shape())
      if (const std::optional<Polynomial> p = polynomial_of(e)) {
        const std::optional<Polynomial> size = settling.of(*p);
        if (size && size->constant().value_or(0) >= 0) continue;
        error.message += "; where they are, an input's dimension " + text_of(e) + " is none";
        return false;
      }
  *settled_ = more;
  for (BlockArgument argument : block.getArguments()) settling(argument);
  for (Operation& op : block) {
    for (OpResult result : op.getResults()) settling(result);
    if (auto sizes = dyn_cast<ReproSizesOp>(op)) settling(sizes);
  }
  return true;
}

}  // namespace invar::compiler
