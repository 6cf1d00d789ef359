// What a room offers the runtime: kernel rows. One row is one operation on one instruction set.
// Bits never depend on how [0, units) is split, nor on scratch, packing or state layout: those are
// tuning (law 4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/attributes.h"
#include "base/dtype.h"
#include "device/device.h"

namespace invar::ops {

inline constexpr int kMaxRank = 8;

// A dense row-major tensor, aligned to its element size and no more. Results overlap nothing.
// An operand packed at load time keeps its logical shape and dtype here; `data` then points at the
// packed bytes and `packed` is true.
struct View {
  void* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  bool packed = false;
  int64_t dim[kMaxRank] = {};
  // Nonzero only for rows with Kernel::channels_last: the tensor [N, C, ...] is stored NHWC, and
  // `pitch` is the number of elements from one pixel to the next. The gap after the channels of a
  // pixel is never read or written.
  int64_t pitch = 0;
  // Forced inline: an out-of-line copy compiled with one instruction set's flags must never serve
  // another.
  [[gnu::always_inline]] int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dim[i];
    return n;
  }
  template <class T>
  [[gnu::always_inline]] T* as() const {
    return static_cast<T*>(data);
  }
};

// One sequence of a batched call of a stateful operation: the slot that holds its KV cache, and the
// number of positions already filled before this call. The slots of one call are distinct.
struct Sequence {
  int64_t slot, past;
};

// A strided block of a dense tensor: `rows` rows of n elements, the first at element `at`, with
// `pitch` elements from one row to the next.
struct Region {
  int64_t at, n, rows, pitch;
};

// What follows an operation and is applied to parts of its result while they are still in cache.
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

struct Call {
  std::span<const View> in;
  std::span<const View> out;
  const Attributes* attrs;
  // Stateful operations (attention): slots of `capacity` positions in the room's own layout,
  // 64-byte aligned, initially undefined; see `sequences`. `past` is the largest number of
  // positions filled before this call in any slot. The call appends its new positions itself.
  void* state = nullptr;
  int64_t past = 0;
  int64_t capacity = 0;
  // Kernel::shared_bytes of memory that all workers and phases of this call see; 64-byte aligned,
  // undefined at the start of the first phase. The units of one phase write disjoint parts of it;
  // later phases read them.
  void* shared = nullptr;
  // GPU rows: all pointers are device memory, and the queued work may be replayed in later steps.
  // `past` is then an upper bound over all replays; the running step's sequences are at `sequences`
  // and its largest past is *past_now. *fault is set if an element of an index operand is out of
  // bounds.
  const int64_t* past_now = nullptr;
  uint32_t* fault = nullptr;
  // Stateful operations: one entry per element of the leading axis (on a GPU, of the running step),
  // and the bytes from one slot to the next. Null if only sizes are asked for.
  const Sequence* sequences = nullptr;
  size_t slot_bytes = 0;
  // Rows that accept an epilogue: if not null, the kernel reports every element of out[0] to the
  // epilogue callback exactly once, on the thread that wrote it, after it wrote it.
  const Epilogue* epilogue = nullptr;
};

// An element of an index operand that is out of bounds. Valid values are 0 ... limit - 1 and, from
// the end, -limit ... -1.
struct OutOfBounds {
  int operand;
  int64_t element, value, limit;
};

// What an operation promises on every instruction set. Its reference row holds it; it is empty in
// other rows.
struct OpContract {
  // Returns null if the room accepts these shapes, dtypes and attributes, else what it requires.
  // An attribute of the wrong type throws std::bad_variant_access. Reads no data. Call::capacity is
  // nonzero if the node has state.
  const char* (*check)(const Call&) = nullptr;
  // Operations with index operands: whether any index of this call is out of bounds, and the first
  // that is. The runtime asks before it runs the operation; every row still computes something
  // defined.
  bool (*find_out_of_bounds)(const Call&, OutOfBounds&) = nullptr;
  // Batch invariance: whether element i of the leading axis of every result depends, for each
  // operand whose bit is set in `batched` (their leading axes are as long as the results'), only on
  // element i of that axis, and is the same whatever the other elements are and however many there
  // are. Null: never. The conformance harness tests it.
  bool (*batch_independent)(const Call&, uint64_t batched) = nullptr;
};

