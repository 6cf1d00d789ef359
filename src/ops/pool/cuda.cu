// Pooling: a thread for each output reads its window; neighbours share the caches.
#include "kernels/cuda/fast_divide.h"
#include "kernels/cuda/vectorized_loop.h"
#include "num/contract/lanes.h"
#include "num/reduce/extreme.h"
#include "ops/pool/pool.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

using num::INVAR_ISA_NS::Largest;
using pool::kAxes;
using pool::PoolGeometry;
using slide::Axis;

// The windows of a call, in integers of type I.
template <class I>
struct PoolShape {
  struct {
    I in, kernel, stride, dilation, pad, end_pad;
  } axis[kAxes];
  FastDivmod out[kAxes];
  I taps, size;  // positions of a window; elements of a channel
  bool padded;   // positions in the padding count
};
template <class I>
PoolShape<I> pool_shape(const PoolGeometry& p, const Call& call) {
  PoolShape<I> w{};
  w.taps = static_cast<I>(p.taps), w.size = 1, w.padded = AveragePoolAttributes(call).count_include_pad != 0;
  for (int d = 0; d < kAxes; ++d) {
    const Axis& a = p.axis[d];
    w.axis[d] = {static_cast<I>(a.in),       static_cast<I>(a.kernel), static_cast<I>(a.stride),
                 static_cast<I>(a.dilation), static_cast<I>(a.pad),    static_cast<I>(a.end_pad)};
    w.out[d] = FastDivmod(a.out);
    w.size *= static_cast<I>(a.in);
  }
  return w;
}
// Whether 32 bits hold every position and element.
bool is_small(const PoolGeometry& p, const Call& call) {
  constexpr int64_t kMax = int64_t{1} << 30;
  bool small = call.in[0].elements() < kMax && call.out[0].elements() < kMax;
  for (const Axis& a : p.axis) small &= a.in + a.pad + a.end_pad + a.kernel * a.dilation + a.stride < kMax;
  return small;
}

// The window of one output: along each axis `taps` positions lie inside of the operand, from tap
// `first` on at position `from`.
template <class I>
struct Window {
  I channel, first[kAxes], taps[kAxes], from[kAxes], count;
};
template <class I>
__device__ Window<I> window_of(const PoolShape<I>& w, I i) {
  Window<I> r;
  r.count = 1;
#pragma unroll
  for (int d = kAxes - 1; d >= 0; --d) {
    const auto& a = w.axis[d];
    const I o = w.out[d].remainder(i);
    r.first[d] = pool::first_tap_inside(a, o), r.taps[d] = pool::taps_inside(a, o, false);
    r.from[d] = o * a.stride - a.pad + r.first[d] * a.dilation;
    r.count *= w.padded ? pool::taps_inside(a, o, true) : r.taps[d];
  }
  r.channel = i * w.size;
  return r;
}
// Calls f(first tap, offset in the channel) for each line of r.taps[2] positions inside, row-major.
template <class I, class Fn>
__device__ void for_each_line(const PoolShape<I>& w, const Window<I>& r, Fn f) {
  for (I i = 0; r.taps[2] > 0 && i < r.taps[0]; ++i)
    for (I j = 0; j < r.taps[1]; ++j) {
      const I line = (r.from[0] + i * w.axis[0].dilation) * w.axis[1].in + r.from[1] + j * w.axis[1].dilation;
      f(((r.first[0] + i) * w.axis[1].kernel + r.first[1] + j) * w.axis[2].kernel + r.first[2],
        line * w.axis[2].in + r.from[2]);
    }
}
// Calls f(offset in the channel) for each position inside, row-major.
template <class I, class Fn>
__device__ void for_each_inside(const PoolShape<I>& w, const Window<I>& r, Fn f) {
  for_each_line(w, r, [&](I, I at) {
#pragma unroll 4
    for (I k = 0; k < r.taps[2]; ++k, at += w.axis[2].dilation) f(at);
  });
}

