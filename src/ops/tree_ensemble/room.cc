// The shape, work units and packing of tree_ensemble.
#include "ops/tree_ensemble/tree_ensemble.h"

namespace invar::ops {

TreesShape trees_shape(const Call& call) {
  return {call.in[0].dim[0], call.in[0].dim[1], call.in[1].dim[0],
          call.in[3].dim[0], call.in[4].dim[0], call.in[6].dim[0]};
}

int64_t trees_units(const Call& call, int) {
  const TreesShape s = trees_shape(call);
  return s.targets ? s.rows : 0;
}

size_t trees_pack_bytes(const View& nodes, int operand, const Attributes&) {
  if (operand != 1) return 0;
  return sizeof(PackedTrees) + static_cast<size_t>(nodes.dim[0]) * (sizeof(PackedNode) + 2 * sizeof(int32_t));
}

// A longer path would not fit in a node.
constexpr int32_t kMostDepth = 1 << 26;

// Steps lead forward, so paths are known from the last node on.
void trees_pack(const View& constant, int, const Attributes&, void* packed) {
  const auto* from = constant.as<const TreeNode>();
  const int64_t count = constant.dim[0];
  auto* head = static_cast<PackedTrees*>(packed);
  auto* nodes = reinterpret_cast<PackedNode*>(head + 1);
  auto* entries = reinterpret_cast<int32_t*>(nodes + count);
  *head = {1, -1, -2, 0};
  for (int64_t i = count - 1; i >= 0; --i) {
    const TreeNode& n = from[i];
    entries[2 * i] = n.if_true, entries[2 * i + 1] = n.if_false;
    const auto self = static_cast<int32_t>(i);
    nodes[i] = {0, {self, self}, 0};
    if (n.feature < 0) continue;
    const int outcomes = n.outcomes & 15;
    int32_t depth = 0, next[2] = {-1, -1};
    const int32_t steps[2] = {n.if_false, n.if_true};
    for (int side = 0; side < 2; ++side) {
      if (steps[side] <= 0 || steps[side] >= count - i) {
        head->sound = 0;
        continue;
      }
      next[side] = self + steps[side];
      const int32_t below = nodes[next[side]].outcomes_depth >> 4;
      depth = below > depth ? below : depth;
    }
    if (depth < kMostDepth)
      ++depth;
    else
      head->sound = 0;
    nodes[i] = {n.feature, {next[0], next[1]}, outcomes | depth << 4};
    if (n.feature > head->last_feature) head->last_feature = n.feature;
    if (outcomes & kTreeUnordered) head->has_unordered = 1;
    const int ordered = outcomes & ~kTreeUnordered;
    head->outcomes = head->outcomes == -2 || head->outcomes == ordered ? ordered : -1;
  }
}

}  // namespace invar::ops
