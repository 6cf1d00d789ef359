// Softmax and log-softmax over contiguous or strided rows (kernels/cuda/row_reduction.cuh).
#include "kernels/cuda/row_reduction.cuh"
#include "num/exp/exp.h"
#include "num/log/log.h"
#include "num/quotient/quotient.h"
#include "ops/softmax/attributes.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

namespace lanes = num::INVAR_ISA_NS;

// Contiguous rows; kAligned: to 16 bytes.
template <bool kAligned>
struct ContiguousRows {
  const float* x;
  float* y;
  int64_t n;
  INVAR_DEVICE lanes::ContiguousRow<kAligned> source(int64_t r, int64_t = 0) const { return {x + r * n}; }
  INVAR_DEVICE float* result(int64_t r) const { return y + r * n; }
};
// The elements of a strided row.
struct Strided {
  const float* x;
  int64_t stride;
  INVAR_DEVICE const float* at(int64_t i) const { return x + i * stride; }
};
struct StridedColumns {
  const float* x;
  float* y;
  int64_t n, inner;
  INVAR_DEVICE int64_t offset(int64_t outer, int64_t column) const { return outer * n * inner + column; }
  INVAR_DEVICE Strided source(int64_t outer, int64_t column) const {
    return {x + offset(outer, column), inner};
  }
  INVAR_DEVICE float* result(int64_t r) const { return y + offset(r / inner, r % inner); }
};

template <class Rows>
struct Softmax : Rows {
  static constexpr int kReductions = 2;
  static constexpr bool kStoresRow = true;
  template <int k>
  using Join = std::conditional_t<k == 0, lanes::MaxOfNumbers, lanes::SumOp>;
  template <class Row>
  INVAR_DEVICE void operator()(Row& row, int64_t r) const {
    // softmax.1. A NaN need not be the maximum: it makes its own weight NaN, and so the sum.
    const F most = row.template reduce<Join<0>>([](F lane, F v) { return Join<0>::join(lane, v); });
    const auto weight = [=](F v) { return lanes::exp_stored(sub(v, most)); };  // softmax.2
    row.map(weight);
    const F sum = row.template reduce<Join<1>>([=](F lane, F v) { return add(lane, row.mapped(weight, v)); });
    const lanes::Divisor by = lanes::divisor(sum);
    row.give(this->result(r), [=](F v) { return lanes::quotient(row.mapped(weight, v), by); });  // softmax.4
  }
};

template <class Rows>
struct LogSoftmax : Rows {
  static constexpr int kReductions = 2;
  static constexpr bool kStoresRow = true;
  template <int k>
  using Join = std::conditional_t<k == 0, lanes::MaxOfNumbers, lanes::SumOp>;
  template <class Row>
  INVAR_DEVICE void operator()(Row& row, int64_t r) const {
    const F most = row.template reduce<Join<0>>([](F lane, F v) { return Join<0>::join(lane, v); });
    const F sum = row.template reduce<Join<1>>(
        [=](F lane, F v) { return add(lane, lanes::exp_stored(sub(v, most))); });  // softmax.2, softmax.3
    const F l = lanes::log(sum);
    row.give(this->result(r), [=](F v) { return sub(sub(v, most), l); });  // softmax.6
  }
};

// Gradients: the elements (grad, y) of a row. kVectors: in aligned memory.
template <bool kAligned>
struct GradientRow {
  static constexpr bool kVectors = kAligned;
  using Element = lanes::Pair;
  const float *grad, *y;
  int64_t stride;  // 1 if the row is contiguous
  INVAR_DEVICE const float* at(int64_t i) const { return grad + i * stride; }
  template <int kV>
  INVAR_DEVICE void load(int64_t i, lanes::Pair* v) const {
    F a[kV], b[kV];
    lanes::load_vector<kV>(grad + (kV == 1 ? i * stride : i), a);
    lanes::load_vector<kV>(y + (kV == 1 ? i * stride : i), b);
#pragma unroll
    for (int k = 0; k < kV; ++k) v[k] = {a[k], b[k]};
  }
};
// kLog: of log_softmax. The rows of an axis with `inner` columns.
template <bool kLog, bool kAligned>
struct SoftmaxBackward {
  static constexpr int kReductions = 1;
  static constexpr bool kStoresRow = true;
  template <int>
  using Join = lanes::SumOp;
  const float *grad, *y;
  float* dx;
  int64_t n, inner;
  INVAR_DEVICE int64_t offset(int64_t outer, int64_t column) const { return outer * n * inner + column; }
  INVAR_DEVICE GradientRow<kAligned> source(int64_t outer, int64_t column = 0) const {
    return {grad + offset(outer, column), y + offset(outer, column), inner};
  }
  template <class Row>
  INVAR_DEVICE void operator()(Row& row, int64_t r) const {
    const F sum = row.template reduce<lanes::SumOp>(
        [](F lane, const lanes::Pair& v) { return kLog ? add(lane, v.a) : fma(v.a, v.b, lane); });
    row.give(dx + offset(r / inner, r % inner), [=](const lanes::Pair& v) {
      if constexpr (!kLog) return mul(v.b, sub(v.a, sum));
      const F e = lanes::exp_stored(select(lt(zero(), v.b), zero(), v.b));
      return fma(neg(e), sum, v.a);
    });
  }
};
template <bool kLog>
void enqueue_backward(const Call& call, Stream stream) {
  const AxisExtents a = axis_extents(call.in[0], SoftmaxAttributes(call).axis);
  const float *grad = call.in[0].as<const float>(), *y = call.in[1].as<const float>();
  float* dx = call.out[0].as<float>();
  const SoftmaxBackward<kLog, false> fn{grad, y, dx, a.n, a.inner};
  if (a.inner != 1) return launch_columns(fn, column_blocks(a.outer, a.inner, a.n), call.shared, stream);
  if (aligned(grad) && aligned(y) && aligned(dx) && a.n % 4 == 0)
    return launch_rows(SoftmaxBackward<kLog, true>{grad, y, dx, a.n, 1}, a.outer, a.n, call.shared, stream);
  launch_unaligned_rows(fn, a.outer, a.n, call.shared, stream);
}

