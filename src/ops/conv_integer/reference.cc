// spec: conv_integer.1 - conv_integer.3.
#include "kernels/reference.h"

#include "ops/conv_integer/conv_integer.h"

namespace invar::ops {
namespace {

void run_conv_integer(const Call& call, int, int64_t begin, int64_t end, void*) {
  const conv_integer::Geometry p = conv_integer::geometry_of(call);
  const View &x = call.in[0], &w = call.in[1];
  const int32_t x_zero = conv_integer::integer_of(conv_integer::zero_byte(call, 0, 0), x.dtype);
  const int64_t n = call.out[0].elements();
  for (int64_t i = begin * kChunk; i < n && i < end * kChunk; ++i) {
    int64_t at[slide::kAxes], rest = i;
    for (int d = slide::kAxes - 1; d >= 0; --d) at[d] = rest % p.axis[d].out, rest /= p.axis[d].out;
    const int64_t m = rest % (p.groups * p.rows), image = rest / (p.groups * p.rows);
    const int32_t w_zero = conv_integer::integer_of(conv_integer::zero_byte(call, 1, m), w.dtype);
    auto sum = static_cast<uint32_t>(call.in[2].as<const int32_t>()[m]);
    for (int64_t k = 0; k < p.k; ++k) {
      const int64_t channel = k / p.taps;
      int64_t tap = k % p.taps, r[slide::kAxes];
      for (int d = slide::kAxes - 1; d >= 0; --d) r[d] = tap % p.axis[d].kernel, tap /= p.axis[d].kernel;
      int64_t place = (image * p.groups + m / p.rows) * p.channels + channel;
      bool inside = true;
      for (int d = 0; d < slide::kAxes; ++d) {
        const slide::Axis& a = p.axis[d];
        const int64_t j = at[d] * a.stride + r[d] * a.dilation - a.pad;
        inside = inside && j >= 0 && j < a.in;
        place = place * a.in + j;
      }
      if (!inside) continue;  // a zero point there: a difference of 0
      const int32_t a = conv_integer::integer_of(x.as<const uint8_t>()[place], x.dtype) - x_zero;
      const int32_t b = conv_integer::integer_of(w.as<const uint8_t>()[m * p.k + k], w.dtype) - w_zero;
      sum += static_cast<uint32_t>(a * b);
    }
    call.out[0].as<int32_t>()[i] = static_cast<int32_t>(sum);
  }
}

}  // namespace

extern const OpContract contract_conv_integer;
extern const CpuKernel row_conv_integer_reference;
const OpContract contract_conv_integer = {.op = "conv_integer", .check = conv_integer::check};
const CpuKernel row_conv_integer_reference = {
    .op = "conv_integer", .isa = "reference", .units = chunk_units, .run = run_conv_integer};

}  // namespace invar::ops
