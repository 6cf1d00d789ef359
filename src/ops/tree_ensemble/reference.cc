// spec: tree_ensemble.1 - tree_ensemble.6.
#include "kernels/reference.h"

#include "kernels/check.h"
#include "ops/tree_ensemble/tree_ensemble.h"

namespace invar::ops {
namespace {

// tree_ensemble.4: what one target of one row collects.
template <class T>
T collected(const Call& call, const TreesShape& s, const T* x, int64_t target) {
  const auto aggregate = static_cast<Aggregate>(TreeEnsembleAttributes(call).aggregate);
  const auto *roots = call.in[3].as<const int32_t>(), *targets = call.in[4].as<const int32_t>();
  const T* weights = call.in[5].as<const T>();
  T value = 0;
  bool any = false;
  for (int64_t t = 0; t < s.trees; ++t) {
    const auto* nodes = call.in[1].as<const TreeNode>();
    const int64_t leaf = leaf_of(nodes, call.in[2].as<const T>(), roots[t], x, s);
    if (leaf < 0) continue;
    const int64_t first = nodes[leaf].if_true < 0 ? 0 : nodes[leaf].if_true;
    const int64_t end = nodes[leaf].if_false > s.entries ? s.entries : nodes[leaf].if_false;
    for (int64_t i = first; i < end; ++i) {
      if (targets[i] != target) continue;
      const T w = weights[i];
      switch (aggregate) {
        case Aggregate::min: value = !any || w < value ? w : value; break;
        case Aggregate::max: value = !any || w > value ? w : value; break;
        default: value = value + w;  // tree_ensemble.4
      }
      any = true;
    }
  }
  if (aggregate == Aggregate::average) value = value / static_cast<T>(s.trees);
  return value;
}

template <class T>
void evaluate(const Call& call, int64_t begin, int64_t end) {
  const TreesShape s = trees_shape(call);
  for (int64_t row = begin; row < end; ++row)
    for (int64_t target = 0; target < s.targets; ++target) {
      const T value = collected<T>(call, s, call.in[0].as<const T>() + row * s.features, target);
      call.out[0].as<T>()[row * s.targets + target] = stored_score(value + call.in[6].as<const T>()[target]);
    }
}

void tree_ensemble(const Call& call, int, int64_t begin, int64_t end, void*) {
  if (call.in[0].dtype == DType::f64) return evaluate<double>(call, begin, end);
  evaluate<float>(call, begin, end);
}

const char* check(const Call& c) {
  if (!has_operands(c, 7, 1)) return "seven operands and a result";
  const View &x = c.in[0], &nodes = c.in[1], &out = c.out[0];
  if (x.dtype != DType::f32 && x.dtype != DType::f64) return "x of f32 or f64";
  for (size_t i : {2u, 5u, 6u})
    if (c.in[i].dtype != x.dtype) return "thresholds, weights and base of the type of x";
  for (size_t i : {1u, 3u, 4u})
    if (c.in[i].dtype != DType::i32) return "nodes, roots and targets of i32";
  for (size_t i = 2; i < 7; ++i)
    if (c.in[i].rank != 1) return "lists";
  if (x.rank != 2 || nodes.rank != 2 || nodes.dim[1] != 4) return "x of rank 2, and nodes of four numbers";
  if (c.in[2].dim[0] != nodes.dim[0]) return "a threshold for each node";
  if (c.in[4].dim[0] != c.in[5].dim[0]) return "a target for each weight";
  if (nodes.dim[0] > INT32_MAX || c.in[5].dim[0] > INT32_MAX || c.in[3].dim[0] > INT32_MAX)
    return "fewer than 2^31 nodes, trees and weights";
  const int64_t aggregate = TreeEnsembleAttributes(c).aggregate;
  if (aggregate < 0 || aggregate > 3) return "aggregate from 0 to 3";
  if (out.dtype != x.dtype || out.rank != 2 || out.dim[0] != x.dim[0] || out.dim[1] != c.in[6].dim[0])
    return "a result of a row for each row of x and a column for each number of base";
  return nullptr;
}

bool batch_independent(const Call&, uint64_t batched) {
  return batched == 1;
}

}  // namespace

extern const OpContract contract_tree_ensemble;
extern const CpuKernel row_tree_ensemble_reference;
const OpContract contract_tree_ensemble = {
    .op = "tree_ensemble", .check = check, .batch_independent = batch_independent};
const CpuKernel row_tree_ensemble_reference = {
    .op = "tree_ensemble", .isa = "reference", .units = trees_units, .run = tree_ensemble};

}  // namespace invar::ops
