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

struct RowStep;  // kernels/fusion/row_steps.h
inline constexpr size_t kMostRowSteps = 16;

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
  // Not null: the kernel has row_steps. It runs these on rows of its results, none of which reach
  // memory, and reports regions of what the last step makes. run() does what follows the steps.
  const RowStep* steps = nullptr;
  int step_count = 0;
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
  bool row_steps = false;  // run() honours Epilogue::steps
  InRegisterEpilogue in_register = InRegisterEpilogue::none;
  // Variant of this kernel that accepts NHWC operands and results (View::pitch); null if none.
  // Operand 0, the result and Epilogue::other (of an add_relu epilogue) may each be NHWC, and
  // `other` must be if the result is. Sets `pitch` to that of an NHWC result; if it stays 0, the
  // result is NHWC exactly if operand 0 is. `weights`: operand 1 if constant, else of rank 0. May
  // be called for operands that check() would refuse.
  const CpuKernel* (*channels_last)(const View& weights, const Attributes&, int64_t& pitch) = nullptr;
  // The variant takes each operand in either layout. `weights` has the shape of the result, an open
  // dimension being 0.
  bool joins_channels = false;
  // Kernels with one result whose element i depends only on element i (after broadcasting) of each
  // operand: computes one region of it. An operand with as many elements and bytes as the result
  // may share its memory.
  void (*region)(const Call&, const Region&) = nullptr;
  // Such kernels: appends the call, which reads what the `count` steps before make as operand
  // `operand` alone, and returns how many steps there are; 0: it cannot be one. It may do the work
  // of the step before, too. `steps` has room for one more. Reads no data.
  int (*append_row_step)(const Call&, int operand, RowStep* steps, int count) = nullptr;
  // Load-time packing of constant operand `i`: 0 bytes means that the kernel reads it row-major as
  // is.
  size_t (*pack_bytes)(const View& constant, int i, const Attributes&) = nullptr;
  void (*pack)(const View& constant, int i, const Attributes&, void* packed) = nullptr;
  // Bytes of a slot of `capacity` positions; null for stateless operations.
  size_t (*state_bytes)(const Call&, int64_t capacity) = nullptr;
};

}  // namespace invar::ops
