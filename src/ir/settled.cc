// Names of dimensions that must be something (spec/onnx.md onnx.25).
#include <algorithm>

#include "ir/passes.h"
#include "ir/rules.h"

namespace invar::ir {
namespace {

// In the order in which inputs have them.
std::vector<std::string> names_of(func::FuncOp function) {
  std::vector<std::string> names;
  for (Type input : function.getArgumentTypes())
    if (isa<RankedTensorType>(input))
      for (const Extent& e : shape_of(input))
        if (polynomial_of(e) == Polynomial::of(e.name)) names.push_back(e.name);
  return names;
}

void replace(Polynomial& in, const std::string& name, const Polynomial& by) {
  in = in.with([&](auto& n) { return n == name ? std::optional(by) : std::nullopt; }).value_or(in);
}

}  // namespace

bool learn(ModuleOp module, Settled& known) {
  bool found = false;
  for (auto function : module.getOps<func::FuncOp>()) {
    const std::vector<std::string> names = names_of(function);
    auto place = [&](const std::string& name) { return std::find(names.begin(), names.end(), name); };
    auto all = function->getAttrOfType<DictionaryAttr>(kForced);
    for (NamedAttribute forced : all ? all : DictionaryAttr::get(module.getContext())) {
      std::string name = forced.getName().str();
      std::optional<Polynomial> size = Polynomial::parse(cast<StringAttr>(forced.getValue()).str());
      if (!size || known.contains(name)) continue;
      // What others were found to be in this attempt stands instead of them: none leads back to itself.
      for (const auto& [settled, by] : known) replace(*size, settled, by);
      // Of two names the first stays.
      if (const std::string other = size->text();
          *size == Polynomial::of(other) && place(other) > place(name))
        size = Polynomial::of(std::exchange(name, other));
      auto another = [&](const std::string& n) { return n != name && place(n) != names.end(); };
      if (place(name) == names.end() || !size->all_names(another)) continue;
      for (auto& [settled, by] : known) replace(by, name, *size);
      known[name] = *size, found = true;
    }
  }
  return found;
}

}  // namespace invar::ir
