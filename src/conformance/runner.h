// Runs one kernel on one case the way a runtime might: units split into parts, operands packed
// or not, steps of any size. Guards surround all memory that the kernel may write; all it may not
// rely on is poisoned.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "conformance/case.h"
#include "device/device.h"
#include "kernels/registry.h"

namespace invar::conformance {

using Bytes = std::vector<std::byte>;

struct RunMode {
  int parts = 1;          // units split into this many contiguous parts; 0: one unit at a time
  bool reversed = false;  // the parts run last to first
  bool packed = true;     // constants are packed if the row packs them ...
  uint64_t plain = 0;     // ... but operand i stays plain if bit i % 64 is set
  int64_t chunk = 0;      // of axis 1 per call; 0: one call
  // How sequences of the leading axis, each with its own state, share calls where there is a
  // `chunk`. `ragged`: some are ahead of others, join late, leave early, in changing order.
  // `separate`: the same steps, one call per sequence.
  enum class Batching { even, ragged, separate } batching = Batching::even;
  int skew = 0;          // operands and results start this many elements past a multiple of 64 bytes
  bool fused = false;    // rows with an epilogue get one, and rows with regions compute them too
  bool pages = false;    // states that grow with positions are in pages
  Pool* pool = nullptr;  // runs the parts concurrently; its threads must keep ArithmeticEnv
  bool packs(size_t operand) const { return packed && !(plain >> operand % 64 & 1); }
  std::string text() const;
};

// The outputs, or how the kernel broke its contract.
Result<std::vector<Bytes>> execute(ops::KernelRef, const Case&, const std::vector<Bytes>& inputs,
                                   const RunMode&);

// The GPU of this process, for "cuda" rows, or why there is none. Each thread has a stream of its
// own there.
Result<std::shared_ptr<Device>> gpu();

// Gives each later tensor on a GPU an allocation of its own, without guards, so that
// compute-sanitizer sees what is read or written after its end.
void allocate_apart();

// Tests OpContract::batch_independent with the reference kernel: computes single elements of the
// leading axis and compares them with `whole`, its result for the batch. "" if equal.
std::string check_batch_independence(const ops::CpuKernel& reference, const Case&,
                                     const std::vector<Bytes>& inputs, const std::vector<Bytes>& whole);

// The refusal of the case by the operation's check(); "" if it accepts it.
std::string refusal(std::string_view op, const Case&);

// Computes the sizes that a runtime asks for before it reserves memory: units, scratch, state,
// packing. Reads no data.
void compute_sizes(const std::vector<ops::KernelRef>&, const Case&);

// "" if equal; else the first difference: output, coordinates, bits.
std::string difference(const Case&, const std::vector<Bytes>& expected, const std::vector<Bytes>& found);

}  // namespace invar::conformance
