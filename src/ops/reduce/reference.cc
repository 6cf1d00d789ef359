// spec: reduce.1 - reduce.13, argmax.1 - argmax.5, hardmax.1 - hardmax.2; the sums:
// spec/reduction.md.
#include "kernels/reference.h"

#include <cmath>
#include <limits>

#include "kernels/batch_independence.h"
#include "kernels/check.h"
#include "num/binary64.h"
#include "num/reduce/reference.h"
#include "num/reference.h"
#include "ops/reduce/reduce.h"

namespace invar::ops {
namespace {

// reduce.2
struct ReducedRows {
  const View& x;
  bool reduced[kMaxRank];
  int64_t n = 1;  // elements of a row
  explicit ReducedRows(const Call& call) : x(call.in[0]) {
    for (int d = 0; d < x.rank; ++d)
      if ((reduced[d] = is_reduced(call, d))) n *= x.dim[d];
  }
  // Offset of element i of row `row`, both in row-major order of their own dimensions.
  int64_t offset(int64_t row, int64_t i) const {
    int64_t at = 0, stride = 1;
    for (int d = x.rank - 1; d >= 0; --d) {
      int64_t& index = reduced[d] ? i : row;
      at += index % x.dim[d] * stride;
      index /= x.dim[d];
      stride *= x.dim[d];
    }
    return at;
  }
};

int64_t units(const Call& call, int) {
  return call.out[0].elements();
}

// Stores f(n, at) for every row, where at(i) is its element i.
template <class Fn>
void rows(const Call& call, int64_t begin, int64_t end, Fn f) {
  const ReducedRows rows(call);
  const float* x = call.in[0].as<const float>();
  for (int64_t row = begin; row < end; ++row)
    store_canonical(call.out[0], row, f(rows.n, [&, row](int64_t i) { return x[rows.offset(row, i)]; }));
}

template <class At>
float largest(int64_t n, At at) {
  float most = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < n; ++i) most = maximum(most, at(i));
  return most;
}

template <class At>
float squares(int64_t n, At at) {
  return num::reference::reduce_row(
      n, 0.0f, [&](float lane, int64_t i) { return std::fma(at(i), at(i), lane); },
      [](float a, float b) { return a + b; });
}

// reduce.10
template <class At>
float variance(const Call& call, int64_t n, At at) {
  float mean = num::reference::row_sum_of(n, at) / static_cast<float>(n);
  float total = num::reference::reduce_row(
      n, 0.0f,
      [&](float lane, int64_t i) {
        float d = at(i) - mean;
        return std::fma(d, d, lane);
      },
      [](float a, float b) { return a + b; });
  int64_t free = n - ReduceVarAttributes(call).correction;
  return total / static_cast<float>(free < 0 ? 0 : free);
}

// Element i as an integer, or a truth value; stores truncate to the type (reduce.11, reduce.12).
int64_t integer_at(const View& v, int64_t i) {
  switch (v.dtype) {
    case DType::i64: return v.as<int64_t>()[i];
    case DType::i32: return v.as<int32_t>()[i];
    case DType::i8: return v.as<int8_t>()[i];
    case DType::u8: return v.as<uint8_t>()[i];
    default: return v.as<uint8_t>()[i] != 0;
  }
}
void put_integer(const View& v, int64_t i, int64_t x) {
  switch (v.dtype) {
    case DType::i64: v.as<int64_t>()[i] = x; break;
    case DType::i32: v.as<int32_t>()[i] = static_cast<int32_t>(x); break;
    default: v.as<uint8_t>()[i] = static_cast<uint8_t>(x);
  }
}
int64_t bound(DType t, bool upper) {
  switch (t) {
    case DType::i64: return upper ? INT64_MAX : INT64_MIN;
    case DType::i32: return upper ? INT32_MAX : INT32_MIN;
    case DType::i8: return upper ? INT8_MAX : INT8_MIN;
    case DType::u8: return upper ? UINT8_MAX : 0;
    default: return upper;
  }
}
enum class IntegerOp { none, sum, mean, prod, max, min, l1, squares };
void integers(const Call& call, int64_t begin, int64_t end, IntegerOp op) {
  const View &x = call.in[0], &out = call.out[0];
  const ReducedRows rows(call);
  const int64_t n = rows.n;
  for (int64_t row = begin; row < end; ++row) {
    uint64_t total = op == IntegerOp::prod ? 1 : 0;
    int64_t best = bound(x.dtype, op == IntegerOp::min);
    for (int64_t i = 0; i < n; ++i) {
      int64_t v = integer_at(x, rows.offset(row, i));
      auto u = static_cast<uint64_t>(v);
      total = op == IntegerOp::prod ? total * u
                                    : total + (op == IntegerOp::squares       ? u * u
                                               : op == IntegerOp::l1 && v < 0 ? -u
                                                                              : u);
      if (op == IntegerOp::max ? v > best : v < best) best = v;
    }
    put_integer(out, row, op == IntegerOp::max || op == IntegerOp::min ? best : static_cast<int64_t>(total));
    if (op == IntegerOp::mean) put_integer(out, row, n ? integer_at(out, row) / n : 0);
  }
}

// reduce.13
void binary64(const Call& call, int64_t begin, int64_t end, IntegerOp op, bool is_root) {
  const ReducedRows rows(call);
  const double *x = call.in[0].as<const double>(), inf = std::numeric_limits<double>::infinity();
  auto sum = [](double a, double b) { return a + b; };
  auto product = [](double a, double b) { return a * b; };
  for (int64_t row = begin; row < end; ++row) {
    auto at = [&, row](int64_t i) { return x[rows.offset(row, i)]; };
    auto reduced = [&](double start, auto step, auto join) {
      return num::reference::reduce_row(
          rows.n, start, [&](double lane, int64_t i) { return step(lane, at(i)); }, join);
    };
    double y = 0;
    switch (op) {
      case IntegerOp::prod: y = reduced(1.0, product, product); break;
      case IntegerOp::max: y = reduced(-inf, num::maximum64, num::maximum64); break;
      case IntegerOp::min: y = reduced(inf, num::minimum64, num::minimum64); break;
      case IntegerOp::l1:
        y = reduced(
            0.0, [](double l, double v) { return l + std::fabs(v); }, sum);
        break;
      case IntegerOp::sum:
      case IntegerOp::mean: y = reduced(0.0, sum, sum); break;
      default:
        y = reduced(
            0.0, [](double l, double v) { return std::fma(v, v, l); }, sum);
    }
    if (op == IntegerOp::mean) y = y / static_cast<double>(rows.n);
    call.out[0].as<double>()[row] = num::canonicalize64(is_root ? std::sqrt(y) : y);
  }
}

template <IntegerOp kOp, bool kBinary64>
const char* check(const Call& c) {
  if (const char* wrong = has_operands(c, 1, 1) ? nullptr : "one operand and one result") return wrong;
  const View &x = c.in[0], &out = c.out[0];
  bool extreme = kOp == IntegerOp::max || kOp == IntegerOp::min;
  bool wide = is_f32(x) || (kBinary64 && x.dtype == DType::f64) ||
              (kOp != IntegerOp::none && (x.dtype == DType::i64 || x.dtype == DType::i32));
  bool byte = x.dtype == DType::i8 || x.dtype == DType::u8 || x.dtype == DType::boolean;
  if (x.dtype != out.dtype || !(wide || (extreme && byte)))
    return extreme                  ? "f32, f64, i64, i32, i8, u8 or bool"
           : kOp != IntegerOp::none ? "f32, f64, i64 or i32"
           : kBinary64              ? "f32 or f64"
                                    : "f32";
  if (int64_t v = ReduceVarAttributes(c).correction; v != 0 && v != 1) return "a correction of 0 or 1";
  if (const char* wrong = check_axes(c)) return wrong;
  int kept = 0;
  bool dropped = true, ones = out.rank == x.rank;
  for (int d = 0; d < x.rank; ++d) {
    bool yes = is_reduced(c, d);
    ones = ones && out.dim[d] == (yes ? 1 : x.dim[d]);
    if (!yes) dropped = dropped && kept < out.rank && out.dim[kept] == x.dim[d], ++kept;
  }
  return ones || (dropped && out.rank == kept) ? nullptr
                                               : "a result without the reduced axes, or with 1 there";
}

// reduce.9
template <class At>
float log_sum_exp(int64_t n, At at) {
  float most = largest(n, at), centre = std::isfinite(most) ? most : 0.0f;
  float sum = num::reference::row_sum_of(
      n, [&](int64_t i) { return num::canonicalize(num::reference::exp(at(i) - centre)); });
  return centre + num::reference::log(sum);
}

// argmax.2 - argmax.5. better(a, b): a strictly precedes b among numbers.
template <class Better>
void arg(const Call& call, int64_t begin, int64_t end, Better better) {
  const ArgmaxAttributes attrs(call);
  const AxisExtents a = axis_extents(call.in[0], attrs.axis);
  bool last = attrs.select_last != 0;
  for (int64_t o = begin; o < end; ++o) {
    const float* x = call.in[0].as<const float>() + o / a.inner * a.n * a.inner + o % a.inner;
    int64_t best = 0;
    for (int64_t i = 1; i < a.n; ++i) {
      float v = x[i * a.inner], b = x[best * a.inner];
      bool nan = v != v, best_nan = b != b;
      bool ahead = nan ? !best_nan : !best_nan && better(v, b);
      bool equal = nan ? best_nan : v == b;
      if (ahead || (equal && last)) best = i;
    }
    call.out[0].as<int64_t>()[o] = best;
  }
}

const char* check_arg(const Call& c) {
  if (!has_operands(c, 1, 1) || !is_f32(c.in[0]) || c.out[0].dtype != DType::i64)
    return "an f32 operand and an i64 result";
  const View &x = c.in[0], &out = c.out[0];
  const ArgmaxAttributes attrs(c);
  int axis = axis_in(x, attrs.axis);
  int64_t last = attrs.select_last;
  if (axis < 0) return "an axis of the operand";
  if (last != 0 && last != 1) return "select_last of 0 or 1";
  if (x.dim[axis] < 1 || x.dim[axis] > INT32_MAX) return "an axis with elements, fewer than 2^31";
  bool kept = out.rank == x.rank, dropped = out.rank == x.rank - 1;
  for (int d = 0; d < x.rank; ++d) {
    if (kept) kept = out.dim[d] == (d == axis ? 1 : x.dim[d]);
    if (dropped && d != axis) dropped = out.dim[d < axis ? d : d - 1] == x.dim[d];
  }
  return kept || dropped ? nullptr : "a result without the axis, or with 1 there";
}

void hardmax(const Call& call, int, int64_t begin, int64_t end, void*) {
  const AxisExtents a = axis_extents(call.in[0], HardmaxAttributes(call).axis);
  for (int64_t row = begin; row < end; ++row) {
    auto at = [&](int64_t i) { return (row / a.inner * a.n + i) * a.inner + row % a.inner; };
    int64_t best = 0;
    for (int64_t i = 1; i < a.n; ++i) {
      float v = call.in[0].as<const float>()[at(i)], b = call.in[0].as<const float>()[at(best)];
      if (b == b && (v != v || v > b)) best = i;
    }
    for (int64_t i = 0; i < a.n; ++i) store_canonical(call.out[0], at(i), i == best ? 1.0f : 0.0f);
  }
}
int64_t hardmax_units(const Call& call, int) {
  const AxisExtents a = axis_extents(call.in[0], HardmaxAttributes(call).axis);
  return a.outer * a.inner;
}
const char* check_hardmax(const Call& c) {
  if (const char* wrong = check_unary(c)) return wrong;
  int axis = axis_in(c.in[0], HardmaxAttributes(c).axis);
  if (axis < 0) return "an axis of the operand";
  int64_t n = c.in[0].dim[axis];
  return n >= 1 && n <= INT32_MAX ? nullptr : "an axis with elements, fewer than 2^31";
}

void argmax(const Call& call, int, int64_t begin, int64_t end, void*) {
  arg(call, begin, end, [](float a, float b) { return a > b; });
}
void argmin(const Call& call, int, int64_t begin, int64_t end, void*) {
  arg(call, begin, end, [](float a, float b) { return a < b; });
}

bool batch_independent(const Call& c, uint64_t batched) {
  return batched == 1 && !is_reduced(c, 0);
}

}  // namespace

