// Runs one kernel row on one case the way a runtime might: units split in parts, operands packed or not, steps of
// any size. Everything the kernel may write lies between guards; everything it may not rely on is poisoned.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "device/device.h"
#include "base/thread_pool.h"
#include "conformance/case.h"
#include "kernels/kernel.h"

namespace invar::conformance {

using Bytes = std::vector<std::byte>;

struct Manner {
  int parts = 1;          // units split into this many contiguous parts; 0: each unit on its own
  bool reversed = false;  // the parts run last to first
  bool packed = true;     // constants packed where the row packs them
  int64_t chunk = 0;      // of axis 1 per call; 0: all in one call
  // With `chunk`: how the elements of the leading axis, each a sequence with memory of its own, share calls. `ragged`: some
  // are ahead of others, join late, leave early, in changing order; `alone`: the same steps, a call for each.
  enum class Company { even, ragged, alone } company = Company::even;
  int skew = 0;          // operands and results lie this many elements past a multiple of 64 bytes
  bool fused = false;    // rows with an epilogue have one, and rows that compute regions do so, too
  Pool* pool = nullptr;  // the parts run at once in its threads, which must keep ArithmeticEnv
  std::string text() const;
};

// The outputs, or what the kernel did that it must not.
Result<std::vector<Bytes>> execute(const ops::Kernel&, const Case&, const std::vector<Bytes>& inputs,
                                   const Manner&);

// The GPU of this process, on which "cuda" rows run, or why there is none.
Result<std::shared_ptr<Device>> gpu();

// Of a reference row: elements of the leading axis, where it says that it keeps them apart (Kernel::alone), computed one by one
// and compared with `whole`, which it gave. "" where they are equal.
std::string company_shows(const ops::Kernel&, const Case&, const std::vector<Bytes>& inputs,
                          const std::vector<Bytes>& whole);

// What the row's check says of the case; "" where it takes it.
std::string refusal(const ops::Kernel&, const Case&);

// Computes what a runtime asks of the rows before it reserves memory: units, scratch, state, packing. No data is read.
void ask_for_sizes(const std::vector<const ops::Kernel*>&, const Case&);

// "" where equal; else the first difference: output, coordinates, bits.
std::string difference(const Case&, const std::vector<Bytes>& expected, const std::vector<Bytes>& found);

}  // namespace invar::conformance
