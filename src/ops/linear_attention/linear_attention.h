// Sizes of linear attention and the layout of the state between steps, shared by all rows. The
// state of a head is S [D][Dv], then what the rows of the open chunk left: keys, a column of
// [D][64] each, updates u [64][Dv], and logarithms of decays in binary64, [64] or [D][64]. Rows of
// values are padded to vectors. No part grows with the number of positions.
#pragma once
#include "kernels/call.h"
#include "ops/linear_attention/attributes.h"

namespace invar::ops::linear_attention {

constexpr int64_t kChunkRows = 64;  // linear_attention.2
constexpr int64_t kColumns = 16;    // rows of values are padded to multiples of it

struct Geometry {
  int64_t batch, seq, key_heads, value_heads, d, dv;
  int64_t decays;    // per head and row: 1, or D
  const View* beta;  // null: no correction (linear_attention.5)
  float scale;
  int64_t group;      // value heads per key head
  int64_t dv_padded;  // floats of a row of u and of S
};
Geometry geometry(const Call&);

// The state of a head: floats, in the order of the members.
struct HeadState {
  float* s;       // [D][dv_padded]
  float* keys;    // [D][kChunkRows]
  float* u;       // [kChunkRows][dv_padded]
  double* decay;  // [decays][kChunkRows]
};
INVAR_INLINE constexpr int64_t head_floats(const Geometry& g) {
  return g.d * (g.dv_padded + kChunkRows) + kChunkRows * (g.dv_padded + 2 * g.decays);
}
// The state of a head in a slot, which begins at `slot`.
INVAR_INLINE HeadState head_state(const Geometry& g, std::byte* slot, int64_t head) {
  float* const s = reinterpret_cast<float*>(slot) + head * head_floats(g);
  float* const keys = s + g.d * g.dv_padded;
  float* const u = keys + g.d * kChunkRows;
  return {s, keys, u, reinterpret_cast<double*>(u + kChunkRows * g.dv_padded)};
}
INVAR_INLINE HeadState head_state(const Geometry& g, const Call& call, int64_t batch, int64_t head) {
  const int64_t slot = call.sequences[batch].slot;
  return head_state(g, static_cast<std::byte*>(call.state) + slot * static_cast<int64_t>(call.slot_bytes),
                    head);
}

int64_t units(const Call&, int phase);  // a head of a sequence each
size_t scratch_bytes(const Call&);      // of the lane kernels
size_t state_bytes(const Call&, int64_t capacity);

// The scratch of a lane kernel, in floats from its start.
struct Scratch {
  int64_t x_row, weight_row;                // strides of rows: they avoid L1 bank conflicts
  int64_t x, h, weights, keys, decay, all;  // rows of x, with products each; scaled keys; A
};
INVAR_INLINE Scratch scratch_of(const Geometry& g) {
  Scratch s{};
  s.x_row = (g.d + 15) / 16 * 16 + 16, s.weight_row = kChunkRows + 16;
  s.h = s.x + 2 * kChunkRows * s.x_row;
  s.weights = s.h + 2 * kChunkRows * g.dv_padded;
  s.keys = s.weights + 2 * kChunkRows * s.weight_row;
  s.decay = s.keys + g.d * s.weight_row;
  s.all = s.decay + (g.d > kChunkRows ? s.x_row : s.weight_row);
  return s;
}

}  // namespace invar::ops::linear_attention
