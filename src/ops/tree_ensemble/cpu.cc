// CPU tree_ensemble: trees go over a block of rows while their nodes are in cache. Eight paths at a
// time, of eight rows or of eight trees, go down together, so that their loads overlap. A path that
// is at its leaf stays there.
#include "kernels/cpu/vector_io.h"
#include "ops/tree_ensemble/tree_ensemble.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int64_t kTreeRows = 64;
constexpr int kPaths = 8, kStepsAtOnce = 8;

template <class T>
struct Trees {
  TreesShape s;
  const T* x;
  const TreeNode* plain;    // null if packed
  const PackedNode* nodes;  // null if not
  const int32_t* packed_entries;
  const T* thresholds;
  const int32_t *roots, *targets;
  const T *weights, *base;
  Aggregate aggregate;
  T* out;
  uint8_t* any;  // per row of a block and target, for minimum and maximum
  PackedTrees head;
};

template <class T>
INVAR_INLINE Trees<T> trees_of(const Call& call, void* scratch) {
  Trees<T> t = {};
  t.s = trees_shape(call);
  t.x = call.in[0].as<const T>();
  if (call.in[1].packed) {
    const auto* head = call.in[1].as<const PackedTrees>();
    t.head = *head;
    t.nodes = reinterpret_cast<const PackedNode*>(head + 1);
    t.packed_entries = reinterpret_cast<const int32_t*>(t.nodes + t.s.nodes);
  } else {
    t.plain = call.in[1].as<const TreeNode>();
  }
  t.thresholds = call.in[2].as<const T>();
  t.roots = call.in[3].as<const int32_t>(), t.targets = call.in[4].as<const int32_t>();
  t.weights = call.in[5].as<const T>(), t.base = call.in[6].as<const T>();
  t.aggregate = static_cast<Aggregate>(TreeEnsembleAttributes(call).aggregate);
  t.out = call.out[0].as<T>();
  t.any = static_cast<uint8_t*>(scratch);
  return t;
}

// Adds what a leaf says to the row `out`.
template <class T>
INVAR_INLINE void collect(const Trees<T>& t, int64_t leaf, T* out, uint8_t* any) {
  if (leaf < 0) return;
  const int32_t* entries = t.plain ? &t.plain[leaf].if_true : t.packed_entries + 2 * leaf;
  const int64_t first = entries[0] < 0 ? 0 : entries[0];
  const int64_t end = entries[1] > t.s.entries ? t.s.entries : entries[1];
  for (int64_t i = first; i < end; ++i) {
    const int64_t target = t.targets[i];
    if (target < 0 || target >= t.s.targets) continue;
    const T w = t.weights[i];
    if (t.aggregate == Aggregate::sum || t.aggregate == Aggregate::average) {
      out[target] = out[target] + w;  // tree_ensemble.4
      continue;
    }
    const bool better = t.aggregate == Aggregate::min ? w < out[target] : w > out[target];
    if (!any[target] || better) out[target] = w;
    any[target] = 1;
  }
}

// A packed ensemble that some row may leave without a leaf.
template <class T>
INVAR_INTERNAL int64_t packed_leaf_of(const Trees<T>& t, int64_t root, const T* x) {
  if (root < 0 || root >= t.s.nodes) return -1;
  for (int64_t at = root; at >= 0;) {
    const PackedNode& n = t.nodes[at];
    if (!(n.outcomes_depth >> 4) || n.feature >= t.s.features) return at;
    at = n.next[takes_true<T>(n.outcomes_depth, x[n.feature], t.thresholds[at])];
  }
  return -1;
}

template <class T>
INVAR_INTERNAL void collect_plainly(const Trees<T>& t, int64_t row, T* out, uint8_t* any) {
  const T* x = t.x + row * t.s.features;
  for (int64_t i = 0; i < t.s.trees; ++i)
    collect(t,
            t.plain ? leaf_of(t.plain, t.thresholds, t.roots[i], x, t.s) : packed_leaf_of(t, t.roots[i], x),
            out, any);
}

// kOrdered: the outcomes of every branch but `unordered`; -1: the node says them.
template <class T, int kOrdered, bool kUnordered>
INVAR_INLINE int32_t next_of(const PackedNode& n, T v, T threshold) {
  if constexpr (kOrdered < 0) {
    return n.next[takes_true<T>(n.outcomes_depth, v, threshold)];
  } else {
    bool taken = (kOrdered & kTreeLess) && (kOrdered & kTreeEqual) ? v <= threshold : v < threshold;
    if constexpr (kUnordered)
      taken |= ((n.outcomes_depth & kTreeUnordered) != 0) & ((v != v) | (threshold != threshold));
    return n.next[taken];
  }
}

