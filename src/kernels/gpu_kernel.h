// A kernel that runs on a GPU: what the host calls to queue one operation. The sizes are asked for
// on the host, with views of device memory; they change no bit (law 4).
#pragma once

#include "device/device.h"
#include "kernels/op_contract.h"

namespace invar::ops {

struct GpuKernel;
struct GpuJoin;
struct RoundedJoin;

// Rows rounded to 16-bit integers (exact16.1, exact16.2) in two planes of bytes, as products on
// tensor cores read them: per tile of `height` rows and 128 elements one block, the high bytes
// before the low ones, 16-byte groups of a row at group ^ (row & 7). Elements behind the end of a
// row are zero.
struct RoundedRows {
  uint8_t* blocks;
  int32_t* scales;  // one a row
  int64_t tiles, chunks;
  int height;
};

// Operations that run with a batch of calls, in their kernels. They change no bit.
struct GpuFusion {
  // The calls whose last result is in[0] of every call of the batch, and the kernel of the last of
  // them, which writes it rounded (GpuKernel::enqueue_rounded) and never as f32. Empty: in[0] is in
  // memory.
  std::span<const Call* const> producers;
  const GpuKernel* producer = nullptr;
  // Per call: elements like those of its result, which are added to it. Empty: none.
  std::span<const float* const> addends;
  // Of producers the last of which is a join of ranks, in the place of `producer`; null: it is
  // none. enqueue_producers() knows both (fusion/join_kernels.h).
  const RoundedJoin* joins = nullptr;
  const GpuJoin* join = nullptr;
};

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
  // nor allocate. Packed operands, *past_now, `sequences`, `pages` and what earlier calls left
  // there may be read before the kernels queued ahead have ended (kernels/cuda/launch.h): their
  // writers are copies, or have been waited for.
  void (*enqueue)(const Call&, Stream) = nullptr;
  // Enqueues several independent calls together. Null: one after another.
  void (*enqueue_batch)(std::span<const Call* const>, Stream) = nullptr;
  void (*enqueue_pack)(const View& constant, int i, const Attributes&, void* packed, Stream) = nullptr;
  // Bytes of memory that the calls of enqueue_batch share as the Call::shared of each.
  size_t (*shared_bytes_batch)(std::span<const Call* const>) = nullptr;
  // Does what enqueue_batch does, also for one call, with the operations that run in its kernels.
  // Null: nothing can. The shared memory is that of the batch without the fusion.
  void (*enqueue_fused)(std::span<const Call* const>, const GpuFusion&, Stream) = nullptr;
  // Whether the kernel can write the last result of these calls, the last of which is its own, as
  // rounded rows, and doing so. Null: it cannot.
  bool (*can_round)(std::span<const Call* const>) = nullptr;
  void (*enqueue_rounded)(std::span<const Call* const>, const RoundedRows&, Stream) = nullptr;
  // Addition of two operands of equal shapes: it can run in the epilogue of the kernel before it.
  bool is_addition = false;
};

}  // namespace invar::ops
