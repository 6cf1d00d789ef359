// The shape of a causal convolution and the layout of its state, shared by all rows.
#pragma once
#include "kernels/call.h"

namespace invar::ops::causal_conv {

constexpr int64_t kWidest = 8;  // causal_conv.1

struct Geometry {
  int64_t batch, seq, channels, width;
};
Geometry geometry(const Call&);

// The state of a sequence: position p of its last width inputs is row p % width of [width,
// channels]. One row more than later calls read, so that a call of one position does not overwrite
// what it reads.
size_t state_bytes(const Call&, int64_t capacity);
INVAR_INLINE float* state_row(const Call& call, const Geometry& g, int64_t slot, int64_t position) {
  return reinterpret_cast<float*>(static_cast<char*>(call.state) +
                                  slot * static_cast<int64_t>(call.slot_bytes)) +
         position % g.width * g.channels;
}
// Positions before this call of an element of the batch.
INVAR_INLINE int64_t past_of(const Call& call, int64_t batch) {
  return call.sequences ? call.sequences[batch].past : 0;
}

}  // namespace invar::ops::causal_conv