struct Kernel {
  std::string_view op;   // the name in spec/opset.toml
  std::string_view isa;  // "reference", "scalar", "avx2", "avx512", "neon", "cuda"
  OpContract contract = {};
  int phases = 1;  // the runtime waits for all units of a phase before the next
  // Number of independent work units of a phase.
  int64_t (*units)(const Call&, int phase) = nullptr;
  // Computes units [begin, end) of a phase. Never allocates, locks or makes a system call. scratch:
  // at least scratch_bytes(call), 64-byte aligned, private to the worker, initially undefined.
  void (*run)(const Call&, int phase, int64_t begin, int64_t end, void* scratch) = nullptr;
  size_t (*scratch_bytes)(const Call&) = nullptr;
  // Bytes of Call::shared, for results that one phase hands to the next.
  size_t (*shared_bytes)(const Call&) = nullptr;
  // run() honours Call::epilogue; it may report the result in any parts and any order.
  bool epilogue = false;
  // run() honours Call::epilogue only if Epilogue::add_relu: its tiles are too small for callbacks.
  bool add_relu_epilogue = false;
  InRegisterEpilogue in_register = InRegisterEpilogue::none;
  // CPU rows: variant of this kernel that accepts NHWC operands and results (View::pitch); null if
  // none. Operand 0, the result and Epilogue::other (of an add_relu epilogue) may each be NHWC, and
  // `other` must be if the result is. Sets `pitch` to that of an NHWC result; if it stays 0, the
  // result is NHWC exactly if operand 0 is. `weights`: operand 1 if constant, else of rank 0. May
  // be called for operands that check() would refuse.
  const Kernel* (*channels_last)(const View& weights, const Attributes&, int64_t& pitch) = nullptr;
  // CPU rows with one result whose element i depends only on element i (after broadcasting) of each
  // operand: computes one region of it. An operand with as many elements and bytes as the result
  // may share its memory.
  void (*region)(const Call&, const Region&) = nullptr;
  // Load-time packing of constant operand `i`: 0 bytes means that the row reads it row-major as is.
  size_t (*pack_bytes)(const View& constant, int i, const Attributes&) = nullptr;
  void (*pack)(const View& constant, int i, const Attributes&, void* packed) = nullptr;
  // Bytes of a slot of `capacity` positions; null for stateless operations.
  size_t (*state_bytes)(const Call&, int64_t capacity) = nullptr;
  // GPU rows ("cuda") have enqueue and enqueue_pack in place of units, run and pack. The other
  // functions run on the host, with views of device memory. Both only queue work on the calling
  // thread's device; they neither wait nor allocate. Packed operands, *past_now, `sequences` and
  // what earlier calls left in `state` may be read before the kernels queued ahead have ended
  // (kernels/cuda/launch.h): their writers are copies, or have been waited for.
  void (*enqueue)(const Call&, Stream) = nullptr;
  // Enqueues several independent calls together. Null: one after another.
  void (*enqueue_batch)(std::span<const Call* const>, Stream) = nullptr;
  void (*enqueue_pack)(const View& constant, int i, const Attributes&, void* packed, Stream) = nullptr;
  // CPU rows whose only result may be a view of in[0]: its byte offset in in[0], or a negative
  // number if it is not one. The runtime may alias the two and then runs nothing.
  int64_t (*alias_offset)(const Call&) = nullptr;
  // GPU rows with enqueue_batch: bytes of memory that these calls share as the Call::shared of
  // each.
  size_t (*shared_bytes_batch)(std::span<const Call* const>) = nullptr;
};

// The row of one operation in a cpu.cc that holds several: row_NAME_ISA.
#define INVAR_ROW_JOIN(op, isa) row_##op##_##isa
#define INVAR_ROW_OF_ISA(op, isa) INVAR_ROW_JOIN(op, isa)
#define INVAR_ROW_OF(op) INVAR_ROW_OF_ISA(op, INVAR_ISA_NS)

// All rows of this build (generated from spec/opset.toml), best instruction set first within an
// operation.
std::span<const Kernel* const> kernels();
inline constexpr std::string_view kCuda = "cuda";
// The row that runs `op`: the best this CPU supports, or exactly `isa` if given. Null: none.
// Whether a GPU is present for a "cuda" row is Device::open's to say.
const Kernel* find(std::string_view op, std::string_view isa = "");
// Instruction sets of this build that this CPU can run, best first, "reference" last.
std::span<const std::string_view> isas();

}  // namespace invar::ops
