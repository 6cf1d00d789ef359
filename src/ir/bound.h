// Sizes that values decide when a program runs (spec/onnx.md onnx.22): elements of integer values that are bound to symbols.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/polynomial.h"
#include "ir/dialects.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace invar::ir {

class Bound {
 public:
  explicit Bound(mlir::func::FuncOp);

  // A symbol for an element of an i64 value, the same for equal ones. What wants it says how it is called: "slice_2".
  Polynomial size(mlir::OpBuilder&, mlir::Value, int64_t element, llvm::StringRef wanted_by);
  // Whether one of the names in `sizes` is bound.
  bool has(const Polynomial& sizes) const;
  // The value of a name that stands in a text; null: none does.
  mlir::Value named_in(llvm::StringRef text) const;

 private:
  // Of a value: the same operations of the same operands have one.
  int number_of(mlir::Value);

  llvm::DenseMap<mlir::Value, int> values_;
  std::map<std::pair<std::vector<const void*>, std::vector<int>>, int> computations_;
  std::map<std::pair<int, int64_t>, std::string> names_;  // by number and element
  std::map<std::string, mlir::Value> bound_;              // by name
  std::set<std::string> taken_;
  std::map<std::string, int> numbers_;  // the next of names that begin alike
};

// Adds the names in the dimensions of a type.
void add_names(mlir::Type, std::set<std::string>& names);
// The operation in a function's block that binds one of the names in `sizes`; null: none does. It looks at the block where a name is
// no argument's: rules ask Node::is_bound.
ReproBindOp binding_of(mlir::Block*, const Polynomial& sizes);

}  // namespace invar::ir