// wide: whether binary64 is supported; root: the square root of the sum of squares.
#define INVAR_REDUCTION(name, kind, wide, root, expression)                                        \
  static void run_##name(const Call& call, int, int64_t begin, int64_t end, void*) {               \
    if (call.in[0].dtype == DType::f64) return binary64(call, begin, end, IntegerOp::kind, root);  \
    if (call.in[0].dtype != DType::f32) return integers(call, begin, end, IntegerOp::kind);        \
    rows(call, begin, end, [&](int64_t n, auto at) -> float { return (void)n, expression; });      \
  }                                                                                                \
  extern const OpContract contract_##name;                                                         \
  extern const CpuKernel row_##name##_reference;                                                   \
  const OpContract contract_##name = {                                                             \
      .op = #name, .check = check<IntegerOp::kind, wide>, .batch_independent = batch_independent}; \
  const CpuKernel row_##name##_reference = {                                                       \
      .op = #name, .isa = "reference", .units = units, .run = run_##name};

INVAR_REDUCTION(reduce_sum, sum, true, false, num::reference::row_sum_of(n, at))  // reduce.3
INVAR_REDUCTION(reduce_mean, mean, true, false,
                num::reference::row_sum_of(n, at) / static_cast<float>(n))                     // reduce.4
INVAR_REDUCTION(reduce_prod, prod, true, false, num::reference::row_product_of(n, at))         // reduce.5
INVAR_REDUCTION(reduce_max, max, true, false, largest(n, at))                                  // reduce.6
INVAR_REDUCTION(reduce_min, min, true, false, -largest(n, [&](int64_t i) { return -at(i); }))  // reduce.6
INVAR_REDUCTION(reduce_l1, l1, true, false,
                num::reference::row_sum_of(n, [&](int64_t i) { return std::fabs(at(i)); }))  // reduce.7
