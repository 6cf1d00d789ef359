// conv and conv_transpose on a GPU. Weights are packed in f32 by classes of taps,
// [class][group][K][rows], rows padded to a multiple of four; each phase of the outputs is one
// product with the class of its taps. Free by conv.4.
#include "ops/conv/cuda/implicit_gemm.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int64_t kRowPack = 4;
int64_t row_pitch(const conv::WeightLayout& w) {
  return ceil_div(w.rows, kRowPack) * kRowPack;
}
// Calls f(first taps, counts of taps, K, offset in floats) for each class of taps.
template <class Fn>
void each_class(const conv::WeightLayout& w, Fn f) {
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

// The taps of a class: `first`, and every hop-th one after it.
struct TapClass {
  int64_t first[kAxes], hop[kAxes], kernel[kAxes];
  FastDivmod taps[kAxes];
};
template <class W>
void pack_class(const conv::WeightLayout& weights, bool transposed, const TapClass& taps, int64_t k,
                const typename W::T* from, float* to, Stream stream) {
  const conv::WeightLayout w = weights;
  const TapClass c = taps;
  const FastDivmod pitch(row_pitch(w)), by_k(k), channels(w.channels);
  launch_for_each(stream, w.groups * k * row_pitch(w), [=] __device__(int64_t i) {
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
void pack_as(const conv::WeightLayout& w, bool transposed, const View& v, float* packed, Stream stream) {
  each_class(w, [&](const int64_t(&first)[kAxes], const int64_t(&taps)[kAxes], int64_t k, int64_t at) {
    TapClass c;
    for (int d = 0; d < kAxes; ++d) {
      c.first[d] = first[d], c.taps[d] = FastDivmod(taps[d]);
      c.hop[d] = w.axis[d].hop, c.kernel[d] = w.axis[d].kernel;
    }
    pack_class<W>(w, transposed, c, k, v.as<const typename W::T>(), packed + at, stream);
  });
}

template <bool kTransposed>
size_t pack_bytes(const View& v, int i, const Attributes& attrs) {
  if (i != 1) return 0;
  const conv::WeightLayout w = conv::weight_layout(v, attrs, kTransposed);
  int64_t floats = 0;
  each_class(w, [&](auto&, auto&, int64_t k, int64_t at) { floats = at + w.groups * k * row_pitch(w); });
  return static_cast<size_t>(floats) * sizeof(float);
}
template <bool kTransposed>
void pack(const View& v, int, const Attributes& attrs, void* packed, Stream stream) {
  with_format(v.dtype, [&](auto format) {
    pack_as<decltype(format)>(conv::weight_layout(v, attrs, kTransposed), kTransposed, v,
                              static_cast<float*>(packed), stream);
  });
}

// Weights that are not constant are packed for each call.
template <bool kTransposed>
size_t shared_bytes(const Call& call) {
  return call.in[1].packed ? 0 : pack_bytes<kTransposed>(call.in[1], 1, *call.attrs);
}

template <int kThreadRows, int kThreadColumns>
void launch_implicit_gemm(const ConvOutputs& o, const float* x, const float* weights, Bias bias, float* out,
                          Stream stream) {
  const int64_t row_tiles = ceil_div(o.rows, 8 * kThreadRows),
                column_tiles = ceil_div(o.pixels, 16 * kThreadColumns);
  launch(implicit_gemm_kernel<kThreadRows, kThreadColumns>,
         dim3(static_cast<unsigned>(row_tiles * column_tiles * o.groups)), dim3(kGemmThreads), 0, stream, o,
         FastDivmod(row_tiles), FastDivmod(column_tiles), x, weights, bias, out);
}

void enqueue_phases(const Call& call, const ConvGeometry& p, const float* weights, Stream stream) {
  const float* x = call.in[0].as<const float>();
  const Bias bias = call.in.size() > 2 ? Bias{call.in[2].data, call.in[2].dtype} : Bias{};
  float* out = call.out[0].as<float>();
  int64_t phases = 1;
  for (const Axis& a : p.axis) phases *= slide::phases_of(a);
  const int64_t busy = 2 * multiprocessors();
  constexpr int64_t kMax = int64_t{1} << 30;  // so that no index overflows 32 bits
  bool small = call.in[0].elements() < kMax && call.out[0].elements() < kMax && call.in[1].elements() < kMax;
  for (const Axis& a : p.axis)
    small &= a.in + a.out * a.stride + a.kernel * a.dilation < kMax && a.pad < kMax / 2 && a.pad > -kMax / 2;
  for (int64_t i = 0; i < phases; ++i) {
    const ConvPhase f = conv::phase_at(p, i);
    const float* of_class = weights;
    each_class(p.weights, [&](const int64_t(&first)[kAxes], auto&, int64_t, int64_t at) {
      if (first[0] == f.of[0].first && first[1] == f.of[1].first && first[2] == f.of[2].first)
        of_class = weights + at;
    });
    const ConvOutputs o = conv_outputs(p, f, row_pitch(p.weights));
    if (p.depthwise || o.k == 0) {
      if (small)
        launch_direct_conv<int32_t>(o, x, of_class, bias, out, stream);
      else
        launch_direct_conv<int64_t>(o, x, of_class, bias, out, stream);
      continue;
    }
    // The largest tiles that keep all multiprocessors busy.
    auto tiles = [&](int64_t rows, int64_t columns) {
      return o.groups * ceil_div(o.rows, rows) * ceil_div(o.pixels, columns);
    };
    if (o.rows <= 16)
      launch_implicit_gemm<2, 8>(o, x, of_class, bias, out, stream);
    else if (o.rows > 32 && tiles(64, 128) >= busy)
      launch_implicit_gemm<8, 8>(o, x, of_class, bias, out, stream);
    else if (tiles(32, 64) >= busy)
      launch_implicit_gemm<4, 4>(o, x, of_class, bias, out, stream);
    else
      launch_implicit_gemm<4, 2>(o, x, of_class, bias, out, stream);
  }
}
template <bool kTransposed>
void enqueue(const Call& call, Stream stream) {
  if (call.out[0].elements() == 0) return;
  const View& w = call.in[1];
  const float* weights = static_cast<const float*>(w.packed ? w.data : call.shared);
  if (!w.packed) pack<kTransposed>(w, 1, *call.attrs, call.shared, stream);
  enqueue_phases(call, conv::geometry_of(call, kTransposed), weights, stream);
}

}  // namespace
}  // namespace INVAR_ISA_NS

#define INVAR_ROW_IS(name, transposed)                                                          \
  extern const GpuKernel INVAR_ROW_OF(name);                                                    \
  const GpuKernel INVAR_ROW_OF(name) = {.op = #name,                                            \
                                        .isa = INVAR_ISA,                                       \
                                        .shared_bytes = INVAR_ISA_NS::shared_bytes<transposed>, \
                                        .pack_bytes = INVAR_ISA_NS::pack_bytes<transposed>,     \
                                        .enqueue = INVAR_ISA_NS::enqueue<transposed>,           \
                                        .enqueue_pack = INVAR_ISA_NS::pack<transposed>};
INVAR_ROW_IS(conv, false)
INVAR_ROW_IS(conv_transpose, true)
#undef INVAR_ROW_IS

}  // namespace invar::ops
