// Geometry of attention calls and their work units, scratch and KV cache sizes on the CPU.
#include "num/contract/schedule.h"
#include "num/reduce/schedule.h"
#include "ops/attention/attention.h"

namespace invar::ops::attention {

Geometry geometry(const Call& call) {
  const View &q = call.in[0], &k = call.in[1], &v = call.in[2];
  Geometry g{};
  const AttentionAttributes a(call);
  g.heads_first = a.heads_first != 0;
  g.q_heads = a.q_heads, g.kv_heads = a.kv_heads;
  g.batch = q.dim[0], g.seq = q.dim[g.heads_first ? 2 : 1], g.keys = k.dim[g.heads_first ? 2 : 1];
  g.d = g.heads_first ? k.dim[3] : k.dim[2] / g.kv_heads,
  g.dv = g.heads_first ? v.dim[3] : v.dim[2] / g.kv_heads;
  g.causal = a.causal != 0;
  g.left = a.left, g.right = a.right, g.first = a.first;
  g.scale = a.scale, g.softcap = a.softcap;
  const View* more = call.in.data() + 3;
  if (a.mask) {
    g.mask = more++;
    int64_t step = g.mask->dim[g.mask->rank - 1];
    for (int back = 2; back <= g.mask->rank; ++back) {
      const int64_t size = g.mask->dim[g.mask->rank - back];
      g.mask_step[4 - back] = size == 1 ? 0 : step;
      step *= size;
    }
  }
  if (a.sinks) g.sinks = more++;
  if (a.lengths) g.lengths = more++;
  if (a.slopes) g.slopes = more++;
  g.farthest = g.slopes && g.slopes->rank == 2 ? g.slopes->dim[1] / 2 : -1;
  g.plain_scores = !g.mask && !g.slopes && g.softcap == 0;
  g.group = g.q_heads / g.kv_heads;
  g.dv_padded = (g.dv + 15) / 16 * 16;
  // A stateless call may have more keys than the session has positions.
  g.blocks = ((call.capacity > g.keys ? call.capacity : g.keys) + kBlock - 1) / kBlock;
  g.rows = g.seq * g.group;
  g.groups = (g.rows + kRowGroup - 1) / kRowGroup;
  g.seen = seen_blocks(g, call.past);
  g.split = g.seq == 1 && g.seen >= kSplitFrom;
  g.whole = !g.split && g.groups == 1;
  return g;
}

int64_t units(const Call& call, int phase) {
  Geometry g = geometry(call);
  const int64_t heads = g.batch * g.kv_heads;
  if (phase == 0) return g.whole ? 0 : heads * g.keys;
  if (phase == 2) return g.split ? heads : 0;
  if (!g.split) return heads * g.groups;
  if (!call.sequences) return heads * g.seen;
  int64_t blocks = 0;
  for (int64_t b = 0; b < g.batch; ++b) blocks += g.kv_heads * seen_blocks(g, call.sequences[b].past);
  return blocks;
}

// Query rows, the scores of a tile, results, and two floats per row.
size_t scratch_bytes(const Call& call) {
  Geometry g = geometry(call);
  return static_cast<size_t>(kRowGroup * (g.d + g.dv_padded + 2) + kTallest * kScoreRow) * sizeof(float) + 64;
}

size_t state_bytes(const Call& call, int64_t capacity) {
  Geometry g = geometry(call);
  const int64_t blocks = ((capacity > g.keys ? capacity : g.keys) + kBlock - 1) / kBlock;
  return static_cast<size_t>(g.kv_heads * blocks * kBlock * (g.d + g.dv_padded)) * sizeof(float);
}

size_t shared_bytes(const Call& call) {
  const Geometry g = geometry(call);
  if (!g.split) return 0;
  return static_cast<size_t>(g.batch * g.kv_heads * g.seen * g.group * (g.dv_padded + kPartHead)) *
         sizeof(float);
}

BackwardOperands backward_operands(const Call& call) {
  Call forward = call;
  forward.in = call.in.subspan(2);
  return {&call.in[0], &call.in[1], &call.in[2], &call.in[3], &call.in[4], geometry(forward)};
}

BackwardLayout::BackwardLayout(const Geometry& g)
    : d_padded(up_to(g.d, kKeyPanel)),
      rows_padded(up_to(g.rows, kKeyPanel)),
      keys_padded(up_to(g.keys, kKeyPanel)) {
  int64_t next = 0;
  const auto take = [&](int64_t floats) { return next += floats, next - floats; };
  q = take(rows_padded * d_padded), grad = take(rows_padded * g.dv_padded);
  k = take(keys_padded * d_padded), v = take(keys_padded * g.dv_padded);
  q_t = take(rows_padded * g.d), grad_t = take(rows_padded * g.dv);
  k_t = take(keys_padded * g.d), v_t = take(keys_padded * g.dv);
  top = take(rows_padded), total = take(rows_padded), mean = take(rows_padded), flags = take(kKeyPanel);
  all = next;
}

// Phases: packing, four operands of each key head; rows; keys.
int64_t backward_units(const Call& call, int phase) {
  const Geometry g = backward_operands(call).g;
  const int64_t heads = g.batch * g.kv_heads;
  if (phase == 0) return heads * 4;
  return heads * (up_to(phase == 1 ? g.rows : g.keys, kGradientRows) / kGradientRows);
}

// Scores, gradients of scores and bends of a tile of rows over all keys, or of a tile of keys over
// the rows of one chain, whose sums are kept, too.
size_t backward_scratch_bytes(const Call& call) {
  const Geometry g = backward_operands(call).g;
  const int64_t columns = up_to(g.keys > num::kChain ? g.keys : num::kChain, num::kRowLanes) + kKeyPanel;
  const int64_t kept = num::kSumsKept * (up_to(g.d, kKeyPanel) + g.dv_padded);
  return static_cast<size_t>(kTallest * (3 * columns + kept)) * sizeof(float) + 64;
}

size_t backward_shared_bytes(const Call& call) {
  const Geometry g = backward_operands(call).g;
  return static_cast<size_t>(g.batch * g.kv_heads * BackwardLayout(g).all) * sizeof(float);
}

}  // namespace invar::ops::attention
