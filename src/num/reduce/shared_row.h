// Rows of at most a block on a GPU (spec/reduction.md), for kernels that read and write vectors of
// four elements, compiled by nvcc only. The block has its row in shared memory, where the lanes of
// reduction.2 find their elements; so a kernel needs few registers.
#pragma once

#include "num/reduce/block.h"

namespace invar::num {

constexpr int kSharedQuad = 4;  // elements of a vector
// Floats of shared memory of a row of n elements: the row, its lanes and its segments' sums.
constexpr int64_t shared_row_floats(int64_t n) {
  const int64_t segments = (n + kRowSegment - 1) / kRowSegment;
  return n + segments * (kRowLanes + kSharedQuad);
}

namespace INVAR_ISA_NS {

// n, a multiple of kSharedQuad, is at most kQuads vectors for each thread; a block has a multiple
// of kRowLanes threads.
template <class Source, int kQuads>
class SharedRow {
 public:
  static constexpr int kV = kSharedQuad, kSlots = kQuads;
  static constexpr bool kOfWarp = false, kLaneEach = false, kPreloadsWeights = false;

  INVAR_DEVICE SharedRow(const Source& source, int n, float* room)
      : row_(room), lanes_(room + n), n_(n), segments_((n + kSegment - 1) / kSegment) {
    part_ = lanes_ + segments_ * kRowLanes;
    F v[kQuads][kV];
#pragma unroll
    for (int s = 0; s < kQuads; ++s)
      if (has(s)) load_vector<kV>(source.at(place(s)), v[s]);
#pragma unroll
    for (int s = 0; s < kQuads; ++s)
      if (has(s)) store_vector<kV>(row_ + place(s), v[s]);
  }

  // The row's reduction, step(lane, element) one step of a lane. The same in every thread.
  template <class Join, class Step>
  INVAR_DEVICE F reduce(Step step) {
    __syncthreads();  // the row is there, and the lanes of the last reduction have been read
    for (int at = threadIdx.x; at < segments_ * kRowLanes; at += blockDim.x) {
      const int lane = at % kRowLanes, begin = at / kRowLanes * kSegment, left = n_ - begin - lane;
      const float* x = row_ + begin + lane;
      F sum = set1(Join::kStart);
#pragma unroll
      for (int s = 0; s < kSegment / kRowLanes; ++s)
        if (s * kRowLanes < left) sum = step(sum, F{x[s * kRowLanes]});
      lanes_[at] = sum.v;
    }
    __syncthreads();
    F total = set1(Join::kStart);
    if (segments_ == 1) return Join::join(total, join_lanes<Join>(lanes_));  // in every warp
    for (int g = threadIdx.x / kWarpThreads; g < segments_; g += blockDim.x / kWarpThreads) {
      const F sum = join_lanes<Join>(lanes_ + g * kRowLanes);
      if (threadIdx.x % kWarpThreads == 0) part_[g] = sum.v;
    }
    __syncthreads();
    for (int g = 0; g < segments_; ++g) total = Join::join(total, {part_[g]});  // reduction.5
    return total;
  }

  // f(slot, i): the thread's vector number `slot` starts at element i of the row.
  template <class Fn>
  INVAR_DEVICE void slots(Fn f) const {
#pragma unroll
    for (int s = 0; s < kQuads; ++s)
      if (has(s)) f(s, place(s));
  }
  // f(slot, i, v), with these elements.
  template <class Fn>
  INVAR_DEVICE void each(Fn f) {
    slots([&](int slot, int i) {
      F v[kV];
      kept(slot, i, v);
      f(slot, i, v);
    });
  }
  // Replaces a vector, after the last reduction.
  INVAR_DEVICE void keep(int, int64_t i, const F* v) {
    store_vector<kV>(row_ + i, v);
  }
  INVAR_DEVICE void kept(int, int64_t i, F* v) const {
    load_vector<kV>(row_ + i, v);
  }

 private:
  static constexpr int kSegment = static_cast<int>(kRowSegment);
  float *row_, *lanes_, *part_;
  int n_, segments_;

  INVAR_DEVICE int place(int s) const {
    return (s * blockDim.x + threadIdx.x) * kV;
  }
  INVAR_DEVICE bool has(int s) const {
    return place(s) < n_;
  }
  // reduction.4, by a warp.
  template <class Join>
  INVAR_DEVICE static F join_lanes(const float* lanes) {
    constexpr int kPer = kRowLanes / kWarpThreads;
    F v[kPer];
#pragma unroll
    for (int k = 0; k < kPer; ++k) v[k] = {lanes[k * kWarpThreads + threadIdx.x % kWarpThreads]};
    return join_warp<Join>(join_own<Join, kPer>(v));
  }
};

}  // namespace INVAR_ISA_NS
}  // namespace invar::num
