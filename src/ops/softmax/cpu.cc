#include "num/exp/exp.h"
#include "num/reduce/lanes.h"
#include "ops/lanes.h"
#include "ops/softmax/across.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

void run(const Call& call, int, int64_t begin, int64_t end, void* scratch) {
  const Columns shape = softmax_columns(call);
  if (shape.inner != 1) return softmax_across<false>(call, shape, begin, end, static_cast<float*>(scratch));
  int64_t n = shape.n;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = call.in[0].as<const float>() + row * n;
    float* y = call.out[0].as<float>() + row * n;
    // softmax.1, with less care (formats.7): a NaN makes its own weight and so the sum NaN, and exp(0) = exp(-0).
    F most = set1(num::INVAR_ISA_NS::row_extreme<num::INVAR_ISA_NS::Largest, true>(x, n));
    strip_exact(
        y, n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
          F v = load_part(x + i, lanes);
          return num::INVAR_ISA_NS::exp_stored(sub(v, most));  // softmax.2; NaN passes
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
    F most = set1(num::INVAR_ISA_NS::row_extreme<num::INVAR_ISA_NS::Largest>(x, n));
    // softmax.2, softmax.3: the weights are summed as they are made; beyond the row's end e^-inf = +0.
    F l = num::INVAR_ISA_NS::log(set1(num::INVAR_ISA_NS::reduce_row(
        n, [&](F acc, int64_t i, int count) __attribute__((always_inline)) {
          F v = num::INVAR_ISA_NS::load_or_start<num::INVAR_ISA_NS::Largest>(x + i, count);
          return add(acc, num::INVAR_ISA_NS::exp_stored(sub(v, most)));
        })));
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
