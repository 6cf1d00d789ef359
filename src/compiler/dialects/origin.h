// The ONNX node that an operation was made of, as its location: its name, around the name of its operator. Rewrites hand it on.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "plan/plan.h"

namespace invar::compiler {

inline mlir::Location location_of(mlir::StringAttr name, mlir::StringAttr op_type) {
  return mlir::NameLoc::get(name, mlir::NameLoc::get(op_type));
}

// Empty: the operation says of no node that it is of it.
inline plan::Origin origin_of(mlir::Location where) {
  const auto name = llvm::dyn_cast<mlir::NameLoc>(where);
  const auto op = name ? llvm::dyn_cast<mlir::NameLoc>(name.getChildLoc()) : mlir::NameLoc();
  return op ? plan::Origin{op.getName().str(), name.getName().str()} : plan::Origin{};
}

}  // namespace invar::compiler
