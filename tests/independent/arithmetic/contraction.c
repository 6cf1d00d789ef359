// spec/contraction.md: the inner product of every matrix product.
#include "law.h"

#include <math.h>

// contraction.2: the chain of k in [begin, end)
static float chain(const float* a, const float* b, size_t begin, size_t end) {
  float c = 0;
  if (MUTATED(chain_multiplies_and_adds)) {
    for (size_t k = begin; k < end; k++) c = c + a[k] * b[k];
  } else if (MUTATED(chain_descends)) {
    for (size_t k = end; k-- > begin;) c = fmaf(a[k], b[k], c);
  } else if (MUTATED(chain_in_binary64)) {
    double wide = 0;
    for (size_t k = begin; k < end; k++) wide += (double)a[k] * b[k];
    c = (float)wide;
  } else {
    for (size_t k = begin; k < end; k++) c = fmaf(a[k], b[k], c);
  }
  return MUTATED(chain_squashes) ? store(c) : c;
}

// contraction.4
static float tree(const float* s) {
  if (MUTATED(segments_add_linearly)) {
    return ((((((s[0] + s[1]) + s[2]) + s[3]) + s[4]) + s[5]) + s[6]) + s[7];
  }
  if (MUTATED(segments_tree_by_stride)) {
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
  }
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

// Not stored: contraction.6 is the caller's.
float contract(const float* a, const float* b, size_t n) {
  size_t const block = MUTATED(chain_blocks_of_128) ? 128 : 256;
  size_t const segments = MUTATED(segments_4) ? 4 : 8;
  size_t const blocks = (n + block - 1) / block;
  size_t const per = (blocks + segments - 1) / segments;  // contraction.3
  float s[8] = {0};
  for (size_t i = 0; i < blocks; i++) {
    size_t const end = n < block * (i + 1) ? n : block * (i + 1);
    float const c = chain(a, b, block * i, end);
    float* const to = &s[MUTATED(segments_interleave) ? i % segments : i / per];
    *to = MUTATED(segment_starts_with_chain) && i % per == 0 ? c : *to + c;
  }
  return tree(s);
}