// cross_entropy and its gradient: rows of x [N, C] with a class each.
struct Classes {
  const int64_t* target;
  int64_t ignore, n;
  uint32_t* fault;
  INVAR_DEVICE int64_t at(int64_t r) const {  // or a negative number
    const int64_t t = target[r];
    return t != ignore && t >= 0 && t < n ? t : -1;
  }
};
template <bool kAligned>
struct CrossEntropy {
  static constexpr int kReductions = 2;
  static constexpr bool kStoresRow = false;
  template <int k>
  using Join = std::conditional_t<k == 0, lanes::MaxOfNumbers, lanes::SumOp>;
  const float* x;
  float* loss;
  Classes classes;
  INVAR_DEVICE lanes::ContiguousRow<kAligned> source(int64_t r, int64_t = 0) const {
    return {x + r * classes.n};
  }
  template <class Row>
  INVAR_DEVICE void operator()(Row& row, int64_t r) const {
    const F most = row.template reduce<Join<0>>([](F lane, F v) { return Join<0>::join(lane, v); });
    const F sum =
        row.template reduce<Join<1>>([=](F lane, F v) { return add(lane, lanes::exp_stored(sub(v, most))); });
    if (!row.leader()) return;
    const int64_t t = classes.at(r);
    F y = zero();  // softmax.12
    if (t >= 0)
      y = neg(canonicalize(sub(sub(set1(x[r * classes.n + t]), most), lanes::log(sum))));
    else if (classes.target[r] != classes.ignore)
      y = from_bits(set1_i(0x7fc00000)), *classes.fault = 1;
    loss[r] = canonicalize(y).v;
  }
};
// The elements of a row of x, and what softmax.13 adds to each.
template <bool kAligned>
struct ClassRow {
  static constexpr bool kVectors = kAligned;
  using Element = lanes::Pair;
  const float* x;
  int64_t t;
  F u;
  INVAR_DEVICE const float* at(int64_t i) const { return x + i; }
  template <int kV>
  INVAR_DEVICE void load(int64_t i, lanes::Pair* v) const {
    F a[kV];
    lanes::load_vector<kV>(x + i, a);
#pragma unroll
    for (int k = 0; k < kV; ++k) v[k] = {a[k], i + k == t ? u : zero()};
  }
};
template <bool kAligned>
struct CrossEntropyBackward {
  static constexpr int kReductions = 2;
  static constexpr bool kStoresRow = true;
  template <int k>
  using Join = std::conditional_t<k == 0, lanes::MaxOfNumbers, lanes::SumOp>;
  const float *grad, *x;
  float* dx;
  Classes classes;
  INVAR_DEVICE F of_class(int64_t r, int64_t t) const {
    return t < 0 ? zero() : canonicalize(add(zero(), canonicalize(neg(set1(grad[r])))));
  }
  INVAR_DEVICE ClassRow<kAligned> source(int64_t r, int64_t = 0) const {
    const int64_t t = classes.at(r);
    return {x + r * classes.n, t, of_class(r, t)};
  }
  template <class Row>
  INVAR_DEVICE void operator()(Row& row, int64_t r) const {
    const F most =
        row.template reduce<Join<0>>([](F lane, const lanes::Pair& v) { return Join<0>::join(lane, v.a); });
    const F sum = row.template reduce<Join<1>>(
        [=](F lane, const lanes::Pair& v) { return add(lane, lanes::exp_stored(sub(v.a, most))); });
    const F l = lanes::log(sum), u = of_class(r, classes.at(r));
    if (row.leader() && classes.at(r) < 0 && classes.target[r] != classes.ignore) *classes.fault = 1;
    row.give(dx + r * classes.n, [=](const lanes::Pair& v) {
      const F y = canonicalize(sub(sub(v.a, most), l));
      const F e = lanes::exp_stored(select(lt(zero(), y), zero(), y));
      return fma(neg(e), u, v.b);  // softmax.13
    });
  }
};
template <class Aligned, class Other>
void launch_classes(const Aligned& aligned_fn, const Other& fn, bool is_aligned, const Call& call,
                    int64_t rows, Stream stream) {
  const int64_t n = fn.classes.n;
  if (is_aligned && n % 4 == 0) return launch_rows(aligned_fn, rows, n, call.shared, stream);
  launch_unaligned_rows(fn, rows, n, call.shared, stream);
}
Classes classes_of(const Call& call, size_t operand) {
  return {call.in[operand].as<const int64_t>(), CrossEntropyAttributes(call).ignore,
          call.in[operand - 1].dim[1], call.gpu.fault};
}
void enqueue_cross_entropy(const Call& call, Stream stream) {
  const Classes classes = classes_of(call, 1);
  const float* x = call.in[0].as<const float>();
  float* loss = call.out[0].as<float>();
  launch_classes(CrossEntropy<true>{x, loss, classes}, CrossEntropy<false>{x, loss, classes}, aligned(x),
                 call, call.in[0].dim[0], stream);
}
void enqueue_cross_entropy_backward(const Call& call, Stream stream) {
  const Classes classes = classes_of(call, 2);
  const float *grad = call.in[0].as<const float>(), *x = call.in[1].as<const float>();
  float* dx = call.out[0].as<float>();
  launch_classes(CrossEntropyBackward<true>{grad, x, dx, classes},
                 CrossEntropyBackward<false>{grad, x, dx, classes}, aligned(x) && aligned(dx), call,
                 call.in[1].dim[0], stream);
}
size_t cross_entropy_shared(const Call& call) {
  const View& x = call.in[call.in.size() - 2];
  return row_bytes(x.dim[0], x.dim[1], 2);
}

