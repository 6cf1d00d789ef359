// spec: spec.md softmax.1 - softmax.7; the sum: spec/reduction.md.
#include "kernels/reference.h"

#include "kernels/batch_independence.h"
#include "kernels/check.h"
#include "num/reduce/reference.h"
#include "num/reference.h"

namespace invar::ops {
namespace {

// Units are rows, one per index of the other dimensions.
int64_t units(const Call& call, int) {
  const AxisExtents s = axis_extents(call.in[0], attr_i(call, "axis", -1));
  return s.outer * s.inner;
}

template <bool kLog>
void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const AxisExtents s = axis_extents(call.in[0], attr_i(call, "axis", -1));
  const float* x = call.in[0].as<const float>();
  const View& out = call.out[0];
  for (int64_t row = begin; row < end; ++row) {
    auto at = [&](int64_t i) { return (row / s.inner * s.n + i) * s.inner + row % s.inner; };
    float most = x[at(0)];
    for (int64_t i = 1; i < s.n; ++i) most = maximum(most, x[at(i)]);  // softmax.1
    for (int64_t i = 0; i < s.n; ++i)
      store_canonical(out, at(i), num::reference::exp(x[at(i)] - most));                        // softmax.2
    float sum = num::reference::row_sum_of(s.n, [&](int64_t i) { return value(out, at(i)); });  // softmax.3
    float log_sum = num::reference::log(sum);
    for (int64_t i = 0; i < s.n; ++i)
      store_canonical(out, at(i),
                      kLog ? (x[at(i)] - most) - log_sum : value(out, at(i)) / sum);  // softmax.4, softmax.6
  }
}

const char* check(const Call& c) {
  if (const char* wrong = check_unary(c)) return wrong;
  const View& x = c.in[0];
  int axis = axis_in(x, attr_i(c, "axis", -1));
  if (axis < 0) return "an axis of the operand";
  return x.dim[axis] >= 1 ? nullptr : "an axis with elements";
}

}  // namespace

extern const OpContract contract_softmax, contract_log_softmax;
extern const CpuKernel row_softmax_reference, row_log_softmax_reference;
const OpContract contract_softmax = {
    .op = "softmax", .check = check, .batch_independent = batch_independent_along_axis<-1>};
const CpuKernel row_softmax_reference = {
    .op = "softmax", .isa = "reference", .units = units, .run = run<false>};
const OpContract contract_log_softmax = {
    .op = "log_softmax", .check = check, .batch_independent = batch_independent_along_axis<-1>};
const CpuKernel row_log_softmax_reference = {
    .op = "log_softmax", .isa = "reference", .units = units, .run = run<true>};

}  // namespace invar::ops
