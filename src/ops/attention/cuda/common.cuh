// What the kernels of attention on a GPU share: the operands, the layout of the memory between steps, scores, and the fold.
// Keys and values of each head lie in blocks of 128 absolute positions: keys [D][128], the positions of a block permuted
// (kRun), values [128][dv_padded].
#pragma once
#include "num/contract/schedule.h"
#include "num/exp/exp.h"
#include "num/hyperbolic/hyperbolic.h"
#include "num/reduce/block_sum.cuh"
#include "ops/attention/visibility.h"
#include "kernels/cuda/launch.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

using attention::Geometry;
using attention::kBlock;
using attention::Sight;

constexpr float kInf = __builtin_inff();

// A row of 128 keys in memory: key 16 i + t stands at (i / 4) 64 + 4 t + i % 4. So thread t of 16 reads its keys t, 16 + t ...
// by two accesses of 16 bytes without a conflict of banks, and the block sum's first strides stay in a thread.
constexpr int kRun = 16;
INVAR_INLINE int place_of_key(int key) {
  return key / 64 * 64 + key % kRun * 4 + key / kRun % 4;
}
INVAR_INLINE int key_at(int place) {
  return place / 64 * 64 + place % 4 * kRun + place % 64 / 4;
}

// One call, as its kernels see it; the views of `g` are the host's.
struct Step {
  Geometry g;
  const float *q, *k, *v, *sinks, *added;  // added: a mask of f32
  const uint8_t* shown;                    // a mask of bool
  int64_t columns;                         // of the mask
  const int64_t *lengths, *past;           // past: the most that any sequence finds filled
  const Sequence* sequences;
  float *y, *state;
  int64_t slot;          // floats of one
  float* queries;        // turned, of tiles
  float *parts, *marks;  // of blocks: results, and pairs m_b, l_b
};

// Of a key head of the batch, what its sequence finds filled, and the keys and values of its blocks.
struct Memory {
  int64_t past;
  float *keys, *values;  // of the first block
};
__device__ inline Memory memory_of(const Step& s, int64_t head) {
  const Sequence sequence = s.sequences[head / s.g.kv_heads];
  float* const slot = s.state + sequence.slot * s.slot;
  return {sequence.past, attention::keys(s.g, slot, head % s.g.kv_heads, 0),
          attention::values(s.g, slot, head % s.g.kv_heads, 0)};
}
__device__ inline float* keys_of(const Step& s, const Memory& m, int64_t block) {
  return m.keys + block * s.g.d * kBlock;
}
__device__ inline float* values_of(const Step& s, const Memory& m, int64_t block) {
  return m.values + block * s.g.dv_padded * kBlock;
}

// Row `row` of a key head: its query and its head.
struct Row {
  int64_t batch, i, head;
};
INVAR_INLINE Row row_of(const Geometry& g, int64_t head, int64_t row) {
  return {head / g.kv_heads, row / g.group, head % g.kv_heads * g.group + row % g.group};
}
INVAR_INLINE int64_t place(const Geometry& g, const Row& r) {
  return attention::head_row(g, r.batch, r.i, r.head, g.seq, g.q_heads);
}

// The larger of two; NaN if either is. Of zeros, either.
__device__ inline float most(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
  return a;
#else
  return maximum(F{a}, F{b}).v;
#endif
}

// attention.16; not part of every loop over scores.
__device__ __noinline__ float bent(float x, float cap) {
  const F by = div(set1(x), set1(cap));
  return mul(set1(cap), tanh(by)).v;
}
// What one row sees of a block: the keys [low, high), and those of [0, first) that are below high, less what the mask hides.
struct Scores {
  int low, high, first;
  int64_t mask;  // where the block begins in the mask

  __device__ Scores(const Step& s, const Sight& sight, const Row& r, int64_t block)
      : low(within(sight.low, block)),
        high(within(sight.high, block)),
        first(within(sight.first, block)),
        mask(0) {
    if (s.g.mask) mask = attention::mask_row(s.g, r.batch, r.head, r.i) + block * kBlock;
  }
  // attention.3, attention.13 to attention.16: the score of a key of the block, and whether it is seen.
  __device__ bool score(const Step& s, int64_t block, int key, F& x) const {
    if (s.g.softcap != 0) x = set1(bent(x.v, s.g.softcap));
    bool seen = key < high && (key >= low || key < first);
    if (s.g.mask && seen) {
      if (block * kBlock + key >= s.columns) return false;
      if (s.shown) return s.shown[mask + key] != 0;
      const float m = s.added[mask + key];
      seen = m != -kInf;
      x = add(x, set1(m));
    }
    return seen;
  }

 private:
  __device__ static int within(int64_t position, int64_t block) {
    const int64_t at = position - block * kBlock;
    return at < 0 ? 0 : at < kBlock ? static_cast<int>(at) : kBlock;
  }
};

// attention.9, as one number: f with the sign of the side that it multiplies (positive: what was folded before), or kNothing.
constexpr float kNothing = 2.0f;
__device__ inline float factor(F mb, F m) {
  if (mb.v == -kInf) return kNothing;
  const bool later = mb.v > m.v;
  const F f = exp_stored(later ? sub(m, mb) : sub(mb, m));
  return later ? f.v : -f.v;
}
__device__ inline F fold(float by, F before, F block) {
  const M later{bits(set1(by)).v >= 0};
  const F sum = fma(select(later, before, block), abs(set1(by)), select(later, block, before));
  return by == kNothing ? before : sum;
}
// Maximum and sum of what was folded; join() returns the factor of its results.
struct Folded {
  F m = set1(-kInf), l = zero();
  __device__ float join(F mb, F lb) {
    const float by = factor(mb, m);
    l = fold(by, l, lb);
    m = set1(most(m.v, mb.v));
    return by;
  }
};
// attention.10
__device__ inline F result(F o, F m, F l) {
  return m.v == -kInf ? zero() : canon(div(o, l));
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
