// Row reductions on a GPU (spec/reduction.md), compiled by nvcc only. A team of threads has a
// segment of a row: every thread holds some of the 256 lanes, with all their elements, in
// registers. The lanes then meet in shared memory, where the team's first warp joins them. A block
// has a team for each segment of its row and joins their sums; longer rows are split over blocks
// and several kernels (ReductionPass).
#pragma once

#include "num/reduce/block_cluster.h"
#include "num/reduce/lanes.h"

#define INVAR_DEVICE __device__ __forceinline__

namespace invar::num::INVAR_ISA_NS {

constexpr int kWarpThreads = 32;
constexpr unsigned kWholeWarp = 0xffffffffu;

// The maximum of numbers (formats.7: -0 < +0), if NaN may be ignored.
struct MaxOfNumbers {
  static constexpr float kStart = -__builtin_inff();
  INVAR_DEVICE static F join(F a, F b) {
    F r;
    asm("max.f32 %0, %1, %2;" : "=f"(r.v) : "f"(a.v), "f"(b.v));  // +0 of two zeros
    return r;
  }
};

// Whether warps may join values in any order. maximum is too long for that: it is joined as a sum
// is.
template <class Join>
constexpr bool kAnyOrder = false;
template <>
constexpr bool kAnyOrder<MaxOfNumbers> = true;

// Strides 16 ... 1 of reduction.4 within a warp; all threads get the result.
template <class Join>
INVAR_DEVICE F join_warp(F a) {
#pragma unroll
  for (int stride = kWarpThreads / 2; stride >= 1; stride /= 2)
    a = Join::join(a, {__shfl_xor_sync(kWholeWarp, a.v, stride)});
  return a;
}

// Joins kCount lanes of one thread by strides kCount / 2 ... 1, level by level: lane j joins the
// lane that precedes it by the highest bit of j.
template <class Join, int kCount>
INVAR_DEVICE F join_own(F* lane) {
#pragma unroll
  for (int j = kCount - 1; j >= 1; --j) {
    const int to = j - (1 << (31 - __builtin_clz(j)));
    lane[to] = Join::join(lane[to], lane[j]);
  }
  return lane[0];
}

// kV elements at p, which is aligned to all of them.
template <int kV>
INVAR_DEVICE void load_vector(const float* p, F* v) {
  if constexpr (kV == 4) {
    const float4 u = *reinterpret_cast<const float4*>(p);
    v[0] = {u.x}, v[1] = {u.y}, v[2] = {u.z}, v[3] = {u.w};
  } else if constexpr (kV == 2) {
    const float2 u = *reinterpret_cast<const float2*>(p);
    v[0] = {u.x}, v[1] = {u.y};
  } else {
    v[0] = {*p};
  }
}
template <int kV>
INVAR_DEVICE void store_vector(float* p, const F* v) {
  if constexpr (kV == 4)
    *reinterpret_cast<float4*>(p) = {v[0].v, v[1].v, v[2].v, v[3].v};
  else if constexpr (kV == 2)
    *reinterpret_cast<float2*>(p) = {v[0].v, v[1].v};
  else
    *p = v[0].v;
}

// A contiguous row. kAligned: it begins at a multiple of 16 bytes and its length is a multiple of
// four.
template <bool kAligned>
struct ContiguousRow {
  static constexpr bool kVectors = kAligned;
  const float* x;
  INVAR_DEVICE const float* at(int64_t i) const { return x + i; }
};

// The elements of two rows of one layout, of which an operation reduces combinations.
struct Pair {
  F a, b;
};
// The elements that a row holds of its source: floats at at(i), or Source::Element, which
// load<kV>(i, v) makes of elements i ... i + kV - 1.
template <class Source>
struct ElementOf {
  using T = F;
};
template <class Source>
requires requires {
  typename Source::Element;
}
struct ElementOf<Source> {
  using T = typename Source::Element;
};
template <int kV, class Source>
INVAR_DEVICE void load_elements(const Source& source, int64_t i, typename ElementOf<Source>::T* v) {
  if constexpr (requires { typename Source::Element; })
    source.template load<kV>(i, v);
  else
    load_vector<kV>(source.at(i), v);
}

// Rows split over blocks use one kernel for each of their reductions, which leaves its segments in
// partial[segment][row], and one that joins these to total[reduction][row]; the last kernel has all
// totals.
struct ReductionPass {
  float *partial, *total;
  int64_t rows;
};
// No sum is this NaN: a block that waits for one finds it in `partial` until the sum is made.
constexpr uint32_t kNoSum = 0xffffffff;
INVAR_DEVICE void store_sum(float* to, F sum) {
  const uint32_t u = f32_bits(sum.v);
  *reinterpret_cast<volatile uint32_t*>(to) = u == kNoSum ? 0x7fc00000 : u;
}
constexpr int kWhole = -1;    // not split: one kernel for everything, a block has the row
constexpr int kCluster = -2;  // the same; a cluster of blocks has the row (block_cluster.h)

// Operations on rows are written over this: reduce() in the order of the passes, then give() or
// leader(). kPhase: the reduction this kernel is for.
template <int kPhase>
struct RowPass {
  ReductionPass pass;
  int64_t row;
  int next = 0;  // reductions so far
  // After its own reduction a kernel has nothing to do.
  INVAR_DEVICE bool active() const { return kPhase < 0 || next <= kPhase; }
};

// The room of one reduction, a multiple of a vector; a block has room for two at once.
constexpr int room_floats(int threads, int team) {
  return (threads / team * (kRowLanes + 1) + threads / kWarpThreads + 3) / 4 * 4;
}

template <class Source, int kTeam, int kSteps, int kPhase>
class RegisterRow : RowPass<kPhase> {
 public:
  static constexpr int kLanes = kRowLanes / kTeam;        // per thread, of which kV are adjacent
  static constexpr bool kOfWarp = kTeam == kWarpThreads;  // not of a block
  // A thread has element s kRowLanes + threadIdx.x for each slot s; four threads have a vector.
  static constexpr bool kLaneEach = Source::kVectors && kTeam == kRowLanes && kSteps % 4 == 0;
  static constexpr int kV = !Source::kVectors ? 1 : kLanes < 4 ? kLanes : 4;
  using Element = typename ElementOf<Source>::T;
  static constexpr int kElements = kSteps * kLanes, kSlots = kElements / kV;  // at most, per thread
  static constexpr bool kPreloadsWeights = kElements <= 16;                   // it has registers for them

