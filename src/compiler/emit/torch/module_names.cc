// The parts of a module of the torch dialect, and their identifiers in Python.
#include "compiler/emit/torch/module_names.h"

#include <algorithm>

#include "compiler/lowering/dynamic_shapes/data_dependent_dims.h"

namespace invar::compiler {
using namespace mlir;

ModuleNames::ModuleNames(ModuleOp module) : functions_(module) {
  for (auto function : module.getOps<func::FuncOp>())
    if (!function->hasAttr(kBody)) main_ = function;
  if (!main_) return;
  collect(main_);
  for (Operation* w : weights_) weight_names_[weight_name(w)] = names_.make(weight_name(w));
  for (const std::string& symbol : symbol_order_) symbols_[symbol] = names_.make(symbol);
  // A symbol of an input is the caller's, whoever else has it.
  for (Type type : main_.getArgumentTypes())
    for (const Dim& dim : shape_of(type))
      if (const std::string* symbol = dim.expr.as_symbol()) of_flow_.erase(*symbol);
  for (const std::string& symbol : of_values_) of_flow_.erase(symbol);
}

func::FuncOp ModuleNames::body(Attribute symbol) const {
  return functions_.lookup<func::FuncOp>(cast<FlatSymbolRefAttr>(symbol).getValue());
}

void ModuleNames::collect(Type type, bool flows) {
  for (const Dim& dim : shape_of(type)) {
    if (dim.constant()) continue;
    dim.expr.all_symbols([&](const std::string& symbol) {
      if (!llvm::is_contained(symbol_order_, symbol)) symbol_order_.push_back(symbol);
      return true;
    });
    const std::string* plain = dim.expr.as_symbol();
    if (!plain && !llvm::is_contained(computed_, dim.expr)) computed_.push_back(dim.expr);
    if (plain && flows) of_flow_.insert(*plain);
  }
}

void ModuleNames::collect(func::FuncOp function) {
  for (Type type : function.getArgumentTypes()) collect(type, function != main_);
  for (Operation& op : function.front()) {
    auto flow = dyn_cast<TorchFlowOp>(op);
    if (flow)
      for (Attribute name : flow.getBodies()) collect(body(name));
    if (auto w = dyn_cast<TorchWeightOp>(op))  // a body and its parent may declare the same
      if (weight_names_.try_emplace(w.getName().str()).second) weights_.push_back(w);
    if (auto size = dyn_cast<TorchSizeOp>(op)) of_values_.insert(size.getName().str());
    for (Type type : op.getResultTypes()) collect(type, bool(flow));
  }
}

const std::string& ModuleNames::add(Value v, std::string_view name) {
  return values_[v.getAsOpaquePointer()] = names_.make(name);
}

std::string ModuleNames::expression(const Dim& dim) const {
  if (dim.constant()) return std::to_string(dim.value);
  return python::expression(dim.expr, [this](const std::string& name) { return symbol(name); });
}

std::string ModuleNames::shape(const Shape& shape) const {
  std::vector<std::string> dims;
  for (const Dim& dim : shape) dims.push_back(expression(dim));
  return python::tuple_of(dims);
}

std::string ModuleNames::type_text(Type type) const {
  std::vector<std::string> dims;
  for (const Dim& dim : shape_of(type)) dims.push_back(expression(dim));
  const auto dtype = dtype_of(cast<RankedTensorType>(type).getElementType());
  return (dtype ? std::string(name_of(*dtype)) : "?") + "[" + python::join(dims) + "]";
}

}  // namespace invar::compiler
