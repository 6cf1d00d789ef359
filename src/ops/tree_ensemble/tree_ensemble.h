// The shape of a call of tree_ensemble, and a node as all rows read it.
#pragma once
#include "kernels/call.h"
#include "num/binary64.h"
#include "num/convert/convert.h"
#include "num/inline.h"
#include "ops/tree_ensemble/attributes.h"

namespace invar::ops {

// tree_ensemble.1
struct TreesShape {
  int64_t rows, features, nodes, trees, entries, targets;
};
TreesShape trees_shape(const Call&);
int64_t trees_units(const Call&, int phase);  // rows

enum class Aggregate : uint8_t { sum, average, min, max };

// A row of the operand `nodes`, and the outcomes of a comparison (tree_ensemble.2).
struct TreeNode {
  int32_t feature, outcomes, if_true, if_false;
};
inline constexpr int kTreeLess = 1, kTreeEqual = 2, kTreeGreater = 4, kTreeUnordered = 8;

template <class T>
INVAR_INLINE bool takes_true(int outcomes, T value, T threshold) {
  const int outcome = value < threshold    ? kTreeLess
                      : value == threshold ? kTreeEqual
                      : value > threshold  ? kTreeGreater
                                           : kTreeUnordered;
  return (outcomes & outcome) != 0;
}

// tree_ensemble.3: the leaf that a row reaches, or -1.
template <class T>
INVAR_INLINE int64_t leaf_of(const TreeNode* nodes, const T* thresholds, int64_t root, const T* x,
                             const TreesShape& s) {
  if (root < 0 || root >= s.nodes) return -1;
  for (int64_t at = root;;) {
    const TreeNode n = nodes[at];
    if (n.feature < 0 || n.feature >= s.features) return at;
    const int64_t step = takes_true<T>(n.outcomes, x[n.feature], thresholds[at]) ? n.if_true : n.if_false;
    if (step <= 0 || step >= s.nodes - at) return -1;
    at += step;
  }
}

// The store rule, of either type (formats.5, formats.12).
INVAR_INLINE float stored_score(float v) {
  return num::canonicalize(v);
}
INVAR_INLINE double stored_score(double v) {
  return num::canonicalize64(v);
}

// Packing of `nodes`: the head, the nodes, and per node its last two numbers, a leaf's entries. A
// packed branch has nodes in the place of steps, -1 where there is none; a leaf leads to itself.
struct PackedTrees {
  int32_t sound;         // every step of a branch leads to a node
  int32_t last_feature;  // of all branches; -1: there is none
  int32_t outcomes;      // common to all branches but for `unordered`; -1: they differ
  int32_t has_unordered;
};
struct PackedNode {
  int32_t feature, next[2];  // false, true
  int32_t outcomes_depth;    // the outcomes, and 16 times the longest path from here to a leaf
};
size_t trees_pack_bytes(const View& constant, int operand, const Attributes&);
void trees_pack(const View& constant, int operand, const Attributes&, void* packed);

}  // namespace invar::ops
