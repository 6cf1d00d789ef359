// Few rows of a key head (steps of decoding) are shared out by key blocks, whole ones where shared memory holds them, which a
// last kernel folds, or, where they are few too, a cluster of thread blocks; many rows go in tiles; heads too wide for one
// chain of a contraction row by row.
#include <bit>

#include "ops/attention/cuda/append.cuh"
#include "ops/attention/cuda/decode_blocks.cuh"
#include "ops/attention/cuda/decode_cluster.cuh"
#include "ops/attention/cuda/wide_heads.cuh"
#include "ops/attention/cuda/split_kv.cuh"
#include "ops/attention/cuda/prefill_tile.cuh"
#include "kernels/forced_route.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int64_t kFewRows = 16;
constexpr int kFewParts = 8;               // of a row: more rows are folded at once where few are asked for
constexpr int64_t kMostParts = 256 << 20;  // bytes of parts for which tiles are shared out

size_t state_bytes(const Call& call, int64_t capacity) {
  const Geometry g = attention::geometry(call);
  const int64_t blocks = ceil_div(capacity > g.keys ? capacity : g.keys, kBlock);
  return static_cast<size_t>(g.kv_heads * blocks * kBlock * (g.d + g.dv_padded)) * sizeof(float);
}

// Rows of a tile: as many as the device's shared memory holds.
constexpr int kTileRows = 64, kTileRowsSmall = 32;

// How a call is computed. Bits do not depend on it.
struct Plan {
  enum Way { automatic, split, tiles, small_tiles, shared_tiles, rows, near, far, count } way;
  int64_t columns, runs;          // of tiles: value columns of a thread block; see tile_kernel
  bool shared_out;                // by key blocks: fold_kernel joins the parts
  int64_t queries, parts, marks;  // floats of Call::shared
};
// f of the number of rows that a kernel takes at once.
template <class Fn>
auto with_run(int64_t rows, Fn f) {
  if (rows == 1) return f(std::integral_constant<int, 1>{});
  if (rows == 2) return f(std::integral_constant<int, 2>{});
  if (rows <= 4) return f(std::integral_constant<int, 4>{});
  return f(std::integral_constant<int, 8>{});
}
int64_t runs_of(const Geometry& g) {
  return with_run(g.rows, [&](auto r) { return g.batch * g.kv_heads * ceil_div(g.rows, r); });
}
template <bool kBoth>
size_t whole_bytes(const Geometry& g) {
  return with_run(g.rows, [&](auto r) { return static_cast<size_t>(Room<r, kBoth>(g).all) * sizeof(float); });
}
// Whether thread blocks can hold what WholeBlock keeps, and clusters of them all blocks that there are.
template <bool kBoth>
bool fits_whole(const Geometry& g) {
  return whole_bytes<kBoth>(g) + kFewRows * sizeof(PlacedRow) <=
         static_cast<size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
}
bool fits_near(const Geometry& g) {
  return starts_early() && g.seen <= kNearBlocks && fits_whole<true>(g);
}
Plan plan_of(const Geometry& g) {
  Plan p{static_cast<Plan::Way>(variant() % Plan::count), 0, 1, false, 0, 0, 0};
  if (g.d > num::kChain) p.way = Plan::rows;
  if (p.way == Plan::near && !fits_near(g)) p.way = Plan::far;
  if (p.way == Plan::far && !fits_whole<false>(g)) p.way = Plan::split;
  if (p.way == Plan::automatic)
    p.way = g.rows > kFewRows                                         ? Plan::tiles
            : runs_of(g) * g.seen <= 2 * processors() && fits_near(g) ? Plan::near
            : fits_whole<false>(g)                                    ? Plan::far
                                                                      : Plan::split;
  const int64_t heads = g.batch * g.kv_heads, parts = heads * g.rows * g.seen;
  p.shared_out = p.way == Plan::split || p.way == Plan::far;
  if (p.way == Plan::tiles || p.way == Plan::small_tiles || p.way == Plan::shared_tiles) {
    p.columns = g.dv > kBlock / 2 ? kBlock : kBlock / 2;
    p.queries = heads * ceil_div(g.rows, kTileRows) * kTileRows * g.d;
    // Two thread blocks to a processor, and two key blocks at least to each.
    const int64_t blocks = heads * ceil_div(g.rows, kTileRows) * ceil_div(g.dv, p.columns);
    int64_t runs = blocks ? num::min_i64(2 * processors() / blocks, g.seen / 2) : 1;
    if (runs > 1 && parts * (g.dv_padded + 2) * static_cast<int64_t>(sizeof(float)) > kMostParts) runs = 1;
    if (p.way == Plan::shared_tiles && runs < 2) runs = 2;
    p.shared_out = runs > 1;
    if (p.shared_out) p.runs = runs;
  }
  if (p.shared_out) p.parts = parts * g.dv_padded, p.marks = 2 * parts;
  return p;
}
size_t shared_bytes(const Call& call) {
  const Plan p = plan_of(attention::geometry(call));
  return static_cast<size_t>(p.queries + p.parts + p.marks) * sizeof(float);
}

