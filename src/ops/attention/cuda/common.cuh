// What the attention kernels share: parameters, the layout of the KV cache, masks, online softmax.
// The cache of a head consists of blocks of 128 absolute positions: keys [D][128], the positions of
// a block permuted (key_slot), and values [128][dv_padded]. The blocks of a sequence follow one
// another in its slot, or each is in a page (Call::pages), which a table in device memory finds.
#pragma once
#include "kernels/cuda/launch.h"
#include "num/contract/schedule.h"
#include "num/exp/exp.h"
#include "num/hyperbolic/hyperbolic.h"
#include "num/reduce/block_sum.cuh"
#include "ops/attention/visibility.h"

namespace invar::ops::INVAR_ISA_NS {

using attention::Geometry;

// The parameters of a call's kernels. The views in `g` are for the host only.
struct AttentionParams {
  Geometry g;
  const float *q, *k, *v, *sinks, *slopes, *float_mask;
  const uint8_t* bool_mask;
  int64_t mask_columns;
  const int64_t *lengths, *past;  // past: the most cached positions of any sequence
  const Sequence* sequences;
  float* y;
  std::byte* state;  // the cache: slots, or pages
  int64_t slot_bytes;
  std::byte* const* pages;  // null: slots
  int64_t slot_pages;
  float* queries_t;            // transposed, for tiles
  float *partials, *max_sums;  // of key blocks: unscaled results, and pairs m_b, l_b
};

namespace {

using attention::kBlock;
using attention::VisibleKeys;

constexpr float kInf = __builtin_inff();

// The order of the 128 keys of a block: key 16 i + t is in slot (i / 4) 64 + 4 t + i % 4. So thread
// t of 16 reads its keys t, 16 + t ... by two accesses of 16 bytes without bank conflicts, and the
// first strides of the block sum stay within a thread.
constexpr int kKeyThreads = 16;
INVAR_INLINE int key_slot(int key) {
  return key / 64 * 64 + key % kKeyThreads * 4 + key / kKeyThreads % 4;
}
INVAR_INLINE int key_of_slot(int slot) {
  return slot / 64 * 64 + slot % 4 * kKeyThreads + slot % 64 / 4;
}

// The parameters that every kernel has; none of what is kept in Call::shared.
inline AttentionParams attention_params(const Call& call, const Geometry& g) {
  AttentionParams s{};
  s.g = g;
  s.q = call.in[0].as<const float>(), s.k = call.in[1].as<const float>(), s.v = call.in[2].as<const float>();
  if (s.g.mask) {
    s.mask_columns = attention::mask_columns(s.g);
    if (s.g.mask->dtype == DType::f32)
      s.float_mask = s.g.mask->as<const float>();
    else
      s.bool_mask = s.g.mask->as<const uint8_t>();
  }
  if (s.g.sinks) s.sinks = s.g.sinks->as<const float>();
  if (s.g.slopes) s.slopes = s.g.slopes->as<const float>();
  if (s.g.lengths) s.lengths = s.g.lengths->as<const int64_t>();
  s.past = call.gpu.past_now, s.sequences = call.sequences;
  s.y = call.out[0].as<float>(), s.state = static_cast<std::byte*>(call.state);
  s.slot_bytes = static_cast<int64_t>(call.slot_bytes);
  s.pages = call.pages, s.slot_pages = call.slot_pages;
  return s;
}

// Finds the blocks of a sequence: the first one of a slot, from which the others follow; or the
// table of its pages, and where the block is in a page that begins at address 0.
struct SequenceBlocks {
  std::byte* const* pages;
  attention::BlockPlace first;
  __device__ SequenceBlocks(const AttentionParams& s, int64_t slot)
      : pages(s.pages ? s.pages + slot * s.slot_pages : nullptr),
        first{reinterpret_cast<float*>(s.state + (s.pages ? 0 : slot * s.slot_bytes)), 0,
              s.pages ? 1 : s.g.blocks} {}
};
// From what is in the first block to the same in block `block`. The caller knows that the sequence
// has it: the table says nothing of others. `bytes`: of a block in a slot.
template <class T>
__device__ __forceinline__ T* in_block(std::byte* const* pages, T* first, int64_t block, int64_t bytes) {
  const uintptr_t behind =
      pages ? reinterpret_cast<uintptr_t>(pages[block]) : static_cast<uintptr_t>(block * bytes);
  T* const at = reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(first) + behind);
  __builtin_assume(__isGlobal(at));  // which nothing tells of an address that is loaded
  return at;
}

// The cache of one key head of the batch.
struct HeadCache {
  int64_t past;             // positions that are cached
  std::byte* const* pages;  // of the sequence
  float *keys, *values;     // of the first block
};
__device__ inline HeadCache head_cache(const AttentionParams& s, int64_t head) {
  const Sequence sequence = s.sequences[head / s.g.kv_heads];
  const SequenceBlocks blocks(s, sequence.slot);
  return {sequence.past, blocks.pages, attention::keys(s.g, blocks.first, head % s.g.kv_heads),
          attention::values(s.g, blocks.first, head % s.g.kv_heads)};
}
__device__ inline float* key_block(const AttentionParams& s, const HeadCache& cache, int64_t block) {
  return in_block(cache.pages, cache.keys, block, s.g.d * kBlock * int64_t{sizeof(float)});
}
__device__ inline float* value_block(const AttentionParams& s, const HeadCache& cache, int64_t block) {
  return in_block(cache.pages, cache.values, block, s.g.dv_padded * kBlock * int64_t{sizeof(float)});
}

// A query row: a query of one head. A key head has seq * group rows.
struct QueryRow {
  int64_t batch, i, head;
};
INVAR_INLINE QueryRow query_row(const Geometry& g, int64_t head, int64_t row) {
  return {head / g.kv_heads, row / g.group, head % g.kv_heads * g.group + row % g.group};
}
INVAR_INLINE int64_t row_index(const Geometry& g, const QueryRow& r) {
  return attention::head_row(g, r.batch, r.i, r.head, g.seq, g.q_heads);
}

// The larger of two, or NaN if either is. Of zeros, either.
__device__ inline float max_nan(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
  return a;
#else
  return maximum(F{a}, F{b}).v;
#endif
}

// attention.16, out of line because few calls have a softcap.
__device__ __noinline__ float apply_softcap(float x, float cap) {
  const F by = div(set1(x), set1(cap));
  return mul(set1(cap), tanh(by)).v;
}
// What one row sees of a block: the keys [low, high), and those of [0, first) below high, less
// those that the mask hides; and what is added to its scores.
struct ScoreMask {
  int low, high, first;
  int64_t mask_offset;  // of the block's first key in the mask
  int64_t head;         // of the row
  float slope;          // of that head
  int64_t distance;     // of the block's first key from the query

