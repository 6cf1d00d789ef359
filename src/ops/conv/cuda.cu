// Weights are packed in f32 by classes of taps, [class][group][K][rows], rows filled up to packs; each phase of the outputs is one
// product with the class of its taps. Free by conv.4.
#include "ops/conv/cuda/implicit_gemm.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int64_t kRowPack = 4;
int64_t row_pitch(const conv::Weights& w) {
  return ceil_div(w.rows, kRowPack) * kRowPack;
}
// f(first taps, how many, K, floats before) for every class of taps.
template <class Fn>
void each_class(const conv::Weights& w, Fn f) {
  int64_t at = 0, classes = 1;
  for (const Axis& a : w.axis) classes *= a.classes;
  for (int64_t i = 0; i < classes; ++i) {
    int64_t first[kAxes], taps[kAxes], k = w.channels, rest = i;
    for (int d = kAxes - 1; d >= 0; --d) {
      first[d] = rest % w.axis[d].classes, rest /= w.axis[d].classes;
      taps[d] = slide::taps_of(w.axis[d], first[d]), k *= taps[d];
    }
    f(first, taps, k, at);
    at += w.groups * k * row_pitch(w);
  }
}

// The taps of a class: `first` and every hop-th one behind it.
struct Class {
  int64_t first[kAxes], hop[kAxes], kernel[kAxes];
  Divisor taps[kAxes];
};
template <class W>
void pack_class(const conv::Weights& weights, bool transposed, const Class& taps, int64_t k,
                const typename W::T* from, float* to, Stream stream) {
  const conv::Weights w = weights;
  const Class c = taps;
  const Divisor pitch(row_pitch(w)), by_k(k), channels(w.channels);
  each(stream, w.groups * k * row_pitch(w), [=] __device__(int64_t i) {
    int64_t group = i;
    const int64_t row = pitch.remainder(group);
    int64_t rest = by_k.remainder(group), tap = 0, step = 1;
    const int64_t channel = channels.remainder(rest);
#pragma unroll
    for (int d = kAxes - 1; d >= 0; --d) {
      tap += (c.first[d] + c.taps[d].remainder(rest) * c.hop[d]) * step;
      step *= c.kernel[d];
    }
    to[i] = row < w.rows ? W::one(from[conv::weight_at(w, transposed, group, row, channel, tap)]) : 0;
  });
}
template <class W>
void pack_as(const conv::Weights& w, bool transposed, const View& v, float* packed, Stream stream) {
  each_class(w, [&](const int64_t(&first)[kAxes], const int64_t(&taps)[kAxes], int64_t k, int64_t at) {
    Class c;
    for (int d = 0; d < kAxes; ++d) {
      c.first[d] = first[d], c.taps[d] = Divisor(taps[d]);
      c.hop[d] = w.axis[d].hop, c.kernel[d] = w.axis[d].kernel;
    }
    pack_class<W>(w, transposed, c, k, v.as<const typename W::T>(), packed + at, stream);
  });
}

template <bool kTransposed>
size_t pack_bytes(const View& v, int i, const Attrs& attrs) {
  if (i != 1) return 0;
  const conv::Weights w = conv::weights_of(v, attrs, kTransposed);
  int64_t floats = 0;
  each_class(w, [&](auto&, auto&, int64_t k, int64_t at) { floats = at + w.groups * k * row_pitch(w); });
  return static_cast<size_t>(floats) * sizeof(float);
}
template <bool kTransposed>
void pack(const View& v, int, const Attrs& attrs, void* packed, Stream stream) {
  with_format(v.dtype, [&](auto format) {
    pack_as<decltype(format)>(conv::weights_of(v, attrs, kTransposed), kTransposed, v,
                              static_cast<float*>(packed), stream);
  });
}

// Weights that come with a call are packed for it.
template <bool kTransposed>
size_t shared_bytes(const Call& call) {
  return call.in[1].packed ? 0 : pack_bytes<kTransposed>(call.in[1], 1, *call.attrs);
}

