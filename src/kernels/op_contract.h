// A call of an operation, and the operation's promises about it. The types of the kernels that
// compute it are in cpu_kernel.h and gpu_kernel.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/attributes.h"
#include "base/dtype.h"

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
  // Nonzero only for kernels from CpuKernel::channels_last: the tensor [N, C, ...] is stored NHWC,
  // and `pitch` is the number of elements from one pixel to the next. The gap after the channels of
  // a pixel is never read or written.
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

struct Epilogue;
// The part of a call that only CPU kernels read.
struct CpuCall {
  // A kernel that accepts one reports, if it is not null, every element of out[0] to the epilogue
  // callback exactly once, on the thread that wrote it, after it wrote it.
  const Epilogue* epilogue = nullptr;
};
// The part of a call that only GPU kernels read. All pointers of their calls are device memory, and
// the queued work may be replayed in later steps. Call::past is then an upper bound over all
// replays; the running step's sequences are at Call::sequences and its largest past is *past_now.
// *fault is set if an element of an index operand is out of bounds.
struct GpuCall {
  const int64_t* past_now = nullptr;
  uint32_t* fault = nullptr;
};

// Positions whose keys and values are in one page of memory.
constexpr int64_t kPagePositions = 128;

struct Call {
  std::span<const View> in;
  std::span<const View> out;
  const Attributes* attrs;
  // Stateful operations (attention): slots of `capacity` positions in the kernel's own layout,
  // 64-byte aligned, initially undefined; see `sequences`. `past` is the largest number of
  // positions filled before this call in any slot. The call appends its new positions itself.
  void* state = nullptr;
  int64_t past = 0;
  int64_t capacity = 0;
  // The bytes that the kernel's shared_bytes asks for, 64-byte aligned, undefined at the start.
  void* shared = nullptr;
  GpuCall gpu = {};
  // Stateful operations: one entry per element of the leading axis (on a GPU, of the running step),
  // and the bytes from one slot to the next. Null if only sizes are asked for.
  const Sequence* sequences = nullptr;
  size_t slot_bytes = 0;
  // Null: there are none. Page p of a slot, with its positions from p * kPagePositions on, begins
  // at pages[slot * slot_pages + p]. `state` is then where the operation's memory, a slot of that
  // capacity, is in a page that begins at address 0. Pages that this call needs are there.
  std::byte* const* pages = nullptr;
  int64_t slot_pages = 0;
  CpuCall cpu = {};
};

// An element of an index operand that is out of bounds. Valid values are 0 ... limit - 1 and, from
// the end, -limit ... -1.
struct OutOfBounds {
  int operand;
  int64_t element, value, limit;
};

// The promises of an operation, whichever kernel runs it. A room's reference.cc defines one for
// each of its operations, contract_NAME.
struct OpContract {
  std::string_view op;  // the name in spec/opset.toml
  // Returns null if the room accepts these shapes, dtypes and attributes, else what it requires.
  // An attribute of the wrong type throws std::bad_variant_access. Reads no data. Call::capacity is
  // nonzero if the node has state.
  const char* (*check)(const Call&);
  // Operations with index operands: whether any index of this call is out of bounds, and the first
  // that is. The runtime asks before it runs the operation; every kernel still computes something
  // defined.
  bool (*find_out_of_bounds)(const Call&, OutOfBounds&) = nullptr;
  // Batch invariance: whether element i of the leading axis of every result depends, for each
  // operand whose bit is set in `batched` (their leading axes are as long as the results'), only on
  // element i of that axis, and is the same whatever the other elements are and however many there
  // are. Null: never. The conformance harness tests it.
  bool (*batch_independent)(const Call&, uint64_t batched) = nullptr;
  // Operations whose only result may be a view of in[0]: its byte offset in in[0], or a negative
  // number if it is not one. The runtime may alias the two and then runs nothing.
  int64_t (*alias_offset)(const Call&) = nullptr;
  // The operation remembers earlier calls in Call::state, and its kernels have state_bytes.
  bool stateful = false;
};

// The object that a room's file defines for one operation and instruction set: row_NAME_ISA.
#define INVAR_ROW_JOIN(op, isa) row_##op##_##isa
#define INVAR_ROW_OF_ISA(op, isa) INVAR_ROW_JOIN(op, isa)
#define INVAR_ROW_OF(op) INVAR_ROW_OF_ISA(op, INVAR_ISA_NS)

}  // namespace invar::ops