  __device__ ScoreMask(const AttentionParams& s, const VisibleKeys& range, const QueryRow& r, int64_t past,
                       int64_t block)
      : low(clamp_to_block(range.low, block)),
        high(clamp_to_block(range.high, block)),
        first(clamp_to_block(range.first, block)),
        mask_offset(0),
        head(r.head),
        slope(0),
        distance(0) {
    if (s.g.mask) mask_offset = attention::mask_row(s.g, r.batch, r.head, r.i) + block * kBlock;
    if (s.slopes) {
      if (s.g.farthest < 0) slope = s.slopes[r.head];
      distance = block * kBlock - attention::query_position(s.g, s.lengths, past, r.batch, r.i);
    }
  }
  // attention.3 and attention.13
  __device__ bool in_range(int key) const { return key < high && (key >= low || key < first); }
  // attention.3, attention.13 to attention.16, attention.19: the score of a key of the block, and
  // whether it is visible.
  __device__ bool score(const AttentionParams& s, int64_t block, int key, F& x) const {
    if (s.g.softcap != 0) x = set1(apply_softcap(x.v, s.g.softcap));
    if (s.slopes)  // attention.19
      x = add(x, s.g.farthest < 0 ? canonicalize(mul(set1(slope), set1(static_cast<float>(distance + key))))
                                  : set1(s.slopes[attention::bias_at(s.g, head, distance + key)]));
    bool visible = in_range(key);
    if (s.g.mask && visible) {
      if (block * kBlock + key >= s.mask_columns) return false;
      if (s.bool_mask) return s.bool_mask[mask_offset + key] != 0;
      const float m = s.float_mask[mask_offset + key];
      visible = m != -kInf;
      x = add(x, set1(m));  // attention.14
    }
    return visible;
  }

 private:
  __device__ static int clamp_to_block(int64_t position, int64_t block) {
    const int64_t at = position - block * kBlock;
    return at < 0 ? 0 : at < kBlock ? static_cast<int>(at) : kBlock;
  }
};

// The factor f of attention.9 as one number. Positive: f multiplies what was folded before.
// Negative: -f multiplies the block. kEmptyBlock: the block has no visible key.
constexpr float kEmptyBlock = 2.0f;
__device__ inline float rescale_factor(F mb, F m) {
  if (mb.v == -kInf) return kEmptyBlock;
  const bool later = mb.v > m.v;
  const F f = exp_stored(later ? sub(m, mb) : sub(mb, m));
  return later ? f.v : -f.v;
}
__device__ inline F fold(float by, F before, F block) {
  const M later{bits(set1(by)).v >= 0};
  const F sum = fma(select(later, before, block), abs(set1(by)), select(later, block, before));
  return by == kEmptyBlock ? before : sum;
}
// The running maximum and sum of online softmax. join() folds a block in and returns the factor for
// its results.
struct OnlineSoftmax {
  F m = set1(-kInf), l = zero();
  __device__ float join(F mb, F lb) {
    const float by = rescale_factor(mb, m);
    l = fold(by, l, lb);
    m = set1(max_nan(m.v, mb.v));
    return by;
  }
};
// attention.10
__device__ inline F normalized(F o, F m, F l) {
  return m.v == -kInf ? zero() : canonicalize(div(o, l));
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