Step step_of(const Call& call, const Geometry& g, const Plan& p) {
  Step s{};
  s.g = g;
  s.q = call.in[0].as<const float>(), s.k = call.in[1].as<const float>(), s.v = call.in[2].as<const float>();
  if (s.g.mask) {
    s.columns = attention::mask_columns(s.g);
    if (s.g.mask->dtype == DType::f32)
      s.added = s.g.mask->as<const float>();
    else
      s.shown = s.g.mask->as<const uint8_t>();
  }
  if (s.g.sinks) s.sinks = s.g.sinks->as<const float>();
  if (s.g.lengths) s.lengths = s.g.lengths->as<const int64_t>();
  s.past = call.past_now, s.sequences = call.sequences;
  s.y = call.out[0].as<float>(), s.state = static_cast<float*>(call.state);
  s.slot = static_cast<int64_t>(call.slot_bytes / sizeof(float));
  s.queries = static_cast<float*>(call.shared);
  s.parts = s.queries + p.queries, s.marks = s.parts + p.parts;
  return s;
}

dim3 grid(int64_t blocks, int64_t y = 1) {
  return dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(y));
}

template <int R>
void split(const Step& s, Stream stream) {
  const Geometry& g = s.g;
  const int64_t units = g.batch * g.kv_heads * ceil_div(g.rows, R) * g.seen;
  launch_early(split_kernel<R>, grid(num::min_i64(ceil_div(units, kSplitWarps), 4 * processors())),
               dim3(kSplitThreads), 0, stream, s);
}
template <int R>
void near(const Step& s, Stream stream) {
  const Geometry& g = s.g;
  const unsigned cluster = std::bit_ceil(static_cast<unsigned>(g.seen));
  launch_clusters(near_kernel<R>, cluster, grid(runs_of(g) * cluster), dim3(kWholeThreads),
                  whole_bytes<true>(g), stream, s);
}
template <int R>
void far(const Step& s, Stream stream) {
  const Geometry& g = s.g;
  const size_t bytes = whole_bytes<false>(g);
  const int64_t of_processor =
      device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) /
      static_cast<int64_t>(bytes + sizeof(PlacedRow) * R +
                           device_attribute(cudaDevAttrReservedSharedMemoryPerBlock));
  launch_early(far_kernel<R>, grid(num::min_i64(runs_of(g) * g.seen, of_processor * processors())),
               dim3(kWholeThreads), bytes, stream, s);
}
template <int kRows, int kColumns>
void tiles(const Step& s, int64_t runs, Stream stream) {
  const Geometry& g = s.g;
  using T = Tile<kRows, kColumns>;
  const int64_t heads = g.batch * g.kv_heads;
  const int count = static_cast<int>(ceil_div(g.rows, kRows));
  launch(turn_kernel<kRows>, grid(heads * count * ceil_div(g.d, kPiece)), dim3(kAppendThreads), 0, stream, s,
         count);
  launch(tile_kernel<kRows, kColumns>, grid(heads * count * runs, ceil_div(g.dv, kColumns)),
         dim3(T::kThreads), sizeof(typename T::Shared), stream, s, count, static_cast<int>(runs));
}

void enqueue(const Call& call, Stream stream) {
  const Geometry g = attention::geometry(call);
  const Plan p = plan_of(g);
  const Step s = step_of(call, g, p);
  const int64_t heads = g.batch * g.kv_heads;
  if (p.way != Plan::split && p.way != Plan::near && p.way != Plan::far) {
    const int64_t blocks = g.keys ? ceil_div(g.keys, kBlock) + 1 : 0;
    launch(append_kernel, grid(heads * blocks * (ceil_div(g.d, kPiece) + ceil_div(g.dv, kPiece))),
           dim3(kAppendThreads), 0, stream, s, static_cast<int>(blocks));
  }
  if (p.way == Plan::rows) {
    launch(row_kernel, grid(heads * g.rows), dim3(kRowThreads), 0, stream, s);
  } else if (p.way == Plan::split) {
    with_run(g.rows, [&](auto r) { split<r>(s, stream); });
  } else if (p.way == Plan::near) {
    with_run(g.rows, [&](auto r) { near<r>(s, stream); });
  } else if (p.way == Plan::far) {
    with_run(g.rows, [&](auto r) { far<r>(s, stream); });
  } else if (p.way == Plan::small_tiles || device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) <
                                               static_cast<int>(sizeof(Tile<kTileRows, kBlock>::Shared))) {
    tiles<kTileRowsSmall, kBlock>(s, p.runs, stream);
  } else {
    (p.columns == kBlock ? tiles<kTileRows, kBlock> : tiles<kTileRows, kBlock / 2>)(s, p.runs, stream);
  }
  if (p.shared_out) {
    const dim3 rows = grid(heads * g.rows), threads(kFoldThreads);
    if (g.seen <= kFewParts)
      launch_early(fold_kernel<kFewParts>, rows, threads, 0, stream, s);
    else
      launch_early(fold_kernel<2 * kWarp>, rows, threads, 0, stream, s);
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW;
const Kernel INVAR_ROW = {.op = "attention",
                          .isa = INVAR_ISA,
                          .shared_bytes = INVAR_ISA_NS::shared_bytes,
                          .state_bytes = INVAR_ISA_NS::state_bytes,
                          .enqueue = INVAR_ISA_NS::enqueue};

}  // namespace invar::ops
