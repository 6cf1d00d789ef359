// Groups of one channel: every tap is a vector of neighbouring outputs times one weight. Blocks of outputs as rows of one pitch,
// the few columns between rows computed and dropped, so that a vector may hold the end of one row and the begin of the next.
// Compiled once per instruction set.
#pragma once
#include "num/contract/lanes.h"
#include "ops/conv/columns.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

constexpr int kThinVectors = kW == 16 || kW == 4 ? 16 : 8;  // accumulators in flight
constexpr int64_t kThinSlack = kThinVectors * kW;           // is computed, or read, behind the last output

// A block of outputs: a place on the first axis, rows, columns.
struct Block {
  int64_t deep, row, rows, column, columns;
};

// What a phase reads of an axis from output `begin` on: positions from this one, the tap that reads the lowest.
INVAR_INLINE int64_t lowest(const Axis& a, const conv::Phase& p, int64_t begin) {
  return begin + (a.transposed ? p.shift + (p.taps - 1) * p.shift_hop : 0);
}

// [taps of the first axis][planes][planes][lines][pitch] of the operand's channel x.
INVAR_INLINE void copy_block(const conv::Plan& p, const conv::Phases& f, const conv::ThinCut& c,
                             const float* x, const Block& b, float* to) {
  const Axis &deep = p.axis[0], &high = p.axis[1], &wide = p.axis[2];
  for (int64_t t = 0; t < f.of[0].taps; ++t) {
    const conv::Tap tap = conv::tap_of(deep, f.of[0], t);
    const int64_t d = element(deep, tap.plane, b.deep + tap.shift);
    for (int64_t q = 0; q < high.planes; ++q) {
      float* planes = to + (t * high.planes + q) * wide.planes * c.lines * c.pitch;
      for (int64_t i = 0; i < c.lines; ++i) {
        const int64_t h = element(high, q, lowest(high, f.of[1], b.row) + i);
        const bool outside = d < 0 || d >= deep.in || h < 0 || h >= high.in;
        copy_line(wide, x + ((outside ? 0 : d) * high.in + (outside ? 0 : h)) * wide.in, outside,
                  lowest(wide, f.of[2], b.column), c.pitch, c.lines * c.pitch, planes + i * c.pitch);
      }
    }
  }
}

// offset[t]: of tap t in that copy.
INVAR_INLINE void thin_offsets(const conv::Plan& p, const conv::Phases& f, const conv::ThinCut& c,
                               int64_t* offset) {
  const int64_t plane = c.lines * c.pitch;
  for (int64_t t0 = 0; t0 < f.of[0].taps; ++t0)
    for (int64_t t1 = 0; t1 < f.of[1].taps; ++t1)
      for (int64_t t2 = 0; t2 < f.of[2].taps; ++t2) {
        const conv::Tap high = conv::tap_of(p.axis[1], f.of[1], t1),
                        wide = conv::tap_of(p.axis[2], f.of[2], t2);
        *offset++ = ((t0 * p.axis[1].planes + high.plane) * p.axis[2].planes + wide.plane) * plane +
                    (high.shift - lowest(p.axis[1], f.of[1], 0)) * c.pitch + wide.shift -
                    lowest(p.axis[2], f.of[2], 0);
      }
}

// to[j] = the contraction of w[0 ... k) with x[offset[t] + j] for j < n and up to kThinSlack more.
INVAR_INLINE void thin_rows(const float* x, const int64_t* offset, const float* w, int64_t k, int64_t n,
                            float* to) {
  constexpr int R = kThinVectors;
  for (int64_t j = 0; j < n; j += R * kW) {
    F y[R];
    num::INVAR_ISA_NS::contract<R>(
        k,
        [&](int64_t begin, int64_t end, F(&c)[R]) __attribute__((always_inline)) {
          F acc[R];
#pragma GCC unroll 32
          for (int v = 0; v < R; ++v) acc[v] = zero();
          for (int64_t t = begin; t < end; ++t) {
            const float* at = x + offset[t] + j;
            const F weight = set1(w[t]);
#pragma GCC unroll 32
            for (int v = 0; v < R; ++v) acc[v] = fma(load(at + v * kW), weight, acc[v]);
          }
#pragma GCC unroll 32
          for (int v = 0; v < R; ++v) c[v] = acc[v];
        },
        y);
    for (int v = 0; v < R; ++v) store(to + j + v * kW, y[v]);
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
