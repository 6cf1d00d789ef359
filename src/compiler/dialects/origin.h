// The ONNX node that an operation comes from, as its location: a NameLoc of the node's name around
// one of its operator. Rewrites keep locations.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "plan/plan.h"

namespace invar::compiler {

inline mlir::Location location_of(mlir::StringAttr name, mlir::StringAttr op_type) {
  return mlir::NameLoc::get(name, mlir::NameLoc::get(op_type));
}

// Empty if the location names no node.
inline plan::Origin origin_of(mlir::Location where) {
  const auto name = llvm::dyn_cast<mlir::NameLoc>(where);
  const auto op = name ? llvm::dyn_cast<mlir::NameLoc>(name.getChildLoc()) : mlir::NameLoc();
  return op ? plan::Origin{op.getName().str(), name.getName().str()} : plan::Origin{};
}

}  // namespace invar::compiler
