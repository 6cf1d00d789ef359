// Column reductions on a GPU (reduction.11), compiled by nvcc only: a block has kColumns adjacent
// columns of memory and reads them row by row with all of its threads. Of a column a thread has
// every kClasses-th lane and joins the longer strides of the tree by itself. A column may be any
// row, with elements anywhere. Nothing is kept: every pass reads the elements again.
#pragma once

#include "num/reduce/block.h"

namespace invar::num::INVAR_ISA_NS {

constexpr int column_threads(int columns) {
  return columns == 1 ? kRowLanes : 1024;
}

template <class Source, int kColumns, int kPhase>
class ColumnRow : RowPass<kPhase> {
 public:
  static constexpr int kClasses = column_threads(kColumns) / kColumns, kLanes = kRowLanes / kClasses;
  using Element = typename ElementOf<Source>::T;
  static constexpr int kV = 1, kSlots = 1, kElements = INT32_MAX;
  static constexpr bool kPreloadsWeights = kElements <= 16;

  // there: whether this thread's column exists. room: one float per thread of the block.
  INVAR_DEVICE ColumnRow(const Source& source, int64_t n, int64_t segment, float* room,
                         const ReductionPass& pass, int64_t row, bool there)
      : RowPass<kPhase>{pass, row},
        source_(source),
        there_(there),
        class_(threadIdx.x / kColumns),
        n_(n),
        segment_(segment),
        room_(room) {}

  template <class Join, class Step>
  INVAR_DEVICE F reduce(Step step) {
    if constexpr (kPhase != kWhole) {
      const int k = this->next++;
      if (k < kPhase) return there_ ? F{this->pass.total[k * this->pass.rows + this->row]} : zero();
      if (k > kPhase) return zero();
      const F sum = segment<Join>(segment_ * kRowSegment, step);
      if (class_ == 0 && there_) this->pass.partial[segment_ * this->pass.rows + this->row] = sum.v;
      return zero();
    }
    F total = set1(Join::kStart);
    for (int64_t begin = 0; begin < n_; begin += kRowSegment)
      total = Join::join(total, segment<Join>(begin, step));
    return total;
  }

  template <class Join, class A, class B>
  INVAR_DEVICE Pair reduce_both(A step_a, B step_b) {
    if constexpr (kPhase != kWhole) {
      const F a = reduce<Join>(step_a);
      return {a, reduce<Join>(step_b)};
    }
    Pair total{set1(Join::kStart), set1(Join::kStart)};
    for (int64_t begin = 0; begin < n_; begin += kRowSegment) {
      F a[kLanes], b[kLanes];
      start<Join>(a), start<Join>(b);
      add_elements<8 / kLanes>(
          begin, [&](int k, const Element& v) { a[k] = step_a(a[k], v), b[k] = step_b(b[k], v); });
      total.a = Join::join(total.a, join<Join>(a));
      total.b = Join::join(total.b, join<Join>(b));
    }
    return total;
  }

  template <class Fn>
  INVAR_DEVICE void map(Fn) {}
  template <class Fn>
  INVAR_DEVICE static auto mapped(Fn f, Element v) {
    return f(v);
  }

  template <class Fn>
  INVAR_DEVICE void each(Fn f) {
    if (!this->active() || !there_) return;
    const int64_t begin = kPhase == kWhole ? 0 : segment_ * kRowSegment;
    const int64_t end = kPhase == kWhole || n_ - begin < kRowSegment ? n_ : begin + kRowSegment;
#pragma unroll 4
    for (int64_t i = begin + class_; i < end; i += kClasses) {
      const Element v = element(i);
      f(0, i, &v);
    }
  }
  template <class Fn>
  INVAR_DEVICE void give(float* y, Fn f) {
    each([&](int, int64_t i, const Element* v) { y[source_.at(i) - source_.at(0)] = canonicalize(f(*v)).v; });
  }
  INVAR_DEVICE bool leader() const {
    return this->active() && there_ && class_ == 0;
  }

 private:
  Source source_;
  bool there_;
  int class_;
  int64_t n_, segment_;
  float* room_;

  INVAR_DEVICE Element element(int64_t i) const {
    Element v;
    load_elements<1>(source_, i, &v);
    return v;
  }
  template <class Join>
  INVAR_DEVICE static void start(F* lane) {
#pragma unroll
    for (int k = 0; k < kLanes; ++k) lane[k] = set1(Join::kStart);
  }
  // Calls add(k, element) for the elements of the thread's lane k in the segment that starts at
  // `begin`. kAhead: steps whose loads are in flight.
  template <int kAhead, class Add>
  INVAR_DEVICE void add_elements(int64_t begin, Add add) {
    const int count = !there_ ? 0 : n_ - begin < kRowSegment ? static_cast<int>(n_ - begin) : kRowSegment;
#pragma unroll 1
    for (int s = 0; s < count; s += kAhead * kRowLanes) {
      Element v[kAhead][kLanes];
#pragma unroll
      for (int a = 0; a < kAhead; ++a)
#pragma unroll
        for (int k = 0; k < kLanes; ++k) {
          const int i = s + a * kRowLanes + k * kClasses + class_;
          v[a][k] = i < count ? element(begin + i) : Element{};
        }
#pragma unroll
      for (int a = 0; a < kAhead; ++a)
#pragma unroll
        for (int k = 0; k < kLanes; ++k)
          if (s + a * kRowLanes + k * kClasses + class_ < count) add(k, v[a][k]);
    }
  }
  // reduction.4: a thread's lanes are kClasses apart; then the classes.
  template <class Join>
  INVAR_DEVICE F join(F* lane) {
    float* own = room_ + threadIdx.x;
    __syncthreads();  // the last segment's sum has been read
    *own = join_own<Join, kLanes>(lane).v;
    __syncthreads();
#pragma unroll
    for (int stride = kClasses / 2; stride >= 1; stride /= 2) {
      if (class_ < stride) *own = Join::join(F{*own}, F{own[stride * kColumns]}).v;
      __syncthreads();
    }
    return {room_[threadIdx.x % kColumns]};
  }
  template <class Join, class Step>
  INVAR_DEVICE F segment(int64_t begin, Step step) {
    F lane[kLanes];
    start<Join>(lane);
    add_elements<16 / kLanes>(begin, [&](int k, const Element& v) { lane[k] = step(lane[k], v); });
    return join<Join>(lane);
  }
};

}  // namespace invar::num::INVAR_ISA_NS
