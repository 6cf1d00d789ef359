// Softmax of contiguous rows. Included by cpu.cc only.
#pragma once
#include <bit>

#include "kernels/cpu/vector_io.h"
#include "num/exp/exp.h"
#include "num/log/log.h"
#include "num/reduce/lanes.h"
#include "ops/softmax/softmax.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// The least number, subnormal ones aside, whose quotient by l >= 1 is rounded to 2^-126 or more.
// Quotients of lesser ones are stored as +0 (formats.5) without a division, which is slow where its
// result is subnormal. Exactly it is l 2^-126 (1 - 2^-24): a number if l is a power of two, and
// then the quotient is halfway and rounded to even.
constexpr float least_dividend(float l) {
  const float least = l * 0x1p-126f;
  const auto u = std::bit_cast<uint32_t>(least);
  return std::bit_cast<float>(u - !(u & 0x7fffff));
}
constexpr bool is_least_dividend(float e, float l) {
  const float before = std::bit_cast<float>(std::bit_cast<uint32_t>(e) - 1);
  return e / l >= 0x1p-126f && before / l < 0x1p-126f;
}
static_assert(is_least_dividend(least_dividend(2), 2) && is_least_dividend(least_dividend(0x1p24f), 0x1p24f));
static_assert(is_least_dividend(least_dividend(3), 3) &&
              is_least_dividend(least_dividend(0x1.fffffep9f), 0x1.fffffep9f));
static_assert(is_least_dividend(least_dividend(0x1.000002p9f), 0x1.000002p9f));

// The maximum of n elements (softmax.1). log_softmax needs the exact one: the sign of a zero is
// visible in x - m if l is 1. softmax does not (formats.7): a NaN makes its own weight and so the
// sum NaN, and exp(0) = exp(-0).
template <bool kLog>
INVAR_INLINE F maximum_of(const float* x, int64_t n) {
  return set1(num::INVAR_ISA_NS::row_extreme<num::INVAR_ISA_NS::Largest, !kLog>(x, n));
}

// Stores the weights of n elements (softmax.2), and calls overlapped(i, lanes) for each vector.
// Vectors whose rounding is uncertain (num/exp/fast_path.h) are recorded, 64 at a time, and
// recomputed afterwards: they are about one in thirty on AVX2, and an unpredictable branch costs
// more than its work.
template <class Overlapped>
INVAR_INLINE void exp_weights(const float* x, float* y, int64_t n, F most, Overlapped overlapped) {
  namespace lanes = num::INVAR_ISA_NS;
  int64_t i = 0;
  if constexpr (lanes::kTable > 1)
    while (i + kW <= n) {
      uint64_t uncertain = 0;
      const int64_t vectors = (n - i) / kW, to = i + (vectors < 64 ? vectors : 64) * kW;
#pragma GCC unroll 2
      for (; i < to; i += kW) {
        lanes::RoundedResult v = lanes::exp_stored_fast(sub(load(x + i), most));
        store(y + i, v.y);
        uncertain = 2 * uncertain + !all(v.sure);
        overlapped(i, kW);
      }
      for (; uncertain; uncertain &= uncertain - 1) {
        const int64_t j = to - kW * (1 + __builtin_ctzll(uncertain));
        store(y + j, lanes::exp_stored_wide(sub(load(x + j), most)));
      }
    }
  for (; i < n; i += kW) {
    const int count = n - i < kW ? static_cast<int>(n - i) : kW;
    store_part(y + i, lanes::exp_stored(sub(load_part(x + i, count), most)), count);
    overlapped(i, count);
  }
}
constexpr auto kNothing = [](int64_t, int) __attribute__((always_inline)){};

// The sum of the weights (softmax.3), which are in y for softmax. log_softmax sums them as it
// computes them; beyond the row's end e^-inf = +0.
template <bool kLog>
INVAR_INLINE float sum_of_weights(const float* x, const float* y, int64_t n, F most) {
  namespace lanes = num::INVAR_ISA_NS;
  if constexpr (!kLog)
    return lanes::row_sum(y, n);
  else
    return lanes::reduce_row(
        n, [&](F acc, int64_t i, int count) __attribute__((always_inline)) {
          F v = lanes::load_or_start<lanes::Largest>(x + i, count);
          return add(acc, lanes::exp_stored(sub(v, most)));
        });
}

