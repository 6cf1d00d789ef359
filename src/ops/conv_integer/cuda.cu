// GPU conv_integer: a thread takes one result. No sum is rounded, so any order has its bits.
#include "kernels/cuda/vectorized_loop.h"
#include "ops/conv_integer/conv_integer.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

struct DeviceIntegerConvolution {
  conv_integer::Geometry p;
  const uint8_t *x, *w, *x_zero, *w_zero;
  bool each_row;  // w_zero has one of each row
  DType x_type, w_type;
  const int32_t* bias;

  // Element i of the result.
  __device__ int32_t operator()(int64_t i) const {
    int64_t first[slide::kAxes], rest = i;
    for (int d = slide::kAxes - 1; d >= 0; --d) {
      const slide::Axis& a = p.axis[d];
      first[d] = rest % a.out * a.stride - a.pad, rest /= a.out;
    }
    const int64_t rows = p.groups * p.rows, m = rest % rows, image = rest / rows;
    const int32_t zx = x_zero ? conv_integer::integer_of(*x_zero, x_type) : 0;
    const int32_t zw = w_zero ? conv_integer::integer_of(w_zero[each_row ? m : 0], w_type) : 0;
    const uint8_t* row = w + m * p.k;
    const int64_t volume = p.axis[0].in * p.axis[1].in * p.axis[2].in;
    const uint8_t* channel = x + (image * p.groups + m / p.rows) * p.channels * volume;
    auto sum = static_cast<uint32_t>(bias[m]);
    for (int64_t c = 0; c < p.channels; ++c, channel += volume) {
      for (int64_t u = 0; u < p.axis[0].kernel; ++u) {
        const int64_t plane = first[0] + u * p.axis[0].dilation;
        for (int64_t v = 0; v < p.axis[1].kernel; ++v) {
          const int64_t line = first[1] + v * p.axis[1].dilation;
          for (int64_t t = 0; t < p.axis[2].kernel; ++t, ++row) {
            const int64_t at = first[2] + t * p.axis[2].dilation;
            // Outside there is a zero point: a difference of 0.
            if (plane < 0 || plane >= p.axis[0].in || line < 0 || line >= p.axis[1].in || at < 0 ||
                at >= p.axis[2].in)
              continue;
            const uint8_t byte = channel[(plane * p.axis[1].in + line) * p.axis[2].in + at];
            const int32_t a = conv_integer::integer_of(byte, x_type) - zx;
            sum += static_cast<uint32_t>(a * (conv_integer::integer_of(*row, w_type) - zw));
          }
        }
      }
    }
    return static_cast<int32_t>(sum);
  }
};

void convolve_integers(const Call& call, Stream stream) {
  if (call.out[0].elements() == 0) return;
  auto bytes = [&](size_t i) { return i < call.in.size() ? call.in[i].as<const uint8_t>() : nullptr; };
  const bool each_row = call.in.size() > 4 && call.in[4].elements() != 1;
  launch_generate<1>(
      stream, call.out[0].elements(), call.out[0].as<int32_t>(),
      DeviceIntegerConvolution{conv_integer::geometry_of(call), bytes(0), bytes(1), bytes(3), bytes(4),
                               each_row, call.in[0].dtype, call.in[1].dtype, call.in[2].as<const int32_t>()});
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW;
const GpuKernel INVAR_ROW = {
    .op = "conv_integer", .isa = INVAR_ISA, .enqueue = INVAR_ISA_NS::convolve_integers};

}  // namespace invar::ops
