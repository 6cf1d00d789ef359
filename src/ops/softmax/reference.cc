// spec: softmax.1 - softmax.10; the sum: spec/reduction.md.
#include "kernels/reference.h"

#include "kernels/batch_independence.h"
#include "kernels/check.h"
#include "num/reduce/reference.h"
#include "num/reference.h"
#include "ops/softmax/attributes.h"

namespace invar::ops {
namespace {

// Units are rows, one per index of the other dimensions.
int64_t units(const Call& call, int) {
  const AxisExtents s = axis_extents(call.in[0], SoftmaxAttributes(call).axis);
  return s.outer * s.inner;
}

template <bool kLog>
void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  const AxisExtents s = axis_extents(call.in[0], SoftmaxAttributes(call).axis);
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
  int axis = axis_in(x, SoftmaxAttributes(c).axis);
  if (axis < 0) return "an axis of the operand";
  return x.dim[axis] >= 1 ? nullptr : "an axis with elements";
}

// softmax.8 - softmax.10
template <bool kLog>
void run_backward(const Call& call, int, int64_t begin, int64_t end, void*) {
  const AxisExtents s = axis_extents(call.in[0], SoftmaxAttributes(call).axis);
  const View &grad = call.in[0], &y = call.in[1], &out = call.out[0];
  for (int64_t row = begin; row < end; ++row) {
    auto at = [&](int64_t i) { return (row / s.inner * s.n + i) * s.inner + row % s.inner; };
    auto g = [&](int64_t i) { return value(grad, at(i)); };
    auto v = [&](int64_t i) { return value(y, at(i)); };
    const float sum = kLog ? num::reference::row_sum_of(s.n, g) : num::reference::row_dot_of(s.n, g, v);
    for (int64_t i = 0; i < s.n; ++i) {
      const float e = num::canonicalize(num::reference::exp(v(i) > 0 ? 0 : v(i)));
      store_canonical(out, at(i), kLog ? std::fma(-e, sum, g(i)) : v(i) * (g(i) - sum));
    }
  }
}

const char* check_backward(const Call& c) {
  if (!has_operands(c, 2, 1)) return "two operands and one result";
  const View &grad = c.in[0], &y = c.in[1], &out = c.out[0];
  if (!is_f32(grad) || !is_f32(y) || !is_f32(out)) return "f32";
  if (!same_shape(grad, y)) return "a gradient shaped like y";
  if (!same_shape(y, out)) return "a result shaped like y";
  const int axis = axis_in(y, SoftmaxAttributes(c).axis);
  if (axis < 0) return "an axis of the operands";
  return y.dim[axis] >= 1 ? nullptr : "an axis with elements";
}
bool backward_batch_independent(const Call& c, uint64_t batched) {
  return batched == 3 && axis_in(c.in[0], SoftmaxAttributes(c).axis) > 0;
}

// softmax.12, softmax.13: row `i` of x [N, C].
struct ClassRow {
  const View& x;
  int64_t i, n;
  float most, log_sum = 0;
  ClassRow(const View& of, int64_t row) : x(of), i(row), n(of.dim[1]), most(value(of, row * n)) {
    for (int64_t j = 1; j < n; ++j) most = maximum(most, value(x, i * n + j));
    log_sum = num::reference::log(num::reference::row_sum_of(
        n, [&](int64_t j) { return num::canonicalize(num::reference::exp(value(x, i * n + j) - most)); }));
  }
  float y(int64_t j) const { return num::canonicalize((value(x, i * n + j) - most) - log_sum); }
};
bool has_class(int64_t t, int64_t ignore, int64_t n) {
  return t != ignore && t >= 0 && t < n;
}
int64_t class_units(const Call& call, int) {
  return call.in.back().elements();
}
void run_cross_entropy(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &x = call.in[0], &target = call.in[1];
  const int64_t ignore = CrossEntropyAttributes(call).ignore;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t t = target.as<int64_t>()[i];
    float loss = t == ignore ? 0.0f : NAN;
    if (has_class(t, ignore, x.dim[1])) loss = -ClassRow(x, i).y(t);
    store_canonical(call.out[0], i, loss);
  }
}
void run_cross_entropy_backward(const Call& call, int, int64_t begin, int64_t end, void*) {
  const View &grad = call.in[0], &x = call.in[1], &target = call.in[2];
  const int64_t ignore = CrossEntropyAttributes(call).ignore;
  for (int64_t i = begin; i < end; ++i) {
    const ClassRow row(x, i);
    const int64_t t = target.as<int64_t>()[i];
    const bool there = has_class(t, ignore, row.n);
    const float u = there ? num::canonicalize(0.0f + num::canonicalize(-value(grad, i))) : 0.0f;
    for (int64_t j = 0; j < row.n; ++j) {
      const float y = row.y(j), e = num::canonicalize(num::reference::exp(y > 0 ? 0 : y));
      store_canonical(call.out[0], i * row.n + j, std::fma(-e, u, there && j == t ? u : 0.0f));
    }
  }
}
const char* check_classes(const View& x, const View& target) {
  if (!is_f32(x) || x.rank != 2 || x.dim[1] < 1) return "rows f32 [N, C], C >= 1";
  if (target.dtype != DType::i64 || target.rank != 1 || target.dim[0] != x.dim[0]) return "classes i64 [N]";
  return nullptr;
}
const char* check_cross_entropy(const Call& c) {
  if (!has_operands(c, 2, 1)) return "two operands and one result";
  if (const char* wrong = check_classes(c.in[0], c.in[1])) return wrong;
  return is_f32(c.out[0]) && c.out[0].rank == 1 && c.out[0].dim[0] == c.in[0].dim[0] ? nullptr
                                                                                     : "a result f32 [N]";
}
const char* check_cross_entropy_backward(const Call& c) {
  if (!has_operands(c, 3, 1)) return "three operands and one result";
  if (const char* wrong = check_classes(c.in[1], c.in[2])) return wrong;
  if (!is_f32(c.in[0]) || c.in[0].rank != 1 || c.in[0].dim[0] != c.in[1].dim[0]) return "a gradient f32 [N]";
  return is_f32(c.out[0]) && same_shape(c.out[0], c.in[1]) ? nullptr : "a result shaped like the rows";
}
bool class_out_of_bounds(const Call& c, OutOfBounds& found) {
  const size_t operand = c.in.size() - 1;
  const View &x = c.in[operand - 1], &target = c.in[operand];
  const int64_t ignore = CrossEntropyAttributes(c).ignore;
  for (int64_t i = 0; i < target.elements(); ++i) {
    const int64_t t = target.as<int64_t>()[i];
    if (t == ignore || (t >= 0 && t < x.dim[1])) continue;
    found = {static_cast<int>(operand), i, t, x.dim[1]};
    return true;
  }
  return false;
}
bool rows_batch_independent(const Call& c, uint64_t batched) {
  return batched == (uint64_t{1} << c.in.size()) - 1;
}

}  // namespace

