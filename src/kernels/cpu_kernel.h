// A kernel that runs on the host: one operation on one instruction set. Bits never depend on how
// [0, units) is split, nor on scratch, packing or state layout: those are tuning (law 4).
#pragma once

#include "kernels/op_contract.h"

namespace invar::ops {

// A strided block of a dense tensor: `rows` rows of n elements, the first at element `at`, with
// `pitch` elements from one row to the next.
struct Region {
  int64_t at, n, rows, pitch;
};

// The operations that follow are applied to parts of a result while they are still in cache.
struct Epilogue {
  // The epilogue callback.
  void (*run)(const void* context, const Region&);
  const void* context;
  // True if run() does no more, on an f32 result, than add `other` (if not null) and apply a relu
  // (if `relu`), with the store rule before and after each. A kernel that applies these in
  // registers need not call run().
  bool add_relu = false;
  bool relu = false;
  const View* other = nullptr;
};
// Elementwise operations on f32 that a preceding kernel can apply in registers.
enum class InRegisterEpilogue : uint8_t { none, add, relu };

struct CpuKernel {
  std::string_view op;   // the name in spec/opset.toml
  std::string_view isa;  // "reference", "scalar", "avx2", "avx512", "neon"
  int phases = 1;        // the runtime waits for all units of a phase before the next
  // Number of independent work units of a phase.
  int64_t (*units)(const Call&, int phase) = nullptr;
  // Computes units [begin, end) of a phase. Never allocates, locks or makes a system call. scratch:
  // at least scratch_bytes(call), 64-byte aligned, private to the worker, initially undefined.
  void (*run)(const Call&, int phase, int64_t begin, int64_t end, void* scratch) = nullptr;
  size_t (*scratch_bytes)(const Call&) = nullptr;
  // Bytes of Call::shared, which all workers and phases of a call see. The units of one phase write
  // disjoint parts of it; later phases read them.
  size_t (*shared_bytes)(const Call&) = nullptr;
  // run() honours CpuCall::epilogue; it may report the result in any parts and any order.
  bool epilogue = false;
  // run() honours the epilogue only if Epilogue::add_relu: its tiles are too small for callbacks.
  bool add_relu_epilogue = false;
  InRegisterEpilogue in_register = InRegisterEpilogue::none;
  // Variant of this kernel that accepts NHWC operands and results (View::pitch); null if none.
  // Operand 0, the result and Epilogue::other (of an add_relu epilogue) may each be NHWC, and
  // `other` must be if the result is. Sets `pitch` to that of an NHWC result; if it stays 0, the
  // result is NHWC exactly if operand 0 is. `weights`: operand 1 if constant, else of rank 0. May
  // be called for operands that check() would refuse.
  const CpuKernel* (*channels_last)(const View& weights, const Attributes&, int64_t& pitch) = nullptr;
  // Kernels with one result whose element i depends only on element i (after broadcasting) of each
  // operand: computes one region of it. An operand with as many elements and bytes as the result
  // may share its memory.
  void (*region)(const Call&, const Region&) = nullptr;
  // Load-time packing of constant operand `i`: 0 bytes means that the kernel reads it row-major as
  // is.
  size_t (*pack_bytes)(const View& constant, int i, const Attributes&) = nullptr;
  void (*pack)(const View& constant, int i, const Attributes&, void* packed) = nullptr;
  // Bytes of a slot of `capacity` positions; null for stateless operations.
  size_t (*state_bytes)(const Call&, int64_t capacity) = nullptr;
};

}  // namespace invar::ops
