// The ONNX node that an operation comes from, as its location: a NameLoc of the node's name around
// one of its operator around one of its number in the graph. Rewrites keep locations.
#pragma once

#include <string>

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "plan/plan.h"

namespace invar::compiler {

inline mlir::Location location_of(mlir::StringAttr name, mlir::StringAttr op_type, mlir::StringAttr number) {
  return mlir::NameLoc::get(name, mlir::NameLoc::get(op_type, mlir::NameLoc::get(number)));
}

// Empty if the location names no node.
inline plan::Origin origin_of(mlir::Location where) {
  const auto name = llvm::dyn_cast<mlir::NameLoc>(where);
  const auto op = name ? llvm::dyn_cast<mlir::NameLoc>(name.getChildLoc()) : mlir::NameLoc();
  return op ? plan::Origin{op.getName().str(), name.getName().str()} : plan::Origin{};
}

// The number of the node (onnx::NodeNumber) as text; empty if the location names no node.
inline std::string node_number_of(mlir::Location where) {
  const auto name = llvm::dyn_cast<mlir::NameLoc>(where);
  const auto op = name ? llvm::dyn_cast<mlir::NameLoc>(name.getChildLoc()) : mlir::NameLoc();
  const auto number = op ? llvm::dyn_cast<mlir::NameLoc>(op.getChildLoc()) : mlir::NameLoc();
  return number ? number.getName().str() : std::string();
}

}  // namespace invar::compiler