extern const OpContract contract_softmax, contract_log_softmax;
extern const CpuKernel row_softmax_reference, row_log_softmax_reference;
const OpContract contract_softmax = {
    .op = "softmax", .check = check, .batch_independent = batch_independent_along_axis<SoftmaxAttributes>};
const CpuKernel row_softmax_reference = {
    .op = "softmax", .isa = "reference", .units = units, .run = run<false>};
const OpContract contract_log_softmax = {
    .op = "log_softmax",
    .check = check,
    .batch_independent = batch_independent_along_axis<SoftmaxAttributes>};
const CpuKernel row_log_softmax_reference = {
    .op = "log_softmax", .isa = "reference", .units = units, .run = run<true>};

#define INVAR_SOFTMAX_BACKWARD(name, log)                                                     \
  extern const OpContract contract_##name;                                                    \
  extern const CpuKernel row_##name##_reference;                                              \
  const OpContract contract_##name = {                                                        \
      .op = #name, .check = check_backward, .batch_independent = backward_batch_independent}; \
  const CpuKernel row_##name##_reference = {                                                  \
      .op = #name, .isa = "reference", .units = units, .run = run_backward<log>};
INVAR_SOFTMAX_BACKWARD(softmax_backward, false)
INVAR_SOFTMAX_BACKWARD(log_softmax_backward, true)

#define INVAR_CROSS_ENTROPY(name)                                                   \
  extern const OpContract contract_##name;                                          \
  extern const CpuKernel row_##name##_reference;                                    \
  const OpContract contract_##name = {.op = #name,                                  \
                                      .check = check_##name,                        \
                                      .find_out_of_bounds = class_out_of_bounds,    \
                                      .batch_independent = rows_batch_independent}; \
  const CpuKernel row_##name##_reference = {                                        \
      .op = #name, .isa = "reference", .units = class_units, .run = run_##name};
INVAR_CROSS_ENTROPY(cross_entropy)
INVAR_CROSS_ENTROPY(cross_entropy_backward)

}  // namespace invar::ops
