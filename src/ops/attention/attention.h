// What the CPU rows of attention share: geometry and the layout of the memory between steps.
// Keys and values of each head lie in blocks of 128 absolute positions: keys [D][128], so that scores are vectors
// over keys, values [128][Dv rounded up to 16].
#pragma once
#include "ops/call.h"

namespace invar::ops::attention {

constexpr int kBlock = 128;        // attention.4
constexpr int64_t kRowGroup = 24;  // query rows of a unit: a multiple of every tile height

struct Geometry {
  int64_t batch, seq, q_heads, kv_heads, d, dv;
  bool causal;
  float scale;
  int64_t group;  // query heads that share one key head
  int64_t dv_padded;
  int64_t blocks;        // of the memory
  int64_t rows, groups;  // (query, head of the group) pairs of one key head, and units of kRowGroup of them
};
Geometry geometry(const Call&);

int64_t units(const Call&, int phase);
size_t scratch_bytes(const Call&);
size_t state_bytes(const Call&, int64_t capacity);

// The keys of a block of a head; its values follow all keys of the memory.
INVAR_INLINE float* keys(const Geometry& g, const Call& call, int64_t head, int64_t block) {
  return static_cast<float*>(call.state) + (head * g.blocks + block) * g.d * kBlock;
}
INVAR_INLINE float* values(const Geometry& g, const Call& call, int64_t head, int64_t block) {
  int64_t all_keys = g.batch * g.kv_heads * g.blocks * g.d * kBlock;
  return static_cast<float*>(call.state) + all_keys + (head * g.blocks + block) * g.dv_padded * kBlock;
}

}  // namespace invar::ops::attention
