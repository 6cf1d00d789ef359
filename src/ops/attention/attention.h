// Geometry of attention and the layout of the KV cache between steps, shared by all rows. Keys and
// values of each head are in blocks of 128 absolute positions. On a CPU blocks are split into
// panels of 16 columns: keys [128 / 16][D][16], so that scores are vectors over keys; values [Dv
// rounded up to 16, / 16][128][16]. For the GPU layout see cuda/common.cuh.
#pragma once
#include "kernels/call.h"
#include "ops/attention/attributes.h"

namespace invar::ops::attention {

constexpr int kBlock = 128;  // attention.4
constexpr int kKeyPanel = 16;
constexpr int64_t kRowGroup = 96;          // query rows of a unit: a multiple of every tile height
constexpr int64_t kSplitFrom = 4;          // KV blocks: a single query that sees this many is split by blocks
constexpr int64_t kTallest = 12;           // rows of a tile
constexpr int64_t kScoreRow = kBlock + 8;  // stride of rows of scores: avoids L1 bank conflicts
constexpr int64_t kPartHead = 16;          // floats before a partial result: m_b, l_b

struct Geometry {
  int64_t batch, seq, q_heads, kv_heads, d, dv;
  int64_t keys;  // new keys per sequence: T
  bool heads_first;
  bool causal;
  int64_t left, right, first;  // attention.13
  float scale, softcap;
  const View *mask, *sinks, *lengths, *slopes;  // null if absent
  int64_t farthest;      // of slopes that are a table of biases: the largest distance; -1: they are slopes
  int64_t mask_step[3];  // element strides of the mask by batch, head and query; 0 = broadcast
  bool plain_scores;     // scores are scaled products: no softcap, slopes or mask
  int64_t group;         // query heads per key head
  int64_t dv_padded;
  int64_t blocks;        // per slot
  int64_t seen;          // KV blocks of the longest sequence
  bool split;            // units are KV blocks, merged in a phase of their own
  int64_t rows, groups;  // (query, head of the group) pairs per key head, and runs of kRowGroup of them
  bool whole;            // a unit has all rows of a key head, and appends the head's keys itself
};
Geometry geometry(const Call&);

// Index, in rows of one head, of row i of a head: of q and y with their heads and S, of k and v
// with theirs and T.
INVAR_INLINE int64_t head_row(const Geometry& g, int64_t batch, int64_t i, int64_t head, int64_t rows,
                              int64_t heads) {
  return g.heads_first ? (batch * heads + head) * rows + i : (batch * rows + i) * heads + head;
}

int64_t units(const Call&, int phase);
size_t scratch_bytes(const Call&);
size_t state_bytes(const Call&, int64_t capacity);
size_t shared_bytes(const Call&);

// The gradients (attention.20 to attention.24). Row h * seq + i of a key head is query i of its
// h-th head.
constexpr int64_t kWidestGradient = 256;  // of D and Dv
constexpr int64_t kGradientRows = 48;     // rows, or keys, of a unit: a multiple of tile heights
struct BackwardOperands {
  const View *grad, *y, *q, *k, *v;
  Geometry g;  // of the forward call
};
BackwardOperands backward_operands(const Call&);
INVAR_INLINE int64_t gradient_row(const Geometry& g, int64_t head,
                                  int64_t row) {  // in heads, of q, y and grad
  return head_row(g, head / g.kv_heads, row % g.seq, head % g.kv_heads * g.group + row / g.seq, g.seq,
                  g.q_heads);
}
INVAR_INLINE int64_t gradient_key(const Geometry& g, int64_t head, int64_t key) {  // of k and v
  return head_row(g, head / g.kv_heads, key, head % g.kv_heads, g.keys, g.kv_heads);
}
INVAR_INLINE constexpr int64_t up_to(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}
// The CPU kernel keeps of each key head (Call::shared) operands packed for tiles, floats from
// the start of the head's memory. Panels are [16 columns][elements of a row][16].
struct BackwardLayout {
  int64_t q, grad, k, v;          // rows of d_padded or dv_padded elements
  int64_t q_t, grad_t, k_t, v_t;  // panels
  int64_t top, total, mean, flags, all;
  int64_t d_padded, rows_padded, keys_padded;
  explicit BackwardLayout(const Geometry&);
};
int64_t backward_units(const Call&, int phase);
size_t backward_scratch_bytes(const Call&);
size_t backward_shared_bytes(const Call&);

// The KV cache of a sequence: one memory of g.blocks blocks; or pages of one block, and where that
// is in a page that begins at address 0.
static_assert(kPagePositions == kBlock);
struct Slot {
  void* memory;
  std::byte* const* pages = nullptr;
};
// Finds a block: number `index` of `blocks` in `memory`.
struct BlockPlace {
  float* memory;
  int64_t index, blocks;
};
INVAR_INLINE BlockPlace place_of(const Geometry& g, const Slot& slot, int64_t block) {
  if (slot.pages)
    return {reinterpret_cast<float*>(slot.pages[block] + reinterpret_cast<uintptr_t>(slot.memory)), 0, 1};
  return {static_cast<float*>(slot.memory), block, g.blocks};
}

// The keys of a block of a head; the values follow all keys of its memory.
INVAR_INLINE float* keys(const Geometry& g, const BlockPlace& at, int64_t head) {
  return at.memory + (head * at.blocks + at.index) * g.d * kBlock;
}
INVAR_INLINE float* values(const Geometry& g, const BlockPlace& at, int64_t head) {
  const int64_t all_keys = g.kv_heads * at.blocks * g.d * kBlock;
  return at.memory + all_keys + (head * at.blocks + at.index) * g.dv_padded * kBlock;
}
INVAR_INLINE float* keys(const Geometry& g, const Slot& slot, int64_t head, int64_t block) {
  return keys(g, place_of(g, slot, block), head);
}
INVAR_INLINE float* values(const Geometry& g, const Slot& slot, int64_t head, int64_t block) {
  return values(g, place_of(g, slot, block), head);
}

// The partial result of KV block `block` for row `row` of a key head of the batch, in Call::shared:
// m_b, l_b and, after kPartHead floats, O_b. It is not in the block's own memory, which sequences
// may share.
INVAR_INLINE float* part(const Geometry& g, const Call& call, int64_t head, int64_t block, int64_t row) {
  return static_cast<float*>(call.shared) +
         ((head * g.seen + block) * g.group + row) * (g.dv_padded + kPartHead);
}

// The KV cache slot of a sequence of the batch, and the number of KV blocks of its `past` and new
// keys.
INVAR_INLINE Slot slot_of(const Call& call, int64_t batch) {
  const int64_t slot = call.sequences[batch].slot;
  if (call.pages) return {call.state, call.pages + slot * call.slot_pages};
  return {static_cast<char*>(call.state) + slot * static_cast<int64_t>(call.slot_bytes)};
}
INVAR_INLINE int64_t seen_blocks(const Geometry& g, int64_t past) {
  return (past + g.keys + kBlock - 1) / kBlock;
}

}  // namespace invar::ops::attention