  // room: shared memory of the block, twice room_floats(its threads, kTeam). A team of one warp has
  // a row of its own.
  INVAR_DEVICE RegisterRow(const Source& source, int64_t n, int64_t segment, float* room,
                           const ReductionPass& pass, int64_t row)
      : RowPass<kPhase>{pass, row}, source_(source), thread_(threadIdx.x % kTeam), segment_(segment) {
    const int team = threadIdx.x / kTeam;
    room_ = room + team * kRowLanes;
    part_ = room + blockDim.x / kTeam * kRowLanes;
    most_ = part_ + blockDim.x / kTeam;
    begin_ = segment * kRowSegment;
    if constexpr (kPhase == kCluster) {
      segments_ = static_cast<int>((n + kRowSegment - 1) / kRowSegment);
      exchange_.begin(room + 2 * room_floats(blockDim.x, kTeam));
    }
    const int64_t left = n - begin_;
    left_ = left > kRowSegment ? kRowSegment : left < 0 ? 0 : static_cast<int>(left);
    if (kPhase < 0) load();
  }

  // The row's reduction, step(lane, element) one step of a lane. The same in every thread.
  template <class Join, class Step>
  INVAR_DEVICE F reduce(Step step) {
    if constexpr (kPhase >= 0) {
      const int k = this->next++;
      if (k < kPhase) return {this->pass.total[k * this->pass.rows + this->row]};
      if (k > kPhase) return zero();
    }
    load();
    F lane[kLanes];
#pragma unroll
    for (int c = 0; c < kLanes; ++c) lane[c] = set1(Join::kStart);
#pragma unroll
    for (int s = 0; s < kSteps; ++s)
#pragma unroll
      for (int c = 0; c < kLanes; ++c)
        if (has(s, c)) lane[c] = step(lane[c], value_[s][c]);
    const F sum = kAnyOrder<Join> ? extreme<Join>(lane) : join<Join>(lane);
    if constexpr (kPhase >= 0) {
      if (thread_ == 0) store_sum(this->pass.partial + segment_ * this->pass.rows + this->row, sum);
      return zero();
    }
    F total = set1(Join::kStart);
    if constexpr (kPhase == kCluster && !kAnyOrder<Join>) {
      const float* sums = exchange_.all(sum, thread_ < kWarpThreads, static_cast<int>(segment_));
#pragma unroll 8
      for (int g = 0; g < segments_; ++g) total = Join::join(total, {sums[g]});  // reduction.5
      return total;
    }
    if constexpr (kTeam == kWarpThreads || kAnyOrder<Join>) return Join::join(total, sum);
    if (thread_ == 0) part_[threadIdx.x / kTeam] = sum.v;
    __syncthreads();
    for (int g = 0; g < blockDim.x / kTeam; ++g) total = Join::join(total, {part_[g]});  // reduction.5
    return total;
  }

