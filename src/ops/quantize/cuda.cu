// Quantisation and dequantisation: a thread for each pack of elements. A pack has one scale, or
// scales that are contiguous like its elements.
#include "kernels/cuda/fast_divide.h"
#include "kernels/cuda/vectorized_loop.h"
#include "ops/quantize/cpu/graph.h"
#include "ops/quantize/quantize.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// The index arithmetic of scales, for a kernel.
struct ScaleGrid {
  bool one, by_axis;
  FastDivmod inner, n, block;
  int64_t blocks, columns;
};
__device__ int64_t scale_index(const ScaleGrid& g, int64_t i) {
  if (g.one) return 0;
  const int64_t column = g.inner.remainder(i), k = g.n.remainder(i);
  return g.by_axis ? k : (i * g.blocks + g.block.quotient(k)) * g.columns + column;
}

template <class T>
struct Quantize {
  using X = float;
  using Y = T;
  using Zero = T;
  static __device__ T one(float x, float s, int32_t zero) {
    constexpr int32_t kLow = std::is_signed_v<T> ? -128 : 0, kHigh = kLow + 255;
    const int32_t y = quantized(F{x}, F{s}, I{zero}).v;
    return static_cast<T>(y < kLow ? kLow : y > kHigh ? kHigh : y);
  }
};
template <class T>
struct Dequantize {
  using X = T;
  using Y = float;
  using Zero = T;
  static __device__ float one(T q, float s, int32_t zero) {
    return canonicalize(mul(to_float(I{q - zero}), F{s})).v;
  }
};

constexpr int kPack = 4;  // elements of a pack
// scale_per_element: each element of a pack has its own scale. Not packs: an element at a time.
template <class Op>
__global__ void __launch_bounds__(kElementwiseThreads)
    quantize_kernel(int64_t n, bool packs, bool scale_per_element, ScaleGrid g, const typename Op::X* x,
                    const float* scale, const typename Op::Zero* zeros, typename Op::Y* out) {
  const int64_t base = blockIdx.x * int64_t{kElementwiseThreads * kPack};
  if (packs) {
    const int64_t i = base + threadIdx.x * kPack;
    if (i >= n) return;
    const auto v = load_pack<kPack>(x + i);
    const int64_t at = scale_index(g, i);
    Pack<typename Op::Y, kPack> y;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const int64_t k = at + (scale_per_element ? j : 0);
      y.v[j] = Op::one(v.v[j], scale[k], zeros ? zeros[k] : 0);
    }
    store_pack(out + i, y);
    return;
  }
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    const int64_t i = base + j * kElementwiseThreads + threadIdx.x;
    if (i >= n) return;
    const int64_t k = scale_index(g, i);
    out[i] = Op::one(x[i], scale[k], zeros ? zeros[k] : 0);
  }
}

template <class Op>
void launch_quantize(const Call& call, Stream stream) {
  const ScaleLayout grid = scale_layout(call);
  const ScaleGrid g{.one = !grid.block && !grid.by_axis,
                    .by_axis = grid.by_axis,
                    .inner = FastDivmod(grid.inner),
                    .n = FastDivmod(grid.n),
                    .block = FastDivmod(grid.block),
                    .blocks = grid.blocks,
                    .columns = grid.inner};
  const auto* x = call.in[0].as<const typename Op::X>();
  const auto* zeros = call.in.size() > 2 ? call.in[2].as<const typename Op::Zero>() : nullptr;
  auto* out = call.out[0].as<typename Op::Y>();
  const int64_t n = call.out[0].elements();
  const bool rows = grid.inner == 1;  // the axis is contiguous
  const bool scale_per_element =
      rows ? grid.by_axis : grid.block != 0;  // with one scale `inner` is 0 and `rows` false
  bool packs = n % kPack == 0 && is_aligned<kPack>(x) && is_aligned<kPack>(out);
  if (!g.one) packs &= (rows ? grid.n | grid.block : grid.inner) % kPack == 0;
  launch(quantize_kernel<Op>, dim3(static_cast<unsigned>(ceil_div(n, kElementwiseThreads * kPack))),
         dim3(kElementwiseThreads), 0, stream, n, packs, scale_per_element, g, x,
         call.in[1].as<const float>(), zeros, out);
}

void quantize(const Call& call, Stream stream) {
  if (call.out[0].dtype == DType::i8)
    launch_quantize<Quantize<int8_t>>(call, stream);
  else
    launch_quantize<Quantize<uint8_t>>(call, stream);
}
void dequantize(const Call& call, Stream stream) {
  switch (call.in[0].dtype) {
    case DType::i8: return launch_quantize<Dequantize<int8_t>>(call, stream);
    case DType::u8: return launch_quantize<Dequantize<uint8_t>>(call, stream);
    default: launch_quantize<Dequantize<int32_t>>(call, stream);
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(quantize_linear), INVAR_ROW_OF(dequantize_linear);
const GpuKernel INVAR_ROW_OF(quantize_linear) = {
    .op = "quantize_linear", .isa = INVAR_ISA, .enqueue = INVAR_ISA_NS::quantize};
const GpuKernel INVAR_ROW_OF(dequantize_linear) = {
    .op = "dequantize_linear", .isa = INVAR_ISA, .enqueue = INVAR_ISA_NS::dequantize};

}  // namespace invar::ops
