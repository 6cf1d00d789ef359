// Shapes of an integer convolution (conv_integer.1), shared by all rows of the room.
#pragma once
#include "kernels/sliding_window.h"
#include "ops/conv_integer/attributes.h"

namespace invar::ops::conv_integer {

using slide::Axis;
using slide::kAxes;

// The layout of packed weights follows from their shape and the groups alone.
struct Weights {
  int64_t groups, rows, channels, taps;  // rows and channels of a group
  int64_t k;                             // taps * channels: products of a result
  int64_t last;                          // taps of the last axis
};
Weights weights_of(const View& weight, const Attributes&);

struct Geometry : Weights {
  int64_t images, columns;  // columns: places of the result in a channel
  Axis axis[kAxes];
  int64_t channel;  // bytes of a channel in the padded copy, which is split by strides
  bool copies;      // whether there is one; else x is read where it lies
};
Geometry geometry_of(const Call&);
const char* check(const Call&);

// The zero point of x (operand 0) or of the weights (1) at output channel m, as it is stored.
static inline uint8_t zero_byte(const Call& call, size_t operand, int64_t m) {
  if (call.in.size() <= 3 + operand) return 0;
  const View& z = call.in[3 + operand];
  return z.as<const uint8_t>()[z.elements() == 1 ? 0 : m];
}
INVAR_INLINE int32_t integer_of(uint8_t byte, DType dtype) {
  return dtype == DType::i8 ? static_cast<int8_t>(byte) : byte;
}

// Offset of tap t of output 0 in a channel of the copy.
INVAR_INLINE int64_t tap_place(const Geometry& p, int64_t tap) {
  int64_t t[kAxes], plane = 0, shift = 0, size = 1;
  for (int d = kAxes - 1; d >= 0; --d) t[d] = tap % p.axis[d].kernel, tap /= p.axis[d].kernel;
  for (int d = 0; d < kAxes; ++d) {
    const Axis& a = p.axis[d];
    plane = plane * a.planes + t[d] % a.planes;
    shift = shift * a.length + t[d] * a.dilation / a.stride;
    size *= a.length;
  }
  return plane * size + shift;
}

}  // namespace invar::ops::conv_integer