template <template <class> class Fn>
void enqueue(const Call& call, Stream stream) {
  const AxisExtents a = axis_extents(call.in[0], SoftmaxAttributes(call).axis);
  const float* x = call.in[0].as<const float>();
  float* y = call.out[0].as<float>();
  if (a.inner != 1)
    return launch_columns(Fn<StridedColumns>{{x, y, a.n, a.inner}}, column_blocks(a.outer, a.inner, a.n),
                          call.shared, stream);
  if (aligned(x) && aligned(y) && a.n % 4 == 0)
    return launch_rows(Fn<ContiguousRows<true>>{{x, y, a.n}}, a.outer, a.n, call.shared, stream);
  launch_unaligned_rows(Fn<ContiguousRows<false>>{{x, y, a.n}}, a.outer, a.n, call.shared, stream);
}

template <int kReductions>
size_t shared_bytes(const Call& call) {
  const AxisExtents a = axis_extents(call.in[0], SoftmaxAttributes(call).axis);
  if (a.inner != 1) return column_bytes(column_blocks(a.outer, a.inner, a.n), kReductions);
  return row_bytes(a.outer, a.n, kReductions);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const GpuKernel INVAR_ROW_OF(softmax), INVAR_ROW_OF(log_softmax);
const GpuKernel INVAR_ROW_OF(softmax) = {.op = "softmax",
                                         .isa = INVAR_ISA,
                                         .shared_bytes = INVAR_ISA_NS::shared_bytes<2>,
                                         .enqueue = INVAR_ISA_NS::enqueue<INVAR_ISA_NS::Softmax>};
const GpuKernel INVAR_ROW_OF(log_softmax) = {.op = "log_softmax",
                                             .isa = INVAR_ISA,
                                             .shared_bytes = INVAR_ISA_NS::shared_bytes<2>,
                                             .enqueue = INVAR_ISA_NS::enqueue<INVAR_ISA_NS::LogSoftmax>};

#define INVAR_SOFTMAX_BACKWARD(name, log)                                              \
  extern const GpuKernel INVAR_ROW_OF(name);                                           \
  const GpuKernel INVAR_ROW_OF(name) = {.op = #name,                                   \
                                        .isa = INVAR_ISA,                              \
                                        .shared_bytes = INVAR_ISA_NS::shared_bytes<1>, \
                                        .enqueue = INVAR_ISA_NS::enqueue_backward<log>};
INVAR_SOFTMAX_BACKWARD(softmax_backward, false)
INVAR_SOFTMAX_BACKWARD(log_softmax_backward, true)

#define INVAR_CROSS_ENTROPY(name)                                                           \
  extern const GpuKernel INVAR_ROW_OF(name);                                                \
  const GpuKernel INVAR_ROW_OF(name) = {.op = #name,                                        \
                                        .isa = INVAR_ISA,                                   \
                                        .shared_bytes = INVAR_ISA_NS::cross_entropy_shared, \
                                        .enqueue = INVAR_ISA_NS::enqueue_##name};
INVAR_CROSS_ENTROPY(cross_entropy)
INVAR_CROSS_ENTROPY(cross_entropy_backward)

}  // namespace invar::ops
