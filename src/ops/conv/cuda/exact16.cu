// conv_exact16: the weights are rounded to planes of bytes, once if they are constant; two kernels
// find the scales of all patches; then one multiplies.
#include "kernels/forced_route.h"
#include "ops/conv/cuda/exact16.cuh"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

int64_t row_length(const View& w) {
  int64_t k = 1;
  for (int i = 1; i < w.rank; ++i) k *= w.dim[i];
  return k;
}
size_t aligned_bytes(int64_t bytes) {
  return static_cast<size_t>((bytes + 255) / 256 * 256);
}
size_t pack_bytes_exact16(const View& v, int i, const Attributes&) {
  if (i != 1) return 0;
  const int64_t per_row = 2 * exact_weights(nullptr, 0, row_length(v)).pitch + int64_t{sizeof(int32_t)};
  return static_cast<size_t>(v.dim[0] * per_row);
}
void pack_exact16(const View& v, int, const Attributes&, void* packed, Stream stream) {
  if (v.dim[0] == 0) return;
  const int64_t k = row_length(v), channels = v.dim[1], taps = k / (channels ? channels : 1);
  const ExactWeights to = exact_weights(packed, v.dim[0], k);
  with_format(v.dtype, [&](auto format) {
    using W = decltype(format);
    launch(round_weights_kernel<W>, dim3(static_cast<unsigned>(v.dim[0])), dim3(kWeightThreads), 0, stream,
           v.as<const typename W::T>(), k, taps, FastDivmod(channels), to.pitch,
           const_cast<uint8_t*>(to.planes), const_cast<int32_t*>(to.scales));
  });
}

// Where a call's shared memory has what: weights that are not packed, the maxima of pixels, the
// scales of patches.
struct SharedExact {
  ConvOutputs o;
  int64_t images;
  size_t maxima, scales, all;
};
SharedExact shared_exact16(const Call& call) {
  const ConvGeometry p = conv::geometry_of(call, false);
  SharedExact s{conv_outputs(p, conv::phase_at(p, 0), 0), p.images, 0, 0, 0};
  constexpr int64_t kWord = sizeof(int32_t);
  s.maxima = call.in[1].packed
                 ? 0
                 : aligned_bytes(static_cast<int64_t>(pack_bytes_exact16(call.in[1], 1, *call.attrs)));
  s.scales = s.maxima + aligned_bytes(s.images * s.o.groups * s.o.plane * kWord);
  s.all = s.scales + aligned_bytes(s.o.groups * s.o.pixels * kWord);
  return s;
}
size_t shared_bytes_exact16(const Call& call) {
  return call.out[0].elements() == 0 ? 0 : shared_exact16(call).all;
}

bool has_mma() {
  cudaFuncAttributes code{};
  return cudaFuncGetAttributes(&code, exact16_conv_kernel<true, false>) == cudaSuccess &&
         code.ptxVersion >= 80;
}

void enqueue_exact16(const Call& call, Stream stream) {
  if (call.out[0].elements() == 0) return;
  const SharedExact s = shared_exact16(call);
  const View &x = call.in[0], &weights = call.in[1];
  auto* const shared = static_cast<char*>(call.shared);
  if (!weights.packed) pack_exact16(weights, 1, *call.attrs, shared, stream);
  auto* const maxima = reinterpret_cast<uint32_t*>(shared + s.maxima);
  auto* const scales = reinterpret_cast<int32_t*>(shared + s.scales);
  const ConvOutputs& o = s.o;
  const int64_t tiles = ceil_div(o.plane, kWarp), channels = weights.dim[1];
  launch(pixel_maxima_kernel, dim3(static_cast<unsigned>(s.images * o.groups * tiles)),
         dim3(kWarp * kMaximaThreads), 0, stream, x.as<const float>(), channels, o.plane, FastDivmod(tiles),
         maxima);
  enqueue_patch_scales(o, o.k / (channels ? channels : 1), maxima, scales, stream);
  const ExactWeights w = exact_weights(weights.packed ? weights.data : shared, weights.dim[0], o.k);
  const Bias bias = call.in.size() > 2 ? Bias{call.in[2].data, call.in[2].dtype} : Bias{};
  const int64_t rows = ceil_div(o.rows, kExactTile), columns = ceil_div(o.pixels, kExactTile);
  const bool tensor_cores = variant() != 1 && has_mma(), is_long = w.pitch / kExactDepth > kChunksToJoin;
  const auto kernel = tensor_cores
                          ? is_long ? exact16_conv_kernel<true, true> : exact16_conv_kernel<true, false>
                      : is_long ? exact16_conv_kernel<false, true>
                                : exact16_conv_kernel<false, false>;
  launch(kernel, dim3(static_cast<unsigned>(rows * columns * o.groups)), dim3(kExactThreads), 0, stream, o, w,
         scales, FastDivmod(rows), FastDivmod(columns), x.as<const float>(), bias, call.out[0].as<float>());
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(conv_exact16);
const GpuKernel INVAR_ROW_OF(conv_exact16) = {.op = "conv_exact16",
                                              .isa = INVAR_ISA,
                                              .shared_bytes = INVAR_ISA_NS::shared_bytes_exact16,
                                              .pack_bytes = INVAR_ISA_NS::pack_bytes_exact16,
                                              .enqueue = INVAR_ISA_NS::enqueue_exact16,
                                              .enqueue_pack = INVAR_ISA_NS::pack_exact16};

}  // namespace invar::ops
