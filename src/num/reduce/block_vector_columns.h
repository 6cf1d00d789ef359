// Column reductions on a GPU by vectors of four columns, compiled by nvcc only: as block_columns.h,
// for operations that reduce a column once and keep nothing of it. Rows of memory are read in
// pieces of 128 bytes, with 16 bytes a thread: 64 KB in flight on a multiprocessor.
#pragma once

#include "num/reduce/block.h"

namespace invar::num::INVAR_ISA_NS {

constexpr int kVectorColumnThreads = 512;

template <class Source, int kColumns>
class VectorColumnRow {
 public:
  static constexpr int kV = 4, kColumnThreads = kColumns / kV;
  static constexpr int kClasses = kVectorColumnThreads / kColumnThreads, kLanes = kRowLanes / kClasses;
  static constexpr int kAhead = 8 / kLanes;  // steps whose loads are in flight
  static constexpr int kRoomFloats = kClasses * kColumns;
  static_assert(kLanes > 0 && kAhead > 0);

  // Of the block's columns, the first that the thread reads.
  INVAR_DEVICE static int column() { return threadIdx.x % kColumnThreads * kV; }
  // source: that column, if `there`. leads: the thread gives the result of column threadIdx.x.
  INVAR_DEVICE VectorColumnRow(const Source& source, int64_t n, float* room, bool there, bool leads)
      : source_(source), n_(n), room_(room), there_(there), leads_(leads) {}

  // The total of column threadIdx.x % kColumns.
  template <class Join, class Step>
  INVAR_DEVICE F reduce(Step step) {
    F total = set1(Join::kStart);
    for (int64_t begin = 0; begin < n_; begin += kRowSegment)
      total = Join::join(total, segment<Join>(begin, step));
    return total;
  }
  INVAR_DEVICE bool leader() const { return leads_; }

 private:
  Source source_;
  int64_t n_;
  float* room_;
  bool there_, leads_;

  template <class Join, class Step>
  INVAR_DEVICE F segment(int64_t begin, Step step) {
    const int of_row = threadIdx.x / kColumnThreads;
    const int count = !there_ ? 0 : n_ - begin < kRowSegment ? static_cast<int>(n_ - begin) : kRowSegment;
    F lane[kV][kLanes];
#pragma unroll
    for (int c = 0; c < kV * kLanes; ++c) lane[c / kLanes][c % kLanes] = set1(Join::kStart);
#pragma unroll 1
    for (int s = of_row; s < count; s += kAhead * kRowLanes) {
      F v[kAhead * kLanes][kV];
#pragma unroll
      for (int a = 0; a < kAhead * kLanes; ++a)
        if (s + a * kClasses < count) load_vector<kV>(source_.at(begin + s + a * kClasses), v[a]);
#pragma unroll
      for (int a = 0; a < kAhead * kLanes; ++a)
        if (s + a * kClasses < count)
#pragma unroll
          for (int c = 0; c < kV; ++c) lane[c][a % kLanes] = step(lane[c][a % kLanes], v[a][c]);
    }
    __syncthreads();  // the last segment's sums have been read
    F own[kV];
#pragma unroll
    for (int c = 0; c < kV; ++c) own[c] = join_own<Join, kLanes>(lane[c]);  // reduction.4
    store_vector<kV>(room_ + of_row * kColumns + column(), own);
    __syncthreads();
    for (int stride = kClasses / 2; stride >= 1; stride /= 2) {
      for (int i = threadIdx.x; i < stride * kColumns; i += kVectorColumnThreads)
        room_[i] = Join::join(F{room_[i]}, F{room_[i + stride * kColumns]}).v;
      __syncthreads();
    }
    return {room_[threadIdx.x % kColumns]};
  }
};

}  // namespace invar::num::INVAR_ISA_NS
