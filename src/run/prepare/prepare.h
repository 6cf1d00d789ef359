// plan + target -> executable: a list of passes, each in its file (passes/), none of which changes
// a bit of a result. README.md says what each reads and writes.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "device/device.h"
#include "run/prepare/executable.h"

namespace invar::run {

struct Target {
  std::string isa;                 // an instruction set; "": the best here
  std::shared_ptr<Device> device;  // null: the host
  bool observed = false;           // every node runs alone and leaves its results in memory, row-major
};

struct Pass {
  std::string_view name;
  Status (*run)(Executable&, const Target&);
  bool merges = false;  // nodes run together or share results afterwards: left out where they are observed
};
std::span<const Pass> passes();  // in their order

// A plan that is a part of another one has these: the numbers of its nodes and values there, and
// its values that states of other parts depend on, and where it joins with other ranks.
struct Numbering {
  std::span<const int> nodes, values, feeding_outputs{};
  std::span<const plan::Join> joins{};
};
// Called with what each pass leaves.
using PassObserver = std::function<void(const Pass&, const Executable&)>;

// The plan must outlive the executable. Vendor kernels are used if the plan's operation set allows
// them, they are installed and `isa` is "".
Result<std::shared_ptr<const Executable>> prepare(const plan::Plan&, const Target&, const Numbering& = {},
                                                  const PassObserver& = {});

// Checks that every room accepts its nodes, in steps of up to `max_sequences` sequences. To be
// called before weights are packed or memory is reserved.
Status validate(const Executable&, int64_t max_sequences);

// The nodes as the passes have left them so far, each a line without its end, such as
// 8  v9: f32 [4, 48] = add avx2 (v8, "bias"): fused into operation 7, buffer 2
std::vector<std::string> print(const Executable&);
// Gives `write` the name of each pass and the lines of the nodes that it changed. Without `write`
// it is empty, too.
PassObserver explain(std::function<void(std::string_view)> write);

}  // namespace invar::run
