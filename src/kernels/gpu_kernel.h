// A kernel that runs on a GPU: what the host calls to queue one operation. The sizes are asked for
// on the host, with views of device memory; they change no bit (law 4).
#pragma once

#include "device/device.h"
#include "kernels/op_contract.h"

namespace invar::ops {

struct GpuKernel {
  std::string_view op;   // the name in spec/opset.toml
  std::string_view isa;  // "cuda"
  // Bytes of Call::shared, which the call's queued kernels hand on among themselves.
  size_t (*shared_bytes)(const Call&) = nullptr;
  // Load-time packing of constant operand `i`: 0 bytes means that the kernel reads it row-major as
  // is.
  size_t (*pack_bytes)(const View& constant, int i, const Attributes&) = nullptr;
  // Bytes of a slot of `capacity` positions; null for stateless operations.
  size_t (*state_bytes)(const Call&, int64_t capacity) = nullptr;
  // enqueue() and enqueue_pack() only queue work on the calling thread's device; they neither wait
  // nor allocate. Packed operands, *past_now, `sequences` and what earlier calls left in `state`
  // may be read before the kernels queued ahead have ended (kernels/cuda/launch.h): their writers
  // are copies, or have been waited for.
  void (*enqueue)(const Call&, Stream) = nullptr;
  // Enqueues several independent calls together. Null: one after another.
  void (*enqueue_batch)(std::span<const Call* const>, Stream) = nullptr;
  void (*enqueue_pack)(const View& constant, int i, const Attributes&, void* packed, Stream) = nullptr;
  // With enqueue_batch: bytes of memory that these calls share as the Call::shared of each.
  size_t (*shared_bytes_batch)(std::span<const Call* const>) = nullptr;
};

}  // namespace invar::ops
