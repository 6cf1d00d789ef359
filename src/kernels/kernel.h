// What a room offers the runtime: kernel rows. One row = one operation on one instruction set.
// Bits never depend on how [0, units) is split, on scratch, packing or state layout: those are tuning (law 4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/attributes.h"
#include "device/device.h"
#include "base/dtype.h"

namespace invar::ops {

inline constexpr int kMaxRank = 8;

// A dense row-major tensor, aligned to its elements and no more. Results overlap nothing. Operands that a kernel packed at load time keep their logical shape and dtype here while
// `data` points at the packed bytes and `packed` is true.
struct View {
  void* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  bool packed = false;
  int64_t dim[kMaxRank] = {};
  // Not 0, where a row has it so (Kernel::channels_last): [N, C, ...] with the channels of a place together, a place this many
  // elements behind the one before; what lies between channels and the next place is nobody's.
  int64_t pitch = 0;
  // Inlined by force: an out-of-line copy compiled with one instruction set's flags must never serve another.
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

// An element of the leading axis of an operation with memory: which slot is its memory, and how many positions of it are
// filled before this call. No two of a call have the same slot.
struct Sequence {
  int64_t slot, past;
};

// Elements of a dense tensor: `rows` rows of n, the first at `at`, `pitch` elements from one row to the next.
struct Region {
  int64_t at, n, rows, pitch;
};

// What is done with parts of a result while a cache still has them.
struct Epilogue {
  void (*run)(const void* context, const Region&);
  const void* context;
  // All that run() does, of an f32 result, where it is `light`: each element is added to that of `other`, where there is one, and
  // no less than +0 where `relu`; stored by the store rule before and after each. Whoever does so in registers need not call run().
  bool light = false;
  bool relu = false;
  const View* other = nullptr;
};
// Elementwise rows whose f32 operation is one of these.
enum class Light : uint8_t { none, add, relu };

struct Call {
  std::span<const View> in;
  std::span<const View> out;
  const Attrs* attrs;
  // Operations with memory (attention): slots of `capacity` positions in the room's own layout, 64-byte aligned, contents
  // undefined at the start; see `sequences`. `past` is the most that any of these finds filled before this call, which
  // appends its new positions itself.
  void* state = nullptr;
  int64_t past = 0;
  int64_t capacity = 0;
  // Kernel::shared_bytes of memory that all workers and phases of this call see; 64-byte aligned, contents undefined at
  // the start of the first phase. Units of one phase write disjoint parts of it, later phases read them.
  void* shared = nullptr;
  // Rows of a GPU: all pointers are device memory, and the queued work may run again in later steps. `past` is then the most
  // that any of these finds filled; the running step's sequences stand at `sequences`, the most that any of them finds filled
  // at *past_now. *fault is set where an index operand names no place.
  const int64_t* past_now = nullptr;
  uint32_t* fault = nullptr;
  // Operations with memory: an element for each of the leading axis (on a GPU, of the running step), and the bytes from a slot
  // to the next. Null where only sizes are asked for.
  const Sequence* sequences = nullptr;
  size_t slot_bytes = 0;
  // Rows with an epilogue: where not null, to be told of every element of out[0] once, on the thread that wrote it, after that.
  const Epilogue* epilogue = nullptr;
};

// An element of an index operand that names no place: 0 ... limit - 1 do, and from the end -limit ... -1.
struct Stray {
  int operand;
  int64_t element, value, limit;
};

struct Kernel {
  std::string_view op;   // the name in spec/opset.toml
  std::string_view isa;  // "reference", "scalar", "avx2", "avx512", "neon", "cuda"
  // Reference rows only: null if the room takes these shapes, dtypes and attributes, else what it requires. An attribute
  // of the wrong type throws std::bad_variant_access. No data is read; Call::capacity is not 0 where the node has a state.
  const char* (*check)(const Call&) = nullptr;
  // Reference rows only, where operands name places: whether one of this call's names none, and the first that does not.
  // The runtime asks before it runs the operation; every row computes something defined all the same.
  bool (*stray)(const Call&, Stray&) = nullptr;
  int phases = 1;  // the runtime waits for all units of a phase before the next
  // Number of independent work units of a phase.
  int64_t (*units)(const Call&, int phase) = nullptr;
  // Computes units [begin, end) of a phase. Never allocates, locks or calls the system. scratch: at least
  // scratch_bytes(call), 64-byte aligned, private to the worker, contents undefined.
  void (*run)(const Call&, int phase, int64_t begin, int64_t end, void* scratch) = nullptr;
  size_t (*scratch_bytes)(const Call&) = nullptr;
  // Bytes of Call::shared, for results that one phase hands to the next.
  size_t (*shared_bytes)(const Call&) = nullptr;
  bool epilogue = false;        // run() heeds Call::epilogue, in any parts and any order
  bool light_epilogue = false;  // the same, but to call it often would not pay: only where it is light
  Light light = Light::none;
  // Rows of a CPU: that for a node whose operand 0, result or Epilogue::other, which is light, may have channels last, each as its
  // View::pitch says, but `other` wherever the result has. Null: there is none. `pitch`: such a result's; left at 0: it has channels
  // last where operand 0 has. `weights`: operand 1, a constant; else of rank 0. What check() asks need not hold.
  const Kernel* (*channels_last)(const View& weights, const Attrs&, int64_t& pitch) = nullptr;
  // Rows of a CPU whose element i of their only result depends, of every operand, on element i or on that which is broadcast to it:
  // computes a region of it. An operand as large as the result, in elements and bytes, may lie where the result lies.
  void (*region)(const Call&, const Region&) = nullptr;
  // Load-time packing of constant operand `i`: 0 = takes it row-major as it is.
  size_t (*pack_bytes)(const View& constant, int i, const Attrs&) = nullptr;
  void (*pack)(const View& constant, int i, const Attrs&, void* packed) = nullptr;
  // Bytes of a slot of `capacity` positions; operations without memory leave it null.
  size_t (*state_bytes)(const Call&, int64_t capacity) = nullptr;
  // Rows of a GPU ("cuda") have these two in the place of units, run and pack; the other functions are asked on the host, with
  // views of device memory. Both only queue work on the calling thread's device; they neither wait nor allocate. Packed operands,
  // *past_now, `sequences` and what earlier calls left in `state` may be read before the kernels queued ahead have ended
  // (kernels/cuda/launch.h): their writers are copies, or have been waited for.
  void (*enqueue)(const Call&, Stream) = nullptr;
  // Calls that do not depend on one another, at once. Null: one after another.
  void (*enqueue_all)(std::span<const Call* const>, Stream) = nullptr;
  void (*enqueue_pack)(const View& constant, int i, const Attrs&, void* packed, Stream) = nullptr;
  // Reference rows only: whether element i of the leading axis of every result depends, of the operands whose bit is set in
  // `carries` (their leading axes are as long as the results'), on element i of that axis alone, and is the same whatever else
  // stands there and however long it is. Null: never. The harness tries it.
  bool (*alone)(const Call&, uint64_t carries) = nullptr;
  // Rows of a CPU whose only result may lie in in[0] as it is: how many bytes behind its begin; below 0: it does not. Where the runtime
  // lets it lie there nothing is run.
  int64_t (*lies)(const Call&) = nullptr;
  // Rows of a GPU, beside enqueue_all: bytes of memory that these calls share, the Call::shared of each.
  size_t (*shared_bytes_all)(std::span<const Call* const>) = nullptr;
};

// The row of one operation in a cpu.cc that holds several: row_NAME_ISA.
#define INVAR_ROW_JOIN(op, isa) row_##op##_##isa
#define INVAR_ROW_OF_ISA(op, isa) INVAR_ROW_JOIN(op, isa)
#define INVAR_ROW_OF(op) INVAR_ROW_OF_ISA(op, INVAR_ISA_NS)

// All rows of this build (generated from spec/opset.toml), best instruction set first within an operation.
std::span<const Kernel* const> kernels();
inline constexpr std::string_view kCuda = "cuda";
// The row that runs `op`: the best this CPU supports, or exactly `isa` where one is named. Null: none. Whether a GPU is there
// for a "cuda" row is Device::open's to say.
const Kernel* find(std::string_view op, std::string_view isa = "");
// Instruction sets of this build that this CPU can run, best first, "reference" last.
std::span<const std::string_view> isas();

}  // namespace invar::ops