// Eight paths from at[] to their leaves, of at most `steps` steps.
template <class T, int kOrdered, bool kUnordered>
INVAR_INLINE void descend(const Trees<T>& t, const T* const* x, int32_t* at, int32_t steps) {
  for (; steps > 0; steps -= kStepsAtOnce) {
    for (int step = 0; step < kStepsAtOnce && step < steps; ++step)
#pragma GCC unroll 8
      for (int p = 0; p < kPaths; ++p) {
        const PackedNode& n = t.nodes[at[p]];
        at[p] = next_of<T, kOrdered, kUnordered>(n, x[p][n.feature], t.thresholds[at[p]]);
      }
    int32_t left = 0;
    for (int p = 0; p < kPaths; ++p) left |= t.nodes[at[p]].outcomes_depth >> 4;
    if (!left) return;
  }
}

template <class T>
INVAR_INLINE int32_t depth_of(const Trees<T>& t, int32_t root) {
  return t.nodes[root].outcomes_depth >> 4;
}

// Rows [row, row + rows), at most kTreeRows.
template <class T, int kOrdered, bool kUnordered>
INVAR_INTERNAL void collect_block(const Trees<T>& t, int64_t row, int64_t rows) {
  const T* x[kPaths];
  int32_t at[kPaths];
  const int64_t whole = rows - rows % kPaths;
  for (int64_t i = 0; i < t.s.trees && whole; ++i) {
    const int32_t root = t.roots[i], depth = depth_of(t, root);
    for (int64_t r = 0; r < whole; r += kPaths) {
      for (int p = 0; p < kPaths; ++p) x[p] = t.x + (row + r + p) * t.s.features, at[p] = root;
      descend<T, kOrdered, kUnordered>(t, x, at, depth);
      for (int p = 0; p < kPaths; ++p)
        collect(t, at[p], t.out + (row + r + p) * t.s.targets, t.any + (r + p) * t.s.targets);
    }
  }
  for (int64_t r = whole; r < rows; ++r)
    for (int64_t i = 0; i < t.s.trees; i += kPaths) {
      const int paths = t.s.trees - i < kPaths ? static_cast<int>(t.s.trees - i) : kPaths;
      int32_t depth = 0;
      for (int p = 0; p < kPaths; ++p) {
        x[p] = t.x + (row + r) * t.s.features, at[p] = t.roots[p < paths ? i + p : i];
        if (const int32_t d = depth_of(t, at[p]); d > depth) depth = d;
      }
      descend<T, kOrdered, kUnordered>(t, x, at, depth);
      for (int p = 0; p < paths; ++p)
        collect(t, at[p], t.out + (row + r) * t.s.targets, t.any + r * t.s.targets);
    }
}

template <class T>
INVAR_INTERNAL void evaluate(const Call& call, int64_t begin, int64_t end, void* scratch) {
  const Trees<T> t = trees_of<T>(call, scratch);
  bool fast = t.nodes && t.head.sound && t.head.last_feature < t.s.features && t.s.features > 0;
  for (int64_t i = 0; i < t.s.trees && fast; ++i) fast = t.roots[i] >= 0 && t.roots[i] < t.s.nodes;
  const bool flags = t.aggregate == Aggregate::min || t.aggregate == Aggregate::max;
  for (int64_t row = begin; row < end; row += kTreeRows) {
    const int64_t rows = end - row < kTreeRows ? end - row : kTreeRows;
    T* out = t.out + row * t.s.targets;
    for (int64_t i = 0; i < rows * t.s.targets; ++i) out[i] = 0;
    for (int64_t i = 0; flags && i < rows * t.s.targets; ++i) t.any[i] = 0;
    if (!fast)
      for (int64_t r = 0; r < rows; ++r)
        collect_plainly(t, row + r, out + r * t.s.targets, t.any + r * t.s.targets);
    else if (t.head.outcomes == (kTreeLess | kTreeEqual))
      t.head.has_unordered ? collect_block<T, 3, true>(t, row, rows)
                           : collect_block<T, 3, false>(t, row, rows);
    else if (t.head.outcomes == kTreeLess)
      t.head.has_unordered ? collect_block<T, 1, true>(t, row, rows)
                           : collect_block<T, 1, false>(t, row, rows);
    else
      collect_block<T, -1, true>(t, row, rows);
    for (int64_t i = 0; i < rows * t.s.targets; ++i) {
      const T v = t.aggregate == Aggregate::average ? out[i] / static_cast<T>(t.s.trees) : out[i];
      out[i] = stored_score(v + t.base[i % t.s.targets]);
    }
  }
}

void tree_ensemble(const Call& call, int, int64_t begin, int64_t end, void* scratch) {
  if (call.in[0].dtype == DType::f64) return evaluate<double>(call, begin, end, scratch);
  evaluate<float>(call, begin, end, scratch);
}

size_t trees_scratch(const Call& call) {
  return static_cast<size_t>(trees_shape(call).targets * kTreeRows);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW;
const CpuKernel INVAR_ROW = {.op = "tree_ensemble",
                             .isa = INVAR_ISA,
                             .units = trees_units,
                             .run = INVAR_ISA_NS::tree_ensemble,
                             .scratch_bytes = INVAR_ISA_NS::trees_scratch,
                             .pack_bytes = trees_pack_bytes,
                             .pack = trees_pack};

}  // namespace invar::ops
