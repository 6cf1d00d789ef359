// Tests what the runtime relies on for fusion: rows report their results to an epilogue callback,
// or compute regions of them in place, or round them, or run together.
#pragma once
#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "kernels/cpu_kernel.h"
#include "kernels/gpu_kernel.h"

namespace invar::conformance {

// An epilogue that records the reported elements and their values.
class EpilogueRecorder {
 public:
  explicit EpilogueRecorder(const ops::View& out);
  EpilogueRecorder(const EpilogueRecorder&) = delete;
  const ops::Epilogue* epilogue() const { return &epilogue_; }
  // "" if every element was reported once and none has changed since.
  std::string wrong() const;

 private:
  void record(const ops::Region&);
  ops::View out_;
  size_t width_;
  std::vector<std::atomic<uint32_t>> times_;  // not bytes: an atomic byte add needs a library on riscv64
  std::vector<std::byte> seen_;
  std::atomic<bool> outside_ = false;
  ops::Epilogue epilogue_;
};

// Checks a row with `region`: computes its result region by region, both into separate memory and
// over each operand that may share memory, and compares it with out[0] as run() left it. "" if
// equal.
std::string check_regions(const ops::CpuKernel&, const ops::Call&);

// A GPU, and memory there that is kept until the run ends.
struct DeviceMemory {
  Device& device;
  std::function<std::byte*(size_t bytes)> take;
};

// Checks a row with `can_round`: rounds the rows of its last result, and compares them with those
// of the result that enqueue() left. "" if equal.
std::string check_rounded(const ops::GpuKernel&, const ops::Call&, const DeviceMemory&);

// Checks a row with `enqueue_batch` or `enqueue_fused`: runs the call three times as one batch, the
// second with the operands `plain`, which are not packed, with the latter adding zeros to two of
// them that change no result, and compares each result with the one that enqueue() left. "" if
// equal.
std::string check_together(const ops::GpuKernel&, const ops::Call&, std::span<const ops::View> plain,
                           const DeviceMemory&);

}  // namespace invar::conformance