template <int kHigh, int kWide>
void product(const Outputs& o, const float* x, const float* weights, Bias bias, float* out, Stream stream) {
  const int64_t row_tiles = ceil_div(o.rows, 8 * kHigh), column_tiles = ceil_div(o.places, 16 * kWide);
  launch(product_kernel<kHigh, kWide>, dim3(static_cast<unsigned>(row_tiles * column_tiles * o.groups)),
         dim3(kProductThreads), 0, stream, o, Divisor(row_tiles), Divisor(column_tiles), x, weights, bias,
         out);
}

void enqueue_phases(const Call& call, const Plan& p, const float* weights, Stream stream) {
  const float* x = call.in[0].as<const float>();
  const Bias bias = call.in.size() > 2 ? Bias{call.in[2].data, call.in[2].dtype} : Bias{};
  float* out = call.out[0].as<float>();
  int64_t phases = 1;
  for (const Axis& a : p.axis) phases *= slide::phases_of(a);
  const int64_t busy = 2 * processors();
  constexpr int64_t kMost = int64_t{1} << 30;  // so that no place overflows 32 bits
  bool small =
      call.in[0].elements() < kMost && call.out[0].elements() < kMost && call.in[1].elements() < kMost;
  for (const Axis& a : p.axis)
    small &=
        a.in + a.out * a.stride + a.kernel * a.dilation < kMost && a.pad < kMost / 2 && a.pad > -kMost / 2;
  for (int64_t i = 0; i < phases; ++i) {
    const Phases f = conv::phases_at(p, i);
    const float* of_class = weights;
    each_class(p.weights, [&](const int64_t(&first)[kAxes], auto&, int64_t, int64_t at) {
      if (first[0] == f.of[0].first && first[1] == f.of[1].first && first[2] == f.of[2].first)
        of_class = weights + at;
    });
    const Outputs o = outputs_of(p, f, row_pitch(p.weights));
    if (p.thin || o.k == 0) {
      if (small)
        each_output<int32_t>(o, x, of_class, bias, out, stream);
      else
        each_output<int64_t>(o, x, of_class, bias, out, stream);
      continue;
    }
    // The largest tiles that keep all processors busy.
    auto tiles = [&](int64_t rows, int64_t columns) {
      return o.groups * ceil_div(o.rows, rows) * ceil_div(o.places, columns);
    };
    if (o.rows <= 16)
      product<2, 8>(o, x, of_class, bias, out, stream);
    else if (o.rows > 32 && tiles(64, 128) >= busy)
      product<8, 8>(o, x, of_class, bias, out, stream);
    else if (tiles(32, 64) >= busy)
      product<4, 4>(o, x, of_class, bias, out, stream);
    else
      product<4, 2>(o, x, of_class, bias, out, stream);
  }
}
template <bool kTransposed>
void enqueue(const Call& call, Stream stream) {
  if (call.out[0].elements() == 0) return;
  const View& w = call.in[1];
  const float* weights = static_cast<const float*>(w.packed ? w.data : call.shared);
  if (!w.packed) pack<kTransposed>(w, 1, *call.attrs, call.shared, stream);
  enqueue_phases(call, conv::plan_of(call, kTransposed), weights, stream);
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_ROW_IS(name, transposed)                                                       \
  extern const Kernel INVAR_ROW_OF(name);                                                    \
  const Kernel INVAR_ROW_OF(name) = {.op = #name,                                            \
                                     .isa = INVAR_ISA,                                       \
                                     .shared_bytes = INVAR_ISA_NS::shared_bytes<transposed>, \
                                     .pack_bytes = INVAR_ISA_NS::pack_bytes<transposed>,     \
                                     .enqueue = INVAR_ISA_NS::enqueue<transposed>,           \
                                     .enqueue_pack = INVAR_ISA_NS::pack<transposed>};
INVAR_ROW_IS(conv, false)
INVAR_ROW_IS(conv_transpose, true)
#undef INVAR_ROW_IS

}  // namespace invar::ops
