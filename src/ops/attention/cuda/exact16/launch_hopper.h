// The kernels for Hopper, of heads whose keys and values have at most 128 elements. They are
// compiled for compute capability 9.0a alone (sm90a/), where the build makes code for 9.0.
#pragma once
#include "ops/attention/cuda/common.cuh"

namespace invar::ops::INVAR_ISA_NS {

// Scores are scaled products.
void enqueue_exact_prefill_hopper(const AttentionParams& s, Stream stream);
// The next two are for at most 16 rows of a key head, and append fewer than kFewExactKeys new keys,
// too. Whether results are complete; otherwise there are partial ones.
bool enqueue_exact_decode_hopper(const AttentionParams& s, Stream stream);
// By thread block clusters.
void enqueue_exact_decode_cluster(const AttentionParams& s, Stream stream);
// Whether results of key blocks fit in shared memory; whether clusters are quicker, too.
struct ClusterChoice {
  bool fits, quicker;
};
ClusterChoice choose_exact_cluster(const Geometry& g);

}  // namespace invar::ops::INVAR_ISA_NS
