// Data-dependent dimensions (onnx.22; PyTorch: unbacked symbols): a symbol stands for an element of
// an integer value that is known at run time only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/dialects/dialects.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "shape/dim_expr.h"

namespace invar::compiler {

class DataDependentDims {
 public:
  explicit DataDependentDims(mlir::func::FuncOp);
  // The dims of a control-flow body within the function of `outer`.
  explicit DataDependentDims(const DataDependentDims& outer, std::nullptr_t) : names_(outer.names_) {}

  // The symbol of an element of an i64 value; equal values (by value numbering) share it. `user`
  // names it: "slice_2".
  DimExpr symbol_for(mlir::OpBuilder&, mlir::Value, int64_t element, llvm::StringRef user);
  // A new symbol, for a dimension that a control-flow result has at run time.
  std::string fresh_name(llvm::StringRef like);
  // A function name for a control-flow body.
  std::string fresh_body_name() { return "body_" + std::to_string(names_->num_bodies++); }
  // Records the value that decides a symbol.
  void record(const std::string& name, mlir::Value value) {
    symbols_.emplace(name, value), names_->any = true;
  }
  // Whether the expression has a data-dependent symbol, of this function or of one around it.
  bool contains(const DimExpr& sizes) const;
  // Whether it has one of this function.
  bool defines(const DimExpr& sizes) const {
    return !sizes.all_symbols([this](const std::string& name) { return !own_symbols_.contains(name); });
  }
  // Drops what is known of erased values.
  void forget(llvm::function_ref<bool(mlir::Value)> gone) {
    value_numbers_.clear(), expressions_.clear(), elements_.clear();
    std::erase_if(symbols_, [&](const auto& bound) { return gone(bound.second); });
  }
  // The value that decides one of these symbols, "a b"; null if none does.
  mlir::Value value_of(llvm::StringRef symbols) const;

 private:
  // Value numbering: the same operation on the same operands has the same number.
  int value_number(mlir::Value);

  llvm::DenseMap<mlir::Value, int> value_numbers_;
  std::map<std::pair<std::vector<const void*>, std::vector<int>>, int> expressions_;
  std::map<std::pair<int, int64_t>, std::string> elements_;  // symbol by value number and element
  std::map<std::string, mlir::Value> symbols_;               // the deciding value by symbol
  std::set<std::string> own_symbols_;                        // created in this function
  // Shared by the program's function and all bodies.
  struct Names {
    std::set<std::string> input_names, all_names;  // symbols of the program's inputs; all symbols
    std::map<std::string, int> next_suffix;        // by the begin of a name
    bool any = false;                              // there is a data-dependent symbol
    int num_bodies = 0;
  };
  std::shared_ptr<Names> names_;
};

// Adds the symbols in the dimensions of a type.
void collect_dim_names(mlir::Type, std::set<std::string>& names);
// The `repro.bind` in a function's block that defines a symbol; null if none does.
ReproBindOp binding_of(mlir::Block*, const std::string& name);
// Whether an expression in a function's block may have symbols other than those of the program's
// inputs. Rules use NodeView::is_data_dependent instead.
bool may_be_data_dependent(mlir::Block*, const DimExpr& sizes);
// The attribute of functions that are control-flow bodies.
inline constexpr char kBody[] = "repro.body";
// The attribute of a `repro.bind` whose symbol an operation computes with. Such a bind stays, and
// so the value is checked to be at least 0, even if no shape has the symbol.
inline constexpr char kMaterialized[] = "repro.measured";

}  // namespace invar::compiler
