// Library rows: kernels of a vendor's library, which only programs of a weaker operation set may run. They are no rows of
// ops::kernels() and no answer of ops::find(): a table of another type holds them, and nothing that a reproducible program, the
// conformance harness or `invar doctor` asks for comes from it. By file name (cmake/room.cmake): src/ops/ROOM/LIBRARY.cc or .cu,
// for the operation that has the room's name; src/ops/LIBRARY.cc opens the library.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/operation_set.h"
#include "kernels/kernel.h"

namespace invar::ops {

struct Library {
  std::string_view name;  // as its vendor writes it
  // "2.6.3"; "" where it is not here or does not serve. The first call looks for it.
  const std::string& (*version)();
  // Whether it refused a call since this was asked last; what that call should have computed is not there.
  bool (*failed)();
  // Rows of a GPU: makes it ready for calls on this stream of the calling thread's device, as long as the result lives; null
  // where it cannot. Allocates, so not while a graph is recorded.
  std::shared_ptr<void> (*attach)(Stream) = nullptr;
};

// An operand as a plan has it; a constant one is packed once for all calls.
struct Given {
  DType dtype;
  bool constant;
};

// A row as any other, but for its bits: it may run the reproducible row of its device where that is faster. It allocates and locks
// nothing itself; what the library does within a call is the library's.
struct LibraryRow {
  const Kernel* kernel;  // isa: "onednn", "cublas", ...
  const Library* library;
  OperationSet keeps;  // the strongest set whose promise it keeps, never reproducible
  // Whether there are calls with such operands that it gives to the library.
  bool (*serves)(std::span<const Given> operands);
};

// All of this build (generated), whatever is here; faster ones first within an operation.
std::span<const LibraryRow* const> library_rows();
// The row that runs `op` on such operands in a program of this set, on the host or on a GPU; null: the reproducible row does. Always null for
// reproducible programs.
const LibraryRow* find_library(std::string_view op, std::span<const Given> operands, OperationSet, bool gpu);

}  // namespace invar::ops
