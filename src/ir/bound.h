// Sizes that values decide when a program runs (spec/onnx.md onnx.22): elements of integer values that are bound to symbols.
#pragma once

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

 private:
  struct Entry {
    mlir::Value value;
    int64_t element;
    std::string name;
  };
  std::vector<Entry> entries_;
  std::set<std::string> taken_;
};

// The operation in a block that binds one of the names in `sizes`; null: none does.
ReproBindOp binding_of(mlir::Block*, const Polynomial& sizes);

}  // namespace invar::ir
