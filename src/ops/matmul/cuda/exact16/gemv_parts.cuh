// How the kernels of few rows on Hopper share their work: blocks of weights, cut evenly over the
// multiprocessors. The parts of a tile meet as 64-bit integers (exact16.6).
#pragma once
#include "ops/matmul/cuda/exact16/select.h"
#include "ops/matmul/cuda/hopper_product.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

struct GemvTile {
  int column, row_block, chunk, end;  // column: of tiles; chunks of this block
};
__device__ inline GemvTile gemv_tile_at(const GemvWork& w, int unit, int last) {
  const int tile = unit / w.chunks, chunk = unit % w.chunks, rest = last - unit;
  return {tile / w.row_blocks, tile % w.row_blocks, chunk, rest < w.chunks - chunk ? chunk + rest : w.chunks};
}
// Calls f for every kStep-th unit of a block, from `from` on, before `to`.
template <int kStep, class Fn>
__device__ inline void for_gemv_units(const GemvWork& w, int from, int to, Fn f) {
  if (from >= to) return;
  GemvTile at = gemv_tile_at(w, from, to);
  for (int unit = from; unit < to; unit += kStep) {
    f(at);
    at.chunk += kStep;
    while (at.chunk >= w.chunks) {
      at.chunk -= w.chunks;
      if (++at.row_block == w.row_blocks) at.row_block = 0, ++at.column;
    }
  }
}
// Calls f(tile, unit) for the tiles and parts of tiles of this block.
template <class Fn>
__device__ inline void for_gemv_tiles(const GemvWork& w, Fn f) {
  const int last = w.first_unit(blockIdx.x + 1);
  for (int unit = w.first_unit(blockIdx.x); unit < last;) {
    const GemvTile tile = gemv_tile_at(w, unit, last);
    f(tile, unit);
    unit += tile.end - tile.chunk;
  }
}
// The tile of activations of a warpgroup; the last one twice gives results that are not stored.
__device__ inline int64_t gemv_row_tile(const GemvTile& at, int groups, int group, int64_t tiles) {
  const int64_t tile = int64_t{at.row_block} * groups + group;
  return tile < tiles ? tile : tiles - 1;
}

// Fills stages: weights(tile, stage, full), then rows(tile, stage, full). kProducers threads, each
// of a warp of its own, take turns; this one begins with stage `which`. Packed weights may be read
// before the grids ahead have ended: a ring of them, and prefetch(tile) brings w.units_ahead more
// into the L2 cache.
template <int kProducers = 1, class Weights, class Prefetch, class Rows>
__device__ inline void produce_gemv_units(const GemvWork& w, bool packed, Ring ring, Weights weights,
                                          Prefetch prefetch, Rows rows, int which = 0) {
  const int first = w.first_unit(blockIdx.x), last = w.first_unit(blockIdx.x + 1);
  const int stages = static_cast<int>(ring.stages);
  const int ahead = !packed ? 0 : last - first < stages ? last - first : stages;
  int stage = which;
  for_gemv_units<kProducers>(w, first + which, first + ahead, [&](const GemvTile& at) {
    weights(at, ring.memory + stage * ring.bytes, ring.full + stage * 8);
    stage += kProducers;
  });
  const int rest = packed ? last - first - ahead : 0;
  const int beyond = rest < w.units_ahead ? rest : w.units_ahead;
  for_gemv_units<kProducers>(w, first + ahead + which, first + ahead + beyond, prefetch);
  wait_for_previous_grid();
  stage = which, ring.skip(which);
  for_gemv_units<kProducers>(w, first + which, last, [&](const GemvTile& at) {
    const uint32_t to = ring.stage_now(), full = ring.full_now();
    wait_barrier(ring.empty_now(), ring.phase ^ 1);
    if (stage >= ahead) weights(at, to, full);
    rows(at, to, full);
    stage += kProducers, ring.skip(kProducers);
  });
}

// How many stages of `bytes` bytes a ring has, at most `most`.
constexpr int gemv_stages(int bytes, int most) {
  const int fit = (220 << 10) / bytes;
  return fit < most ? fit : most;
}

template <int kRows, int kGroups>
struct GemvParts {
  static constexpr int kSums = kRows / 2;  // of a thread

  // This block's sums of a tile that blocks `lead` to `end` share, and then, in the block that
  // finishes last, those of all: true. `memory` and `counters` are those of GemvWork.
  __device__ static bool join(int lead, int end, int64_t* memory, uint32_t* counters, int group,
                              int64_t (&sum)[kSums]) {
    __shared__ uint32_t finished_before[kGroups];
    const int t = threadIdx.x % kWarpgroup;
    auto part_of = [&](int of) {  // the lead's is its last tile, the others' their first
      const int slot = (of * 2 + (of == lead ? 1 : 0)) * kGroups + group;
      return reinterpret_cast<longlong2*>(memory + int64_t{slot} * kSums * kWarpgroup) + t;
    };
    longlong2* mine = part_of(blockIdx.x);
#pragma unroll
    for (int i = 0; i < kSums / 2; ++i) mine[i * kWarpgroup] = make_longlong2(sum[2 * i], sum[2 * i + 1]);
    __threadfence();
    sync_warpgroup(group);
    if (t == 0) finished_before[group] = atomicAdd(counters + lead * kGroups + group, 1u);
    sync_warpgroup(group);
    const bool last = finished_before[group] == static_cast<uint32_t>(end - lead);
    sync_warpgroup(group);
    if (!last) return false;
    __threadfence();
    for (int of = lead; of <= end; ++of) {
      if (of == static_cast<int>(blockIdx.x)) continue;
      const longlong2* part = part_of(of);
#pragma unroll
      for (int i = 0; i < kSums / 2; ++i) {
        const longlong2 two = __ldcg(part + i * kWarpgroup);
        sum[2 * i] += two.x, sum[2 * i + 1] += two.y;
      }
    }
    return true;
  }
  // Whether this block has all of a tile's sums, or is the one that joins them.
  __device__ static bool complete(const GemvWork& w, const GemvTile& tile, int unit, int group,
                                  int64_t (&sum)[kSums]) {
    if (tile.chunk == 0 && tile.end == w.chunks) return true;
    const int begin = unit - tile.chunk;
    return join(w.block_of(begin), w.block_of(begin + w.chunks - 1), w.sums, w.counters, group, sum);
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
