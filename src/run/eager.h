// Eager execution: computes one operation on tensors at once, as a plan of one node would.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/attributes.h"
#include "base/sync/mutex.h"
#include "base/thread_pool.h"
#include "device/memory.h"
#include "kernels/registry.h"

namespace invar::run {

// `isa` must be "" or an instruction set that both this build and this CPU have.
Status check_isa(const std::string& isa);

// Memory, of the host or of a device, that calls leave to later calls, which may need as much.
struct EagerMemory {
  Allocation shared, scratch, fault;
};

// Computes op(in) into out, which exists and overlaps no operand. All are row-major on the host or
// on the given device, whose queue is waited for. attrs: without numerics and version. isa: "" =
// the best here. Errors name the operation.
Status run_operation(const std::string& op, const Attributes& attrs, std::span<const ops::View> in,
                     const ops::View& out, const std::string& isa, Pool&,
                     const std::shared_ptr<Device>& device = {}, EagerMemory* memory = nullptr);

// A GPU that computes operations on the streams of their callers.
class EagerDevice {
 public:
  static Result<std::unique_ptr<EagerDevice>> open(int index);
  const std::shared_ptr<Device>& device() const { return device_; }
  // The operations that met an index out of bounds since the last such call, "gather, scatter_nd";
  // "" if none did. Sees what kernels have written so far, and waits for none.
  std::string take_faults();

 private:
  friend class EagerOperation;
  explicit EagerDevice(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  Result<const ops::Sequence*> sequences(int64_t count);

  std::shared_ptr<Device> device_;
  Allocation faults_;   // pinned: a word for each operation with indices
  Allocation no_past_;  // an int64_t 0
  Mutex mutex_;
  std::vector<Allocation> sequences_;  // each {0, 0}, {1, 0}, ...; the last one is the longest
};

// One operation with its attributes, which is called again and again. Errors name the operation.
class EagerOperation {
 public:
  // attrs, isa: as run_operation's.
  static Result<EagerOperation> make(std::string op, Attributes attrs, std::string isa);
  const std::string& op() const { return op_; }
  const Attributes& attributes() const { return attrs_; }
  // Whether there is a kernel and the room accepts these shapes and element types. Reads no data.
  // The other functions require that it has returned no error.
  Status check(std::span<const ops::View> in, const ops::View& out, bool gpu) const;
  // Computes it on the host, whose memory it is.
  Status run(std::span<const ops::View> in, const ops::View& out, Pool&, EagerMemory&) const;
  // Memory for this call, at least as aligned as Allocation's.
  using Scratch = std::function<Result<void*>(size_t bytes)>;
  // Queues it on a stream of the device and waits for nothing, so that a graph can record it. Later
  // work of the stream may overwrite the scratch.
  Status enqueue(std::span<const ops::View> in, const ops::View& out, EagerDevice&, Stream,
                 const Scratch&) const;
  // Operations that do not depend on each other's results: one after another, or by a kernel for
  // all (ops::GpuGroup).
  struct Member {
    const EagerOperation* operation;
    std::span<const ops::View> in;
    ops::View out;
  };
  static Status enqueue_group(std::span<const Member>, EagerDevice&, Stream, const Scratch&);

 private:
  EagerOperation() = default;
  Status compute(const ops::Call&, Pool&, EagerMemory&) const;

  std::string op_, isa_;
  Attributes attrs_;
  const ops::OpContract* contract_ = nullptr;
  ops::KernelRef host_kernel_, gpu_kernel_;  // empty: none in this build
  const ops::GpuGroup* group_ = nullptr;     // that starts with this operation
  size_t fault_word_ = 0;                    // of EagerDevice
};

}  // namespace invar::run
