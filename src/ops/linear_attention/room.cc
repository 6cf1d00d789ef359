// Geometry of linear attention, its work units, scratch and state sizes.
#include "ops/linear_attention/linear_attention.h"

namespace invar::ops::linear_attention {

Geometry geometry(const Call& call) {
  const View &q = call.in[0], &v = call.in[2], &decay = call.in[3];
  const GatedDeltaRuleAttributes a(call);
  Geometry g{};
  g.batch = q.dim[0], g.seq = q.dim[1];
  g.key_heads = a.key_heads, g.value_heads = a.value_heads;
  g.d = q.dim[2] / g.key_heads, g.dv = v.dim[2] / g.value_heads;
  g.decays = decay.dim[2] / g.value_heads;
  g.beta = call.in.size() > 4 ? &call.in[4] : nullptr;
  g.scale = a.scale;
  g.group = g.value_heads / g.key_heads;
  g.dv_padded = (g.dv + kColumns - 1) / kColumns * kColumns;
  return g;
}

int64_t units(const Call& call, int) {
  const Geometry g = geometry(call);
  return g.batch * g.value_heads;
}

size_t scratch_bytes(const Call& call) {
  return static_cast<size_t>(scratch_of(geometry(call)).all) * sizeof(float);
}

size_t state_bytes(const Call& call, int64_t) {
  const Geometry g = geometry(call);
  return static_cast<size_t>(g.value_heads * head_floats(g)) * sizeof(float);
}

}  // namespace invar::ops::linear_attention
