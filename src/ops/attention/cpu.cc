// CPU attention. Rows are the queries of all heads that share one key head. Scores are tiles of
// rows x keys, results tiles of rows x value columns. Keys that all rows of a tile see are
// processed together, other keys row by row, because a hidden key is left out (attention.18). A
// single query over a long KV cache is split by KV blocks (split-KV, as FlashDecoding), whose
// partial results are merged in a last phase.
#include "kernels/cpu/gemm_packing.h"
#include "num/contract/lanes.h"
#include "num/reduce/lanes.h"
#include "ops/attention/cpu/backward.h"
#include "ops/attention/cpu/extension_rows.h"
#include "ops/attention/cpu/key_blocks.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

static_assert(kRowGroup % kMaxRows == 0 && kMaxRows <= attention::kTallest);

// Scratch of a unit: per row the query, the accumulated result, maximum and sum; scores, then
// weights, of a tile.
struct FloatScratch {
  float *o, *m, *l, *p, *q;
  FloatScratch(const Geometry& g, void* scratch)
      : o(static_cast<float*>(scratch)),
        m(o + kRowGroup * g.dv_padded),
        l(m + kRowGroup),
        p(l + kRowGroup),
        q(p + attention::kTallest * kScoreRow) {}
};

// Appends new keys and values to the KV cache (attention.2).
void append(const Geometry& g, const Call& call, int64_t begin, int64_t end) {
  const int64_t next_row = g.heads_first ? 1 : g.kv_heads;
  for (int64_t unit = begin; unit < end;) {
    int64_t head = unit / g.keys, i = unit % g.keys, batch = head / g.kv_heads,
            position = call.sequences[batch].past + i, slot = position % kBlock;
    // A whole panel is transposed at once if this worker has all its positions.
    int64_t left = num::min_i64(end - unit, g.keys - i),
            count = slot % kKeyPanel == 0 && left >= kKeyPanel ? kKeyPanel : 1;
    const int64_t row = attention::head_row(g, batch, i, head % g.kv_heads, g.keys, g.kv_heads);
    const float* k = call.in[1].as<const float>() + row * g.d;
    const float* v = call.in[2].as<const float>() + row * g.dv;
    const attention::Slot memory = attention::slot_of(call, batch);
    float* keys = attention::keys(g, memory, head % g.kv_heads, position / kBlock) +
                  slot / kKeyPanel * kKeyPanel * g.d + slot % kKeyPanel;
    float* values = attention::values(g, memory, head % g.kv_heads, position / kBlock) + slot * kKeyPanel;
    if (count == kKeyPanel)
      pack_transposed<PackWidened<F32>>(k, next_row * g.d, g.d, kKeyPanel, keys, kKeyPanel);
    else
      for (int64_t j = 0; j < g.d; ++j) keys[j * kKeyPanel] = k[j];
    for (int64_t n = 0; n < count; ++n) {
      const float* from = v + n * next_row * g.dv;
      for (int64_t j = 0; j < g.dv_padded; j += kW)
        store(values + j / kKeyPanel * kKeyPanel * kBlock + n * kKeyPanel + j % kKeyPanel,
              j + kW <= g.dv ? load(from + j) : load_n(from + (j < g.dv ? j : 0), valid_lanes(g.dv - j)));
    }
    unit += count;
  }
}

// Scores of MR rows against keys [begin, end) of a block, and a few more (attention.3).
template <int MR>
void scores(const Geometry& g, const float* q, const float* keys, int begin, int end, float* s) {
  constexpr int NV = tile_vectors(MR, 128 / kW);
  for (int v = begin / (NV * kW) * NV; v * kW < end; v += NV) {
    PanelsOfB<F32, kVectorsPerKeyPanel> b{
        keys + v / kVectorsPerKeyPanel * kKeyPanel * g.d + v % kVectorsPerKeyPanel * kW, kKeyPanel,
        kKeyPanel * g.d};
    F y[MR * NV];
    num::INVAR_ISA_NS::contract(
        g.d,
        [&](int64_t from, int64_t to, F(&c)[MR * NV])
            __attribute__((always_inline)) { microkernel<MR, NV>(q, g.d, b, from, to, c); },
        y);
    for (int i = 0; i < MR * NV; ++i)
      store(s + i / NV * kScoreRow + (v + i % NV) * kW, mul(y[i], set1(g.scale)));
  }
}

// Scores of n visible keys -> softmax weights, their maximum and sum (attention.5 - 7). Prefetches
// n lines from `ahead` on, if not null.
INVAR_INLINE void softmax_block(float* s, int n, const float* ahead, float& mb, float& lb) {
  mb = block_max(s, n);
  if (mb == -kInf) return;
  strip(
      s, n, [&](int64_t i, int) __attribute__((always_inline)) {
        for (int64_t line = i; ahead && line < i + kW; ++line) __builtin_prefetch(ahead + line * kKeyPanel);
        return num::INVAR_ISA_NS::exp(
            sub(load(s + i), set1(mb)));  // attention.6; what is beyond n is dropped
      });
  lb = num::INVAR_ISA_NS::block_sum(s, n);
}

