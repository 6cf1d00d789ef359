// Sizes that values decide when a program runs (spec/onnx.md onnx.22): elements of integer values that are bound to symbols.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "shape/dim_expr.h"
#include "compiler/dialects/dialects.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace invar::compiler {

class Bound {
 public:
  explicit Bound(mlir::func::FuncOp);
  // Of a body of control flow within the function of `outer`.
  explicit Bound(const Bound& outer, std::nullptr_t) : names_(outer.names_) {}

  // A symbol for an element of an i64 value, the same for equal ones. What wants it says how it is called: "slice_2".
  Polynomial size(mlir::OpBuilder&, mlir::Value, int64_t element, llvm::StringRef wanted_by);
  // A name like no other, for what the shape of a value decides (control flow).
  std::string fresh(llvm::StringRef like);
  // For the function of a body.
  std::string fresh_body() { return "body_" + std::to_string(names_->bodies++); }
  void shaped(const std::string& name, mlir::Value value) { bound_.emplace(name, value), names_->any = true; }
  // Whether one of the names in `sizes` is bound, here or around.
  bool has(const Polynomial& sizes) const;
  // It was bound here.
  bool binds(const Polynomial& sizes) const {
    return !sizes.all_names([this](const std::string& name) { return !own_.contains(name); });
  }
  // Values that are gone.
  void forget(llvm::function_ref<bool(mlir::Value)> gone) {
    values_.clear(), computations_.clear(), elements_.clear();
    std::erase_if(bound_, [&](const auto& bound) { return gone(bound.second); });
  }
  // The value of a name that stands in a text; null: none does.
  mlir::Value named_in(llvm::StringRef text) const;

 private:
  // Of a value: the same operations of the same operands have one.
  int number_of(mlir::Value);

  llvm::DenseMap<mlir::Value, int> values_;
  std::map<std::pair<std::vector<const void*>, std::vector<int>>, int> computations_;
  std::map<std::pair<int, int64_t>, std::string> elements_;  // by number and element
  std::map<std::string, mlir::Value> bound_;                 // by name
  std::set<std::string> own_;                                // names that were made here
  // Of the program and all bodies.
  struct Names {
    std::set<std::string> given, taken;  // inputs of the program have them; all
    std::map<std::string, int> numbers;  // the next of names that begin alike
    bool any = false;                    // bound
    int bodies = 0;                      // functions
  };
  std::shared_ptr<Names> names_;
};

// Adds the names in the dimensions of a type.
void add_names(mlir::Type, std::set<std::string>& names);
// The operation in a function's block that binds a name; null: none does.
ReproBindOp binding_of(mlir::Block*, const std::string& name);
// Whether sizes in a function's block may depend on values: not on names of the program's inputs alone. Rules ask Node::is_bound.
bool may_be_bound(mlir::Block*, const Polynomial& sizes);
// Marks functions that are bodies of control flow.
inline constexpr char kBody[] = "repro.body";
// A ReproBindOp whose size is computed with: it is bound, and so asked to be at least 0, even if no shape has it.
inline constexpr char kMeasured[] = "repro.measured";

}  // namespace invar::compiler
