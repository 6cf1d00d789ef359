// Stores blocks of convolution results: bias, and scattering to the result tensor. Compiled once
// per instruction set.
#pragma once
#include "kernels/cpu/gemm_epilogue.h"
#include "ops/conv/conv.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// Reports finished results, as one row where they are contiguous: callbacks cost less then.
INVAR_INLINE void notify_block(const Call& call, const Region& r) {
  notify_epilogue(call, r.pitch == r.n ? Region{r.at, r.n * r.rows, 1, 0} : r);
}

// Scatters columns [begin, begin + n) of a phase, given as rows of `ld` at `from`: row r is channel
// m + r.
[[maybe_unused]] void scatter(const Call& call, const conv::ConvGeometry& p, const conv::ConvPhase& f,
                              int64_t image, int64_t m, int64_t rows, int64_t begin, int64_t n,
                              const float* from, int64_t ld) {
  float* const out = call.out[0].as<float>();
  const int64_t wide = f.of[2].count, high = f.of[1].count, total = p.groups * p.rows;
  const int64_t size[kAxes] = {p.axis[0].out, p.axis[1].out, p.axis[2].out}, step = f.of[2].step;
  int64_t line = begin / wide, j = begin % wide;
  const int64_t channel = size[0] * size[1] * size[2];
  for (int64_t done = 0; done < n; ++line, j = 0) {
    const int64_t in_image = f.of[0].count * high, i = line % in_image;
    const int64_t length = num::min_i64(wide - j, n - done);
    const int64_t d = f.of[0].start + i / high * f.of[0].step, h = f.of[1].start + i % high * f.of[1].step;
    const int64_t place = ((image + line / in_image) * total + m) * channel + (d * size[1] + h) * size[2] +
                          f.of[2].start + j * step;
    for (int64_t r = 0; r < rows; ++r) {
      const float* y = from + r * ld + done;
      float* to = out + place + r * channel;
      if (step == 1)
        for (int64_t q = 0; q < length; ++q) to[q] = y[q];
      else
        for (int64_t q = 0; q < length; ++q) to[q * step] = y[q];
    }
    if (step == 1) notify_epilogue(call, {place, length, rows, channel});
    done += length;
  }
}

// Elements [m, m + n) of the bias, widened; null if there is no bias.
const float* widened_bias(const Call& call, int64_t m, int64_t n, float* to) {
  if (call.in.size() < 3) return nullptr;
  with_format(call.in[2].dtype, [&](auto format) {
    using B = decltype(format);
    for (int64_t r = 0; r < n; ++r) to[r] = B::one(call.in[2].as<const typename B::T>()[m + r]);
  });
  return to;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