// Results of a tile of rows with weights p (attention.8); row i sees keys seen[i] of the block.
// Each vector goes to put(row, column, O_b).
template <int MR, int NV, class Put>
INVAR_INLINE void result_columns(const float* p, const KeyMask* seen, const float* values, int64_t column,
                                 Put put) {
  F ob[MR * NV];
  for (F& x : ob) x = zero();
  KeyMask all = seen[0];
  for (int i = 1; i < MR; ++i) all = all & seen[i];
  PanelsOfB<F32, kVectorsPerKeyPanel> b{values + column / kKeyPanel * kKeyPanel * kBlock + column % kKeyPanel,
                                        kKeyPanel, kKeyPanel * kBlock};
  for (int at = 0; at < kBlock;) {
    const int from = attention::next(all, at), to = attention::next(~all, from);
    for (int i = 0; from > at && MR > 1 && i < MR; ++i) {
      F row[NV];
      for (int v = 0; v < NV; ++v) row[v] = ob[i * NV + v];
      attention::each_run(
          seen[i], at, from, [&](int begin, int end) __attribute__((always_inline)) {
            microkernel_accumulate<1, NV>(p + i * kScoreRow, kScoreRow, b, begin, end, row);
          });
      for (int v = 0; v < NV; ++v) ob[i * NV + v] = row[v];
    }
    microkernel_accumulate<MR, NV>(p, kScoreRow, b, from, to, ob);
    at = to;
  }
  for (int i = 0; i < MR * NV; ++i) put(i / NV, column + i % NV * kW, ob[i]);
}
template <int MR, class Put>
void results(const Geometry& g, const float* p, const KeyMask* seen, const float* values, Put put) {
  constexpr int NV = tile_vectors(MR, 8), kNarrow = tile_vectors(MR, kVectorsPerKeyPanel);
  int64_t column = 0;
  for (; column + NV * kW <= g.dv_padded; column += NV * kW)
    result_columns<MR, NV>(p, seen, values, column, put);
  for (; column < g.dv_padded; column += kNarrow * kW)
    result_columns<MR, kNarrow>(p, seen, values, column, put);
}

// The arithmetic of attention.3 and attention.5 to attention.8 (cpu/key_blocks.h).
struct FloatArithmetic {
  using Scratch = FloatScratch;
  static constexpr int kTileRows = kMaxRows;
  static void append(const Geometry& g, const Call& call, int64_t begin, int64_t end) {
    INVAR_ISA_NS::append(g, call, begin, end);
  }
  static void load_query(const Geometry& g, const float* q, const Scratch& w, int64_t r) {
    for (int64_t i = 0; i < g.d; ++i) w.q[r * g.d + i] = q[i];
  }
  // One KV block for rows [row, row + count) of a key head, the first of which is query r of the
  // scratch: maxima and sums -> folded, results -> put. Nothing is called if no row sees any key of
  // the block.
  template <class Folded, class Put>
  INVAR_INLINE void block_rows(const Geometry& g, const Call& call, const Scratch& w, int64_t head,
                               int64_t block, int64_t row, int64_t r, int count, Folded folded, Put put) {
    KeyMask seen[kMaxRows];
    AddedTerms added[kMaxRows];
    const KeyMask any = rows_see(g, call, head, block, row, count, seen, added);
    const int most = attention::end_of(any);
    if (most == 0) return;
    const attention::Slot memory = attention::slot_of(call, head / g.kv_heads);
    const float* const values = attention::values(g, memory, head % g.kv_heads, block);
    dispatch_tile_rows(count, [&](auto mr) {
      scores<decltype(mr)::value>(g, w.q + r * g.d, attention::keys(g, memory, head % g.kv_heads, block),
                                  attention::next(any, 0), most, w.p);
    });
    for (int i = 0; i < count; ++i) {  // outside of the tiles: compiled once
      float *s = w.p + i * kScoreRow, mb, lb = 0;
      const int n = attention::end_of(seen[i]);
      finish_scores(g, block, seen[i], added[i], s, n);
      // Each row prefetches one panel of values; with many rows the block's values arrive soon.
      softmax_block(s, n, i * kKeyPanel < g.dv_padded ? values + i * kKeyPanel * kBlock : nullptr, mb, lb);
      folded(i, mb, lb);
    }
    dispatch_tile_rows(count, [&](auto mr) { results<decltype(mr)::value>(g, w.p, seen, values, put); });
  }
};

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW_OF(attention), INVAR_ROW_OF(attention_backward);
const CpuKernel INVAR_ROW_OF(attention) = {.op = "attention",
                                           .isa = INVAR_ISA,
                                           .phases = 3,
                                           .units = attention::units,
                                           .run = INVAR_ISA_NS::run_attention<INVAR_ISA_NS::FloatArithmetic>,
                                           .scratch_bytes = attention::scratch_bytes,
                                           .shared_bytes = attention::shared_bytes,
                                           .state_bytes = attention::state_bytes};

const CpuKernel INVAR_ROW_OF(attention_backward) = {.op = "attention_backward",
                                                    .isa = INVAR_ISA,
                                                    .phases = 3,
                                                    .units = attention::backward_units,
                                                    .run = INVAR_ISA_NS::run_backward,
                                                    .scratch_bytes = attention::backward_scratch_bytes,
                                                    .shared_bytes = attention::backward_shared_bytes};

}  // namespace invar::ops
