// What normalizations over contiguous rows share: the operands, and weight vectors of a stored
// format.
#pragma once
#include "kernels/cuda/rounded_rows.cuh"
#include "kernels/cuda/row_reduction.cuh"
#include "kernels/cuda/shared_rows.cuh"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// How a normalization leaves row r of its n elements: as floats at y + r n.
struct FloatRows {
  template <class Row>
  class Of {
   public:
    INVAR_DEVICE Of(const FloatRows&, float* y, int64_t r, int64_t n) : y_(y + r * n) {}
    // The results of the row's vector `slot`, which starts at element i.
    INVAR_DEVICE void take(Row&, int, int64_t i, const F* v) {
      num::INVAR_ISA_NS::store_vector<Row::kV>(y_ + i, v);
    }
    INVAR_DEVICE void end(const Row&) {}

   private:
    float* y_;
  };
};
// Rounded, of rows that a warp or a block holds.
struct RoundedNorms {
  RoundedRows to;
  int64_t rows;

  template <class Row>
  class Of {
   public:
    INVAR_DEVICE Of(const RoundedNorms& rounded, float*, int64_t r, int64_t n)
        : to_(rounded.to), rows_(rounded.rows), r_(r), n_(n) {}
    INVAR_DEVICE void take(Row& row, int slot, int64_t i, const F* v) {
#pragma unroll
      for (int k = 0; k < Row::kV; ++k) largest_ = largest_of(largest_, v[k].v);
      row.keep(slot, i, v);
    }
    INVAR_DEVICE void end(const Row& row) {
      constexpr bool kOfWarp = Row::kOfWarp;
      const int thread = kOfWarp ? threadIdx.x % kWarp : threadIdx.x, threads = kOfWarp ? kWarp : blockDim.x;
      const int32_t e = num::exact16_scale(kOfWarp ? largest_in_warp(largest_) : largest_in_block(largest_));
      const RoundedRow out(to_, r_, e);
      if constexpr (Row::kLaneEach) {
        const int of_four = threadIdx.x % 4;
#pragma unroll
        for (int s = 0; s < Row::kSlots; s += 4) {
          F v[4];
          for (int k = 0; k < 4; ++k) row.kept(s + k, 0, v + k);
          const float x[4] = {v[0].v, v[1].v, v[2].v, v[3].v};
          const auto own = out.template bytes<4>(x);
          const RoundedRow::Bytes four{transpose_bytes(own.high), transpose_bytes(own.low)};
          const int i = (s + of_four) * num::kRowLanes + static_cast<int>(threadIdx.x) - of_four;
          if (i < n_) out.template put<4>(i, four);
        }
      } else {
        row.slots([&](int slot, int64_t i) {
          F v[Row::kV];
          row.kept(slot, i, v);
          float x[Row::kV];
#pragma unroll
          for (int k = 0; k < Row::kV; ++k) x[k] = v[k].v;
          out.template store<Row::kV>(i, x);
        });
      }
      const float zero = 0;
      for (int64_t i = n_ + thread; i < to_.chunks * kRoundedK; i += threads) out.template store<1>(i, &zero);
      if (thread == 0) to_.scales[r_] = e;
      if (r_ == 0) clear_scales(to_, rows_, thread, threads);
    }

   private:
    const RoundedRows& to_;
    int64_t rows_, r_, n_;
    uint32_t largest_ = 0;
  };
};

// The base of an operation of row_reduction.cuh with kSums reductions. kVectors: rows are aligned
// to 16 bytes.
template <bool kVectors, int kSums>
struct NormOp {
  static constexpr bool kAligned = kVectors, kStoresRow = true;
  static constexpr int kReductions = kSums;
  template <int>
  using Join = num::INVAR_ISA_NS::SumOp;
  const float* x;
  float* y;
  int64_t n;
  float epsilon;

