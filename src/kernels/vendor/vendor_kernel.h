// Vendor rows: kernels of a vendor's library, which only programs of a weaker operation set may
// run. They are in no list of kernels/registry.h, and nothing there finds them: they have their own
// table, so no reproducible program, conformance run or `invar doctor` sees them. By file name
// (cmake/room.cmake): src/ops/ROOM/vendor/LIBRARY.cc or .cu implements the operation with the
// room's name; src/kernels/vendor/LIBRARY.cc opens the library.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/operation_set.h"
#include "kernels/registry.h"

namespace invar::ops {

struct Library {
  std::string_view name;  // as its vendor writes it
  // "2.6.3"; "" if it is not installed or not usable. The first call loads it.
  const std::string& (*version)();
  // Whether a call failed since this was last asked; the results of a failed call are undefined.
  bool (*failed)();
  // Prepares the library of GPU kernels for calls on this stream of the calling thread's device,
  // for the lifetime of the result; null on failure. Allocates, so not during graph capture.
  std::shared_ptr<void> (*attach)(Stream) = nullptr;
};

// An operand as a plan declares it; a constant one is packed once for all calls.
struct OperandInfo {
  DType dtype;
  bool constant;
};

// A row like any other, except for its bits. It may call the reproducible row of its device where
// that is faster. It allocates and locks nothing itself; the library may, within a call.
struct VendorRow {
  KernelRef kernel;  // isa: "onednn", "cublas", ...
  const Library* library;
  OperationSet keeps;  // the strongest set whose promise it keeps, never reproducible
  // Whether the library serves any call with such operands.
  bool (*serves)(std::span<const OperandInfo> operands);
};

// All of this build (generated), installed or not; faster ones first within an operation.
std::span<const VendorRow* const> vendor_rows();
// The vendor row that runs `op` on such operands in a program of this set, on the host or on a GPU.
// Null: the reproducible row runs it; always null for reproducible programs.
const VendorRow* find_vendor(std::string_view op, std::span<const OperandInfo> operands, OperationSet,
                             bool gpu);

}  // namespace invar::ops