INVAR_REDUCTION(reduce_sum_square, squares, true, false, squares(n, at))                     // reduce.7
INVAR_REDUCTION(reduce_l2, none, true, true, std::sqrt(squares(n, at)))                      // reduce.7
INVAR_REDUCTION(reduce_log_sum, none, false, false,
                num::reference::log(num::reference::row_sum_of(n, at)))            // reduce.9
INVAR_REDUCTION(reduce_log_sum_exp, none, false, false, log_sum_exp(n, at))        // reduce.9
INVAR_REDUCTION(reduce_var, none, false, false, variance(call, n, at))             // reduce.10
INVAR_REDUCTION(reduce_std, none, false, false, std::sqrt(variance(call, n, at)))  // reduce.10

extern const OpContract contract_argmax, contract_argmin, contract_hardmax;
extern const CpuKernel row_argmax_reference, row_argmin_reference, row_hardmax_reference;
const OpContract contract_argmax = {
    .op = "argmax", .check = check_arg, .batch_independent = batch_independent_along_axis<ArgmaxAttributes>};
const CpuKernel row_argmax_reference = {.op = "argmax", .isa = "reference", .units = units, .run = argmax};
const OpContract contract_argmin = {
    .op = "argmin", .check = check_arg, .batch_independent = batch_independent_along_axis<ArgmaxAttributes>};
const CpuKernel row_argmin_reference = {.op = "argmin", .isa = "reference", .units = units, .run = argmin};
const OpContract contract_hardmax = {.op = "hardmax",
                                     .check = check_hardmax,
                                     .batch_independent = batch_independent_along_axis<ArgmaxAttributes>};
const CpuKernel row_hardmax_reference = {
    .op = "hardmax", .isa = "reference", .units = hardmax_units, .run = hardmax};

}  // namespace invar::ops