  // Two reductions at once, as quick as one: those of step_a and step_b.
  template <class Join, class A, class B>
  INVAR_DEVICE Pair reduce_both(A step_a, B step_b) {
    if constexpr (kPhase != kWhole) {
      const F a = reduce<Join>(step_a);
      return {a, reduce<Join>(step_b)};
    }
    load();
    F a[kLanes], b[kLanes];
#pragma unroll
    for (int c = 0; c < kLanes; ++c) a[c] = b[c] = set1(Join::kStart);
#pragma unroll
    for (int s = 0; s < kSteps; ++s)
#pragma unroll
      for (int c = 0; c < kLanes; ++c)
        if (has(s, c)) a[c] = step_a(a[c], value_[s][c]), b[c] = step_b(b[c], value_[s][c]);
    const int second = room_floats(blockDim.x, kTeam);
    if constexpr (kTeam == kWarpThreads) {
      const F sum = join<Join>(a);
      return {Join::join(set1(Join::kStart), sum), Join::join(set1(Join::kStart), join<Join>(b))};
    }
#pragma unroll
    for (int c = 0; c < kLanes; c += kV) {
      store_vector<kV>(room_ + place(0, c), a + c);
      store_vector<kV>(room_ + second + place(0, c), b + c);
    }
    __syncthreads();
    if (thread_ < 2 * kWarpThreads) {  // a warp joins each
      const int of = thread_ / kWarpThreads * second;
      const F sum = join_room<Join>(room_ + of, thread_ % kWarpThreads);
      if (thread_ % kWarpThreads == 0) part_[of + threadIdx.x / kTeam] = sum.v;
    }
    __syncthreads();
    Pair total{set1(Join::kStart), set1(Join::kStart)};
    for (int g = 0; g < blockDim.x / kTeam; ++g)  // reduction.5
      total = {Join::join(total.a, {part_[g]}), Join::join(total.b, {part_[second + g]})};
    return total;
  }

  // Replaces each element x by f(x); the row stays in registers.
  template <class Fn>
  INVAR_DEVICE void map(Fn f) {
    if (!this->active()) return;
    load();
#pragma unroll
    for (int s = 0; s < kSteps; ++s)
#pragma unroll
      for (int c = 0; c < kLanes; ++c) value_[s][c] = f(value_[s][c]);
  }
  template <class Fn>
  INVAR_DEVICE static Element mapped(Fn, Element v) {
    return v;
  }

  // f(slot, i): the thread's kV elements number `slot` start at element i of the row.
  template <class Fn>
  INVAR_DEVICE void slots(Fn f) const {
#pragma unroll
    for (int s = 0; s < kSteps; ++s)
#pragma unroll
      for (int c = 0; c < kLanes; c += kV)
        if (has(s, c)) f((s * kLanes + c) / kV, begin_ + place(s, c));
  }
  // f(slot, i, v), with these elements.
  template <class Fn>
  INVAR_DEVICE void each(Fn f) {
    if (!this->active()) return;
    load();
    slots([&](int slot, int64_t i) { f(slot, i, &value_[slot * kV / kLanes][slot * kV % kLanes]); });
  }
  // Replaces the vector number `slot`, which starts at element i.
  INVAR_DEVICE void keep(int slot, int64_t, const F* v) {
#pragma unroll
    for (int k = 0; k < kV; ++k) value_[slot * kV / kLanes][slot * kV % kLanes + k] = v[k];
  }
  INVAR_DEVICE void kept(int slot, int64_t, F* v) const {
#pragma unroll
    for (int k = 0; k < kV; ++k) v[k] = value_[slot * kV / kLanes][slot * kV % kLanes + k];
  }
  // Stores f(element) under the store rule in row y, which has the layout of this one.
  template <class Fn>
  INVAR_DEVICE void give(float* y, Fn f) {
    each([&](int, int64_t i, const Element* v) {
      F out[kV];
#pragma unroll
      for (int k = 0; k < kV; ++k) out[k] = canonicalize(f(v[k]));
      store_vector<kV>(y + i, out);
    });
  }
  // Whether this thread stores a result that exists once per row.
  INVAR_DEVICE bool leader() const {
    if (kPhase == kCluster) return thread_ == 0 && segment_ == 0;
    return this->active() && (kTeam == kWarpThreads ? thread_ == 0 : threadIdx.x == 0);
  }

