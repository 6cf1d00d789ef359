#include "ops/attention/attention.h"

namespace invar::ops::attention {

Geometry geometry(const Call& call) {
  const View &q = call.in[0], &k = call.in[1], &v = call.in[2];
  Geometry g{};
  g.batch = q.dim[0], g.seq = q.dim[1];
  g.q_heads = attr_i(call, "q_heads", 1), g.kv_heads = attr_i(call, "kv_heads", 1);
  g.d = k.dim[2] / g.kv_heads, g.dv = v.dim[2] / g.kv_heads;
  g.causal = attr_i(call, "causal", 1) != 0;
  g.scale = attr_f(call, "scale", 1.0f);
  g.group = g.q_heads / g.kv_heads;
  g.dv_padded = (g.dv + 15) / 16 * 16;
  g.blocks = (call.capacity + kBlock - 1) / kBlock;
  g.rows = g.seq * g.group;
  g.groups = (g.rows + kRowGroup - 1) / kRowGroup;
  g.seen = (call.past + g.seq + kBlock - 1) / kBlock;
  g.split = g.seq == 1 && g.seen >= kSplitFrom;
  return g;
}

int64_t units(const Call& call, int phase) {
  Geometry g = geometry(call);
  const int64_t heads = g.batch * g.kv_heads;
  if (phase == 0) return heads * g.seq;
  if (phase == 1) return heads * (g.split ? g.seen : g.groups);
  return g.split ? heads : 0;
}

// Query rows, the scores of a tile, results, and two numbers a row.
size_t scratch_bytes(const Call& call) {
  Geometry g = geometry(call);
  return static_cast<size_t>(kRowGroup * (g.d + g.dv_padded + 2) + kTallest * kScoreRow) * sizeof(float) + 64;
}

size_t state_bytes(const Call& call, int64_t capacity) {
  Geometry g = geometry(call);
  const int64_t blocks = (capacity + kBlock - 1) / kBlock;
  const int64_t block = kBlock * (g.d + g.dv_padded) + g.group * (g.dv_padded + kPartHead);
  return static_cast<size_t>(g.batch * g.kv_heads * blocks * block) * sizeof(float);
}

}  // namespace invar::ops::attention
