// spec/reduction.md: sums over a row.
#include "law.h"

#include <math.h>

// reduction.4, from `stride` on
static float join(float* lane, size_t stride) {
  if (MUTATED(row_joins_linearly)) {
    for (size_t j = 1; j < 2 * stride; j++) lane[0] = lane[0] + lane[j];
    return lane[0];
  }
  if (MUTATED(row_joins_neighbours)) {
    for (size_t n = stride; n >= 1; n /= 2) {
      for (size_t j = 0; j < n; j++) lane[j] = lane[2 * j] + lane[2 * j + 1];
    }
    return lane[0];
  }
  for (; stride >= 1; stride /= 2) {
    for (size_t j = 0; j < stride; j++) lane[j] = lane[j] + lane[j + stride];
  }
  return lane[0];
}

// reduction.2 and reduction.3 over one segment
static float sum_of_segment(const float* x, size_t n, int squares) {
  float lane[256] = {0};
  size_t const lanes = MUTATED(row_lanes_128) ? 128 : 256;
  for (size_t i = 0; i < n; i++) {
    size_t const k = MUTATED(row_lanes_descend) ? n - 1 - i : i;
    float* const to = &lane[k % lanes];
    if (!squares) *to = *to + x[k];
    else if (MUTATED(row_squares_round)) *to = *to + x[k] * x[k];
    else *to = fmaf(x[k], x[k], *to);
  }
  return join(lane, lanes / 2);
}

// reduction.1 and reduction.5
static float sum(const float* x, size_t n, int squares) {
  size_t const segment = MUTATED(row_segments_of_2048) ? 2048
                         : MUTATED(row_one_segment)    ? n
                                                       : 4096;
  float total = 0;
  for (size_t begin = 0; begin < n; begin += segment) {
    total = total + sum_of_segment(x + begin, n - begin < segment ? n - begin : segment, squares);
  }
  return total;
}

float sum_of_row(const float* x, size_t n) { return sum(x, n, 0); }
float sum_of_squares(const float* x, size_t n) { return sum(x, n, 1); }
float sum_of_squares_about(const float* x, size_t n, float c) {
  float d[n];
  for (size_t i = 0; i < n; i++) d[i] = x[i] - c;
  return sum(d, n, 1);
}

// reduction.6
float sum_of_block(const float* p, size_t m) {
  float lane[128] = {0};
  for (size_t j = 0; j < m; j++) lane[j] = 0.0f + p[j];
  if (MUTATED(block_sum_linear)) {
    for (size_t j = 1; j < m; j++) lane[0] = lane[0] + lane[j];
    return lane[0];
  }
  return join(lane, 64);
}