 private:
  Source source_;
  int thread_, left_;
  int64_t segment_, begin_;
  float *room_, *part_, *most_;
  int segments_;
  ClusterExchange exchange_;
  bool loaded_ = false;
  Element value_[kSteps][kLanes];

  INVAR_DEVICE int place(int s, int c) const {
    return s * kRowLanes + c / kV * kV * kTeam + thread_ * kV + c % kV;
  }
  INVAR_DEVICE bool has(int s, int c) const {
    return place(s, c / kV * kV) < left_;
  }
  INVAR_DEVICE void load() {
    if (loaded_) return;
    loaded_ = true;
#pragma unroll
    for (int s = 0; s < kSteps; ++s)
#pragma unroll
      for (int c = 0; c < kLanes; c += kV) {
#pragma unroll
        for (int k = 0; k < kV; ++k) value_[s][c + k] = Element{};
        if (has(s, c)) load_elements<kV>(source_, begin_ + place(s, c), &value_[s][c]);
      }
  }
  // reduction.4, for all teams of the block at once; the result is the first warp's.
  template <class Join>
  INVAR_DEVICE F join(const F* lane) {
    if (kTeam == kWarpThreads) __syncwarp();  // the lanes of the last reduction have been read
#pragma unroll
    for (int c = 0; c < kLanes; c += kV) store_vector<kV>(room_ + place(0, c), lane + c);
    if (kTeam == kWarpThreads)
      __syncwarp();
    else
      __syncthreads();
    if (thread_ >= kWarpThreads) return zero();
    return join_room<Join>(room_, thread_);
  }
  // A warp joins the lanes in room.
  template <class Join>
  INVAR_DEVICE static F join_room(const float* room, int thread) {
    constexpr int kPer = kRowLanes / kWarpThreads;
    F v[kPer];
#pragma unroll
    for (int k = 0; k < kPer; ++k) v[k] = {room[k * kWarpThreads + thread]};
    return join_warp<Join>(join_own<Join, kPer>(v));
  }
  // reduction.8, of the whole block, or of the warp that has the row. Between two of a block's
  // there is another reduction.
  template <class Join>
  INVAR_DEVICE F extreme(F* lane) {
    F most = join_warp<Join>(join_own<Join, kLanes>(lane));
    if (kTeam == kWarpThreads) return most;
    if constexpr (kPhase == kCluster) {
      const int warps = blockDim.x / kWarpThreads;
      const float* all = exchange_.all(most, true, cluster_rank() * warps + threadIdx.x / kWarpThreads);
      for (int w = threadIdx.x % kWarpThreads; w < cluster_size() * warps; w += kWarpThreads)
        most = Join::join(most, {all[w]});
      return join_warp<Join>(most);
    }
    if (threadIdx.x % kWarpThreads == 0) most_[threadIdx.x / kWarpThreads] = most.v;
    __syncthreads();
    for (int w = 0; w < blockDim.x / kWarpThreads; ++w) most = Join::join(most, {most_[w]});
    return most;
  }
};

// reduction.9 of a row of n elements.
struct RowMoments {
  F mean, variance;
};
template <class Row>
INVAR_DEVICE RowMoments moments_of(Row& row, int64_t n) {
  const F count = set1(static_cast<float>(n));
  const F mean = div(row.template reduce<SumOp>([](F lane, F v) { return add(lane, v); }), count);
  const F squares = row.template reduce<SumOp>([=](F lane, F v) {
    const F d = sub(v, mean);
    return fma(d, d, lane);
  });
  return {mean, div(squares, count)};
}

}  // namespace invar::num::INVAR_ISA_NS
