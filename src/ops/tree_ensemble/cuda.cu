// GPU tree_ensemble: a thread takes one target of one row, and all trees in their order.
#include "kernels/cuda/vectorized_loop.h"
#include "ops/tree_ensemble/tree_ensemble.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

template <class T>
struct DeviceTrees {
  TreesShape s;
  const T* x;
  const TreeNode* nodes;
  const T* thresholds;
  const int32_t *roots, *targets;
  const T *weights, *base;
  Aggregate aggregate;

  // Element o of the result.
  __device__ T operator()(int64_t o) const {
    const int64_t row = o / s.targets, target = o % s.targets;
    const bool least = aggregate == Aggregate::min, extreme = least || aggregate == Aggregate::max;
    T value = 0;
    bool any = false;
    for (int64_t t = 0; t < s.trees; ++t) {
      const int64_t leaf = leaf_of(nodes, thresholds, roots[t], x + row * s.features, s);
      if (leaf < 0) continue;
      const int64_t first = nodes[leaf].if_true < 0 ? 0 : nodes[leaf].if_true;
      const int64_t end = nodes[leaf].if_false > s.entries ? s.entries : nodes[leaf].if_false;
      for (int64_t i = first; i < end; ++i) {
        if (targets[i] != target) continue;
        const T w = weights[i];
        if (!extreme)
          value = value + w;  // tree_ensemble.4
        else if (!any || (least ? w < value : w > value))
          value = w;
        any = true;
      }
    }
    if (aggregate == Aggregate::average) value = value / static_cast<T>(s.trees);
    return stored_score(value + base[target]);
  }
};

template <class T>
void evaluate_on_device(const Call& call, Stream stream) {
  const DeviceTrees<T> trees = {trees_shape(call),
                                call.in[0].as<const T>(),
                                call.in[1].as<const TreeNode>(),
                                call.in[2].as<const T>(),
                                call.in[3].as<const int32_t>(),
                                call.in[4].as<const int32_t>(),
                                call.in[5].as<const T>(),
                                call.in[6].as<const T>(),
                                static_cast<Aggregate>(TreeEnsembleAttributes(call).aggregate)};
  launch_generate<1>(stream, call.out[0].elements(), call.out[0].as<T>(), trees);
}

void tree_ensemble(const Call& call, Stream stream) {
  if (call.out[0].elements() == 0) return;
  if (call.in[0].dtype == DType::f64) return evaluate_on_device<double>(call, stream);
  evaluate_on_device<float>(call, stream);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW;
const GpuKernel INVAR_ROW = {.op = "tree_ensemble", .isa = INVAR_ISA, .enqueue = INVAR_ISA_NS::tree_ensemble};

}  // namespace invar::ops