// The normalization of a row once its sum is known.
template <bool kLog>
struct RowNormalizer {
  const float* x;
  float* y;
  F most, l, least;
  INVAR_INLINE RowNormalizer of(const float* x, float* y, F most, float sum) {
    return {x, y, most, kLog ? num::INVAR_ISA_NS::log(set1(sum)) : set1(sum), set1(least_dividend(sum))};
  }
  [[gnu::always_inline]] void operator()(int64_t i, int lanes) const {
    if (kLog)
      return store_part(y + i, canonicalize(sub(sub(load_part(x + i, lanes), most), l)), lanes);  // softmax.6
    const F e = load_part(y + i, lanes);
    store_part(y + i, div(select(lt(e, least), zero(), e), l), lanes);  // softmax.4
  }
  [[gnu::always_inline]] void all_of(int64_t n, bool number) const {
    int64_t i = 0;
    if (!number) {  // softmax.5
      F nan = from_bits(set1_i(0x7fc00000));
      return strip_exact(
          y, n, [&](int64_t, int) __attribute__((always_inline)) { return nan; });
    }
    for (; i + kW <= n; i += kW) (*this)(i, kW);
    if (i < n) (*this)(i, static_cast<int>(n - i));
  }
};

// Elements from here on are prefetched to read and to write, so that memory is not idle while
// weights are computed: a row ahead, or this many elements if it is shorter.
constexpr int64_t kFewestAhead = 2048;

// Rows begin ... end - 1 of n elements. softmax divides a row by its sum while it computes the
// weights of the next row, because the divider is idle then.
template <bool kLog>
INVAR_INLINE void softmax_rows(const Call& call, int64_t n, int64_t begin, int64_t end) {
  RowNormalizer<kLog> before{};
  bool left = false;
  const int64_t far = n > kFewestAhead ? n : kFewestAhead;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = call.in[0].as<const float>() + row * n;
    float* y = call.out[0].as<float>() + row * n;
    F most = maximum_of<kLog>(x, n);
    const int64_t ahead = (end - row) * n > 2 * far ? far : 0;  // the rows after `end` are another thread's
    if (!kLog && left)
      exp_weights(
          x, y, n, most, [&](int64_t i, int lanes) __attribute__((always_inline)) {
            INVAR_PREFETCH(x + i + ahead);
            __builtin_prefetch(y + i + ahead, 1);
            before(i, lanes);
          });
    else if (!kLog)
      exp_weights(x, y, n, most, kNothing);
    const float sum = sum_of_weights<kLog>(x, y, n, most);
    before = RowNormalizer<kLog>::of(x, y, most, sum);
    left = sum == sum;
    if (kLog || !left || row + 1 == end) before.all_of(n, left);
  }
}

// A few long rows, by segments (softmax_segments): phase 0 computes maxima; phase 1 weights and
// sums; phase 2 normalizes.
template <bool kLog>
INVAR_INLINE void softmax_segments_of(const Call& call, int64_t n, int64_t segments, int phase, int64_t begin,
                                      int64_t end) {
  float *maxima = static_cast<float*>(call.shared), *sums = maxima + call.in[0].elements() / n * segments;
  for (int64_t u = begin; u < end; ++u) {
    const int64_t row = u / segments, from = u % segments * num::kRowSegment;
    const int64_t length = n - from < num::kRowSegment ? n - from : num::kRowSegment;
    const float* x = call.in[0].as<const float>() + row * n + from;
    float* y = call.out[0].as<float>() + row * n + from;
    if (phase == 0) {
      store_n(maxima + u, maximum_of<kLog>(x, length), 1);
      continue;
    }
    F most = maximum_of<kLog>(maxima + row * segments, segments);
    if (phase == 1) {
      if (!kLog) exp_weights(x, y, length, most, kNothing);
      sums[u] = sum_of_weights<kLog>(x, y, length, most);
      continue;
    }
    float sum = num::INVAR_ISA_NS::SumOp::kStart;
    for (int64_t s = 0; s < segments; ++s)  // reduction.5
      sum = num::INVAR_ISA_NS::SumOp::join(sum, sums[row * segments + s]);
    RowNormalizer<kLog>::of(x, y, most, sum).all_of(length, sum == sum);
  }
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
