#include "num/exp/exp.h"
#include "num/reduce/lanes.h"
#include "ops/lanes.h"
#include "ops/softmax/across.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

// Some maximum of the numbers in a row; -inf where there are none. NaN may be passed over and zeros may have either
// sign (formats.7 says more): a NaN makes its own weight and so the sum NaN, and exp(0) = exp(-0). Chains in flight hide
// the latency of compare and select.
INVAR_INLINE F most_of(const float* x, int64_t n) {
  constexpr int kChains = 4;
  F most[kChains];
  for (int c = 0; c < kChains; ++c) most[c] = set1(-__builtin_inff());
  auto take = [](F & m, F v) __attribute__((always_inline)) {
    m = select(lt(m, v), v, m);
  };
  int64_t i = 0;
  for (; i + kChains * kW <= n; i += kChains * kW)
    for (int c = 0; c < kChains; ++c) take(most[c], load(x + i + c * kW));
  for (; i + kW <= n; i += kW) take(most[0], load(x + i));
  for (; i < n; ++i) take(most[0], set1(x[i]));
  for (int c = 1; c < kChains; ++c) take(most[0], most[c]);
  alignas(64) float lane[kW];
  store(lane, most[0]);
  for (int j = 1; j < kW; ++j) take(most[0], set1(lane[j]));
  return set1(first(most[0]));
}

// The store rule (formats.5) of a number >= +0 that is not NaN.
INVAR_INLINE F flush(F y) {
  return select(lt(y, set1(0x1p-126f)), zero(), y);
}

void run(const Call& call, int, int64_t begin, int64_t end, void* scratch) {
  const Columns shape = softmax_columns(call);
  if (shape.inner != 1) return softmax_across<false>(call, shape, begin, end, static_cast<float*>(scratch));
  int64_t n = shape.n;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = call.in[0].as<const float>() + row * n;
    float* y = call.out[0].as<float>() + row * n;
    F most = most_of(x, n);  // softmax.1
    strip_exact(
        y, n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
          F v = load_part(x + i, lanes);
          return flush(num::INVAR_ISA_NS::exp(sub(v, most)));  // softmax.2; NaN passes
        });
    float sum = num::INVAR_ISA_NS::row_sum(y, n);  // softmax.3
    if (sum != sum) {                              // softmax.5
      F nan = from_bits(set1_i(0x7fc00000));
      strip_exact(
          y, n, [&](int64_t, int) __attribute__((always_inline)) { return nan; });
      continue;
    }
    F divisor = set1(sum);
    strip_exact(
        y, n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
          return flush(div(load_part(y + i, lanes), divisor));  // softmax.4
        });
  }
}

void run_log(const Call& call, int, int64_t begin, int64_t end, void* scratch) {
  const Columns shape = softmax_columns(call);
  if (shape.inner != 1) return softmax_across<true>(call, shape, begin, end, static_cast<float*>(scratch));
  int64_t n = shape.n;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = call.in[0].as<const float>() + row * n;
    float* y = call.out[0].as<float>() + row * n;
    // softmax.1, exactly: the sign of a zero shows in x - m where l is 1.
    F most = set1(num::INVAR_ISA_NS::reduce_row<num::INVAR_ISA_NS::Largest>(
        n, [&](F acc, int64_t i, int count) __attribute__((always_inline)) {
          return maximum(acc, num::INVAR_ISA_NS::load_or_start<num::INVAR_ISA_NS::Largest>(x + i, count));
        }));
    strip(
        y, n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
          return num::INVAR_ISA_NS::exp(sub(load_part(x + i, lanes), most));  // softmax.2
        });
    F l = num::INVAR_ISA_NS::log(set1(num::INVAR_ISA_NS::row_sum(y, n)));  // softmax.3
    strip(
        y, n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
          return sub(sub(load_part(x + i, lanes), most), l);  // softmax.6
        });
  }
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW_OF(softmax), INVAR_ROW_OF(log_softmax);
const Kernel INVAR_ROW_OF(softmax) = {.op = "softmax",
                                      .isa = INVAR_ISA,
                                      .units = softmax_units,
                                      .run = INVAR_ISA_NS::run,
                                      .scratch_bytes = softmax_scratch};
const Kernel INVAR_ROW_OF(log_softmax) = {.op = "log_softmax",
                                          .isa = INVAR_ISA,
                                          .units = softmax_units,
                                          .run = INVAR_ISA_NS::run_log,
                                          .scratch_bytes = softmax_scratch};

}  // namespace invar::ops
