// The parts of a module of the torch dialect, and their identifiers in Python.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/dialects/torch/dialect.h"
#include "compiler/emit/torch/python_text.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace invar::compiler {

class ModuleNames {
 public:
  explicit ModuleNames(mlir::ModuleOp module);
  mlir::func::FuncOp main() const { return main_; }
  mlir::func::FuncOp body(mlir::Attribute symbol) const;

  // A new name of a value, like `name`.
  const std::string& add(mlir::Value, std::string_view name);
  void set(mlir::Value v, std::string text) { values_[v.getAsOpaquePointer()] = std::move(text); }
  std::string make(std::string_view name) { return names_.make(name); }
  const std::string& operator[](mlir::Value v) const { return values_.at(v.getAsOpaquePointer()); }

  const std::string& symbol(const std::string& name) const { return symbols_.at(name); }
  std::string expression(const Dim&) const;  // Python
  std::string shape(const Shape&) const;     // a tuple of Python
  std::string type_text(mlir::Type) const;   // "f32[n, 8]", for comments

  // The weights in the order of the program.
  const std::vector<mlir::Operation*>& weights() const { return weights_; }
  std::string weight(mlir::Operation* w) const { return weight_names_.at(weight_name(w)); }
  const std::vector<DimExpr>& computed_dims() const { return computed_; }
  // Symbols that shapes of what control flow takes and gives decide; and those that values decide.
  const std::set<std::string>& of_control_flow() const { return of_flow_; }
  const std::set<std::string>& of_values() const { return of_values_; }

 private:
  void collect(mlir::func::FuncOp);
  void collect(mlir::Type, bool flows);
  static std::string weight_name(mlir::Operation* w) { return mlir::cast<TorchWeightOp>(w).getName().str(); }

  mlir::SymbolTable functions_;
  mlir::func::FuncOp main_;
  python::Names names_;
  std::vector<mlir::Operation*> weights_;
  std::map<std::string, std::string> weight_names_, symbols_;
  std::vector<std::string> symbol_order_;
  std::vector<DimExpr> computed_;
  std::set<std::string> of_flow_, of_values_;
  std::map<const void*, std::string> values_;
};

}  // namespace invar::compiler
