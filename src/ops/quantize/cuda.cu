// A thread per pack of elements, whose scales are one, or lie together as the elements do.
#include "kernels/cuda/fast_divide.h"
#include "kernels/cuda/vectorized_loop.h"
#include "ops/quantize/cpu/graph.h"
#include "ops/quantize/quantize.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// Grid for a kernel.
struct Scales {
  bool one, by_axis;
  Divisor inner, n, block;
  int64_t blocks, columns;
};
__device__ int64_t scale_of(const Scales& g, int64_t i) {
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
    return canon(mul(to_float(I{q - zero}), F{s})).v;
  }
};

constexpr int kScaled = 4;  // elements of a pack
// each: the scales of a pack lie together. Not packs: an element at a time.
template <class Op>
__global__ void __launch_bounds__(kFlatThreads)
    scaled_kernel(int64_t n, bool packs, bool each, Scales g, const typename Op::X* x, const float* scale,
                  const typename Op::Zero* zeros, typename Op::Y* out) {
  const int64_t base = blockIdx.x * int64_t{kFlatThreads * kScaled};
  if (packs) {
    const int64_t i = base + threadIdx.x * kScaled;
    if (i >= n) return;
    const auto v = load_pack<kScaled>(x + i);
    const int64_t at = scale_of(g, i);
    Pack<typename Op::Y, kScaled> y;
#pragma unroll
    for (int j = 0; j < kScaled; ++j) {
      const int64_t k = at + (each ? j : 0);
      y.v[j] = Op::one(v.v[j], scale[k], zeros ? zeros[k] : 0);
    }
    store_pack(out + i, y);
    return;
  }
#pragma unroll
  for (int j = 0; j < kScaled; ++j) {
    const int64_t i = base + j * kFlatThreads + threadIdx.x;
    if (i >= n) return;
    const int64_t k = scale_of(g, i);
    out[i] = Op::one(x[i], scale[k], zeros ? zeros[k] : 0);
  }
}

template <class Op>
void scaled(const Call& call, Stream stream) {
  const Grid grid = grid_of(call);
  const Scales g{.one = !grid.block && !grid.by_axis,
                 .by_axis = grid.by_axis,
                 .inner = Divisor(grid.inner),
                 .n = Divisor(grid.n),
                 .block = Divisor(grid.block),
                 .blocks = grid.blocks,
                 .columns = grid.inner};
  const auto* x = call.in[0].as<const typename Op::X>();
  const auto* zeros = call.in.size() > 2 ? call.in[2].as<const typename Op::Zero>() : nullptr;
  auto* out = call.out[0].as<typename Op::Y>();
  const int64_t n = call.out[0].elements();
  const bool rows = grid.inner == 1;                        // the axis lies along memory
  const bool each = rows ? grid.by_axis : grid.block != 0;  // of one scale `rows` is false, as `inner` is 0
  bool packs = n % kScaled == 0 && is_aligned<kScaled>(x) && is_aligned<kScaled>(out);
  if (!g.one) packs &= (rows ? grid.n | grid.block : grid.inner) % kScaled == 0;
  launch(scaled_kernel<Op>, dim3(static_cast<unsigned>(ceil_div(n, kFlatThreads * kScaled))),
         dim3(kFlatThreads), 0, stream, n, packs, each, g, x, call.in[1].as<const float>(), zeros, out);
}

void quantize(const Call& call, Stream stream) {
  if (call.out[0].dtype == DType::i8)
    scaled<Quantize<int8_t>>(call, stream);
  else
    scaled<Quantize<uint8_t>>(call, stream);
}
void dequantize(const Call& call, Stream stream) {
  switch (call.in[0].dtype) {
    case DType::i8: return scaled<Dequantize<int8_t>>(call, stream);
    case DType::u8: return scaled<Dequantize<uint8_t>>(call, stream);
    default: scaled<Dequantize<int32_t>>(call, stream);
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW_OF(quantize_linear), INVAR_ROW_OF(dequantize_linear);
const Kernel INVAR_ROW_OF(quantize_linear) = {
    .op = "quantize_linear", .isa = INVAR_ISA, .enqueue = INVAR_ISA_NS::quantize};
const Kernel INVAR_ROW_OF(dequantize_linear) = {
    .op = "dequantize_linear", .isa = INVAR_ISA, .enqueue = INVAR_ISA_NS::dequantize};

}  // namespace invar::ops
