// Quantization and dequantization as steps on rows (kernels/fusion/row_steps.h). A dequantization
// and the quantization behind it are one step. Compiled once per instruction set.
#pragma once
#include "kernels/fusion/row_steps.h"
#include "num/contract/schedule.h"
#include "ops/quantize/cpu/runs.h"

namespace invar::ops::INVAR_ISA_NS {
namespace {

// f(i, n, run) for the runs of n elements from `at` on; i counts from `at`.
template <class Fn>
INVAR_INLINE void for_each_run_of_row(const ScaleLayout& g, const Call& call, int64_t at, int64_t n, Fn f) {
  const int64_t size = call.out[0].elements();
  for (int64_t i = 0; i < n;) {
    const ScaleRun run = scale_run_at(g, at + i, size);
    const int64_t count = num::min_i64(run.end - at - i, n - i);
    f(i, count, run);
    i += count;
  }
}

template <class T>
void quantize_row(const RowStep& step, int64_t at, int64_t n, const void* from, void* to) {
  const Scales<T> s(*step.call);
  for_each_run_of_row(
      step.get<ScaleLayout>(), *step.call, at, n, [&](int64_t i, int64_t count, ScaleRun run) {
        quantize_run(static_cast<const float*>(from) + i, static_cast<T*>(to) + i, count, s, run);
      });
}
template <class T>
void dequantize_row(const RowStep& step, int64_t at, int64_t n, const void* from, void* to) {
  const Scales<T> s(*step.call);
  for_each_run_of_row(
      step.get<ScaleLayout>(), *step.call, at, n, [&](int64_t i, int64_t count, ScaleRun run) {
        dequantize_run(static_cast<const T*>(from) + i, static_cast<float*>(to) + i, count, s, run);
      });
}
// Both, where no element has a scale of its own and all share that of the quantization.
template <class T, class U>
void requantize_row(const RowStep& step, int64_t at, int64_t n, const void* from, void* to) {
  const Scales<T> first(*step.first);
  const Scales<U> last(*step.call);
  const Divisor by(last.scale[0]);
  const I zero = set1_i(last.zero(0));
  for_each_run_of_row(step.get<ScaleLayout>(), *step.first, at, n,
                      [&](int64_t i, int64_t count, ScaleRun run) {
                        requantize_run(static_cast<const T*>(from) + i, static_cast<U*>(to) + i, count,
                                       Factor<T>(first, run.at), by, zero);
                      });
}

// f(T{}) for the type of integers.
template <class Fn>
auto with_integers(DType t, Fn f) {
  return t == DType::i8 ? f(int8_t{}) : t == DType::u8 ? f(uint8_t{}) : f(int32_t{});
}

int append_dequantize(const Call& call, int operand, RowStep* steps, int count) {
  if (operand != 0) return 0;
  RowStep& step = steps[count] = {.call = &call};
  step.run = with_integers(call.in[0].dtype, [](auto q) { return &dequantize_row<decltype(q)>; });
  step.keep(scale_layout(call));
  return count + 1;
}

int append_quantize(const Call& call, int operand, RowStep* steps, int count) {
  if (operand != 0) return 0;
  const ScaleLayout g = scale_layout(call);
  RowStep* const before = count ? &steps[count - 1] : nullptr;
  const bool is_signed = call.out[0].dtype == DType::i8;
  if (before && !g.block && !g.by_axis) {
    const ScaleLayout of_first = before->get<ScaleLayout>();
    const bool merges = with_integers(before->call->in[0].dtype, [&](auto q) {
      using T = decltype(q);
      if (before->run != &dequantize_row<T> || of_first.block || (of_first.by_axis && of_first.inner == 1))
        return false;
      before->run = is_signed ? &requantize_row<T, int8_t> : &requantize_row<T, uint8_t>;
      return true;
    });
    if (merges) {
      before->first = before->call, before->call = &call;
      return count;
    }
  }
  RowStep& step =
      steps[count] = {.run = is_signed ? &quantize_row<int8_t> : &quantize_row<uint8_t>, .call = &call};
  step.keep(g);
  return count + 1;
}

}  // namespace
}  // namespace invar::ops::INVAR_ISA_NS