  NormOp(const Call& call, int64_t elements, float added)
      : x(call.in[0].as<const float>()), y(call.out[0].as<float>()), n(elements), epsilon(added) {}
  INVAR_DEVICE num::INVAR_ISA_NS::ContiguousRow<kAligned> source(int64_t r, int64_t = 0) const {
    return {x + r * n};
  }
};
template <class Fn>
void launch_norm(const Fn& fn, int64_t rows, void* shared, Stream stream) {
  if constexpr (Fn::kAligned)
    launch_rows(fn, rows, fn.n, shared, stream);
  else
    launch_unaligned_rows(fn, rows, fn.n, shared, stream);
}
template <class Fn>
void launch_norm(const Fn& fn, int64_t rows, const Call& call, Stream stream) {
  launch_norm(fn, rows, call.shared, stream);
}
// Rows of at most a block's length: GpuKernel::can_round and enqueue_rounded of a normalization
// over its operand's last dimension.
bool can_round_norm(std::span<const Call* const> calls) {
  const Call& call = *calls[0];
  const int64_t n = call.in[1].elements();
  return calls.size() == 1 && call.in[0].dtype == DType::f32 && n == last_dim(call.in[0]) && n > 0 &&
         !splits_rows(n);
}
constexpr int64_t kVeryFewRows = 4;
// Few rows are held in registers: their blocks need little shared memory, so that they start while
// a large kernel ahead of them still runs. Rows in shared memory are for more rows, and longer
// ones.
template <class Fn>
bool shares_rows(const Fn& fn, int64_t rows, int64_t few) {
  return Fn::kAligned && can_share_rows(fn.n) && rows > few;
}
template <class Fn>
void launch_norm(const Fn& fn, const FloatRows&, int64_t rows, const Call& call, Stream stream) {
  if constexpr (Fn::kAligned)
    if (shares_rows(fn, rows, kFewRows)) return launch_shared_rows(fn, rows, fn.n, stream);
  launch_norm(fn, rows, call.shared, stream);
}
template <class Fn>
void launch_norm(const Fn& fn, const RoundedNorms&, int64_t rows, const Call&, Stream stream) {
  if (fn.n <= num::kRowLanes) return launch_held_rows<kWarp, 1, kWarps>(fn, rows, fn.n, stream);
  if constexpr (Fn::kAligned) {
    // A block or two find a multiprocessor that the kernel ahead of them leaves free.
    const bool held = fn.n <= num::kRowSegment && rows > kVeryFewRows && rows <= kFewRows;
    if (shares_rows(fn, rows, held ? rows : 0)) return launch_shared_rows(fn, rows, fn.n, stream);
    if (fn.n <= num::kRowSegment) return launch_held_rows<num::kRowLanes, kSteps, 1>(fn, rows, fn.n, stream);
  }
  launch_held_rows<kTeam, kSteps, kMaxTeams>(fn, rows, fn.n, stream);
}
bool rows_are_aligned(const Call& call, int64_t n) {
  return aligned(call.in[0].data) && aligned(call.out[0].data) && n % 4 == 0;
}

struct WeightVector {
  const void* p;  // null: none
  DType format;
};
WeightVector weight_vector(const View& v) {
  return {v.data, v.dtype};
}
// Prefetches the first n weights into the L2. A kernel may do so before it waits: the L2 is
// coherent.
INVAR_DEVICE void prefetch_l2(const WeightVector& w, int64_t n) {
  constexpr int64_t kLine = 128;
  const auto* p = static_cast<const char*>(w.p);
  const int64_t bytes = p ? n * (w.format == DType::f32 ? 4 : 2) : 0;
  for (int64_t at = threadIdx.x * kLine; at < bytes; at += blockDim.x * kLine)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p + at));
}
// Whether vectors of four weights are aligned.
bool aligned(const WeightVector& w) {
  return aligned(w.p, w.format == DType::f32 ? 16 : 8);
}

// The GPU's own conversion is as exact as that of num/convert (formats.2), and shorter.
INVAR_DEVICE F widen(uint16_t x, DType format) {
  if (format == DType::bf16) return {Bf16::one(x)};
  F y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y.v) : "h"(x));
  return y;
}
INVAR_DEVICE F weight(const WeightVector& w, int64_t i) {
  if (w.format == DType::f32) return {static_cast<const float*>(w.p)[i]};
  return widen(static_cast<const uint16_t*>(w.p)[i], w.format);
}
// Weights i ... i + kV - 1. kFloats: they are known to be f32.
template <int kV, bool kFloats>
INVAR_DEVICE void load_weights(const WeightVector& w, int64_t i, F* v) {
  if (kFloats || w.format == DType::f32)
    return num::INVAR_ISA_NS::load_vector<kV>(static_cast<const float*>(w.p) + i, v);
  struct alignas(2 * kV) {
    uint16_t x[kV];
  } const u = *reinterpret_cast<const decltype(u)*>(static_cast<const uint16_t*>(w.p) + i);
#pragma unroll
  for (int k = 0; k < kV; ++k) v[k] = widen(u.x[k], w.format);
}
// The weights of a row's elements, in the row's vectors. If a thread has registers for them, it
// loads them before the row is reduced.
template <class Row, bool kFloats>
class RowWeightLoader {
 public:
  INVAR_DEVICE RowWeightLoader(const Row& row, const WeightVector& w) : w_(w) {
    if constexpr (kPreload)
      if (w.p) row.slots([&](int slot, int64_t i) { load(i, preloaded_[slot]); });
  }
  INVAR_DEVICE void get(int slot, int64_t i, F* v) const {
    if constexpr (kPreload) {
#pragma unroll
      for (int k = 0; k < Row::kV; ++k) v[k] = preloaded_[slot][k];
    } else {
      load(i, v);
    }
  }

 private:
  static constexpr bool kPreload = Row::kPreloadsWeights;
  const WeightVector& w_;
  F preloaded_[kPreload ? Row::kSlots : 1][Row::kV];

  INVAR_DEVICE void load(int64_t i, F* v) const {
    load_weights<Row::kV, kFloats>(w_, i, v);
  }
};

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