// The operations: step(c, x) folds an element in, finish() makes the result.
struct MaxOp {};
struct AverageOp {
  static __device__ F step(F c, F x) { return add(c, x); }
  static __device__ F finish(F y, int64_t count) { return div(y, F{static_cast<float>(count)}); }
};
struct L2Op {
  static __device__ F step(F c, F x) { return fma(x, x, c); }
  static __device__ F finish(F y, int64_t) { return sqrt(y); }
};
struct L1Op {
  static __device__ F step(F c, F x) { return add(c, num::INVAR_ISA_NS::abs(x)); }
  static __device__ F finish(F y, int64_t) { return y; }
};

// A position outside is a term +0, which is left out (contraction.5).
template <class Op, class I>
__device__ F reduce_window(const PoolShape<I>& w, const Window<I>& r, const float* x) {
  if constexpr (std::is_same_v<Op, MaxOp>) {
    Largest most = Largest::of(F{Largest::kStart});
    for_each_inside(w, r, [&](I e) { Largest::take(most, load(x + e), load(x + e)); });
    return Largest::lanes_of(most);
  } else {
    F y = zero();
    if (w.taps <= num::kChain)
      for_each_inside(w, r, [&](I e) { y = Op::step(y, load(x + e)); });
    else
      y = num::INVAR_ISA_NS::contract_some(w.taps, [&](auto run) {
        for_each_line(w, r, [&](I t, I e) {
          run(t, r.taps[2],
              [&](F c, int64_t k) { return Op::step(c, load(x + e + k * w.axis[2].dilation)); });
        });
      });
    return Op::finish(y, r.count);
  }
}

template <class Op, class I>
void enqueue_indexed(const PoolGeometry& p, const Call& call, Stream stream) {
  const PoolShape<I> w = pool_shape<I>(p, call);
  const float* x = call.in[0].as<const float>();
  float* out = call.out[0].as<float>();
  launch_for_each(stream, call.out[0].elements(), [=] __device__(int64_t i) {
    const Window<I> r = window_of(w, static_cast<I>(i));
    store_canonical(out + i, reduce_window<Op>(w, r, x + r.channel));
  });
}
template <class Op>
void run(const Call& call, Stream stream) {
  const PoolGeometry p = pool::geometry_of(call);
  if (is_small(p, call))
    enqueue_indexed<Op, int32_t>(p, call, stream);
  else
    enqueue_indexed<Op, int64_t>(p, call, stream);
}
void lp(const Call& call, Stream stream) {
  if (LpPoolAttributes(call).p == 1)
    run<L1Op>(call, stream);
  else
    run<L2Op>(call, stream);
}

// pool.4: the indices of the maxima.
void indices(const Call& call, Stream stream) {
  const View& view = call.in[0];
  const PoolShape<int64_t> w = pool_shape<int64_t>(pool::geometry_of(call), call);
  const bool by_columns = MaxPoolIndicesAttributes(call).column_major != 0;
  const int64_t wide = last_dim(view), high = view.rank > 3 ? view.dim[view.rank - 2] : 1;
  const float* all = view.as<const float>();
  int64_t* out = call.out[0].as<int64_t>();
  launch_for_each(stream, call.out[0].elements(), [=] __device__(int64_t i) {
    const Window<int64_t> r = window_of(w, i);
    const float* x = all + r.channel;
    int64_t best = -1;
    float most = 0;
    for_each_inside(w, r, [&](int64_t e) {
      const float v = x[e];
      if (best < 0 || v > most || (v != v && most == most)) best = e, most = v;
    });
    if (best >= 0 && by_columns)
      best = (best % wide * high + best / wide % high) * (w.size / (high * wide)) + best / (high * wide);
    out[i] = best < 0 ? -1 : r.channel + best;
  });
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_ROW_IS(name, enqueue_of)       \
  extern const GpuKernel INVAR_ROW_OF(name); \
  const GpuKernel INVAR_ROW_OF(name) = {.op = #name, .isa = INVAR_ISA, .enqueue = enqueue_of};
INVAR_ROW_IS(max_pool, INVAR_ISA_NS::run<INVAR_ISA_NS::MaxOp>)
INVAR_ROW_IS(max_pool_indices, INVAR_ISA_NS::indices)
INVAR_ROW_IS(average_pool, INVAR_ISA_NS::run<INVAR_ISA_NS::AverageOp>)
INVAR_ROW_IS(lp_pool, INVAR_ISA_NS::lp)
#undef INVAR_ROW_IS

}  // namespace invar::ops
