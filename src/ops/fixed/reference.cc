// spec: spec.md fixed.1 - fixed.5, fixed.8.
#include "kernels/reference.h"
#include "kernels/batch_independence.h"
#include "kernels/check.h"
#include "num/contract/reference.h"
#include "ops/fixed/fixed.h"

namespace invar::ops {
namespace {

// fixed.2
int64_t fixed_point(float v) {
  if (!(std::fabs(v) < kFixedLimit)) return 0;
  return static_cast<int64_t>(std::nearbyint(static_cast<double>(v) * 0x1p49));
}

void run_sum(const Call& call, int, int64_t begin, int64_t end, void*) {
  const FixedUnits s = fixed_units(call);
  for (int64_t i = begin; i < end; ++i) {
    uint64_t sum = 0;
    for (int64_t u = 0; u < s.units; ++u)
      sum += static_cast<uint64_t>(fixed_point(call.in[0].as<const float>()[u * s.n + i]));
    call.out[0].as<uint64_t>()[i] = sum;
  }
}

// fixed.4: of a unit with elements at(0) ... at(n - 1).
template <class At>
uint64_t magnitude(int64_t n, At at) {
  bool small = true;
  float largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float x = std::fabs(at(i));
    small = small && x < kFixedLimit;  // false for NaN
    largest = x > largest ? x : largest;
  }
  const double scaled = static_cast<double>(largest) * 0x1p16;
  return small ? static_cast<uint64_t>(std::ceil(scaled)) : uint64_t{1} << 30;
}
void run_magnitude(const Call& call, int, int64_t begin, int64_t end, void*) {
  if (begin == end) return;
  const FixedUnits s = fixed_units(call);
  uint64_t sum = 0;
  for (int64_t u = 0; u < s.units; ++u)
    sum += magnitude(s.n, [&](int64_t i) { return call.in[0].as<const float>()[u * s.n + i]; });
  call.out[0].as<uint64_t>()[0] = sum;
}

void run_value(const Call& call, int, int64_t begin, int64_t end, void*) {
  const int64_t magnitude = call.in[1].as<const int64_t>()[0];
  for (int64_t i = begin; i < end; ++i)
    call.out[0].as<float>()[i] = magnitude >= 0 && magnitude < (1 << 30)
                                     ? static_cast<float>(call.in[0].as<const int64_t>()[i]) * 0x1p-49f
                                     : num::f32_from_bits(0x7fc00000);
}

// fixed.8: element i of the product of unit u.
float product(const Call& call, const FixedProducts& s, int64_t u, int64_t i) {
  const float* a = call.in[0].as<const float>() + u * s.length * s.rows + i / s.columns;
  const float* b = call.in[1].as<const float>() + u * s.length * s.columns + i % s.columns;
  return num::canonicalize(num::reference::contract(
      s.length, [&](int64_t t) { return a[t * s.rows]; }, [&](int64_t t) { return b[t * s.columns]; }));
}
void run_matmul(const Call& call, int, int64_t begin, int64_t end, void*) {
  const FixedProducts s = fixed_products(call);
  const int64_t n = s.rows * s.columns;
  for (int64_t i = begin; i < end; ++i) {
    uint64_t sum = 0;
    for (int64_t u = 0; u < s.units; ++u) {
      if (i < n)
        sum += static_cast<uint64_t>(fixed_point(product(call, s, u, i)));
      else
        sum += magnitude(n, [&](int64_t j) { return product(call, s, u, j); });
    }
    call.out[0].as<uint64_t>()[i] = sum;
  }
}

int64_t each(const Call& call, int) {
  return call.out[0].elements();
}

const char* check_units(const Call& c) {
  if (!has_operands(c, 1, 1)) return "one operand and one result";
  if (!is_f32(c.in[0]) || c.out[0].dtype != DType::i64) return "f32, and a result of i64";
  if (c.in[0].rank < 1) return "units along the first dimension";
  return c.in[0].dim[0] < int64_t{1} << 33 ? nullptr : "fewer than 2^33 units";
}
const char* check_sum(const Call& c) {
  if (const char* required = check_units(c)) return required;
  const View &x = c.in[0], &out = c.out[0];
  if (out.rank != x.rank - 1) return "a result shaped like a unit";
  for (int i = 0; i < out.rank; ++i)
    if (out.dim[i] != x.dim[i + 1]) return "a result shaped like a unit";
  return nullptr;
}
const char* check_magnitude(const Call& c) {
  if (const char* required = check_units(c)) return required;
  return c.out[0].rank == 0 ? nullptr : "a result of one number";
}
const char* check_matmul(const Call& c) {
  if (!has_operands(c, 2, 1)) return "two operands and one result";
  const View &a = c.in[0], &b = c.in[1], &out = c.out[0];
  if (!is_f32(a) || !is_f32(b) || out.dtype != DType::i64) return "f32, and a result of i64";
  if (a.rank != 3 || b.rank != 3 || !same_leading(a, b, 2)) return "[units, T, M] and [units, T, N]";
  if (a.dim[0] >= int64_t{1} << 33) return "fewer than 2^33 units";
  return out.rank == 1 && out.dim[0] == a.dim[2] * b.dim[2] + 1 ? nullptr : "a result of M * N + 1 elements";
}
const char* check_value(const Call& c) {
  if (!has_operands(c, 2, 1)) return "two operands and one result";
  if (c.in[0].dtype != DType::i64 || c.in[1].dtype != DType::i64 || !is_f32(c.out[0]))
    return "i64, and a result of f32";
  if (c.in[1].rank != 0) return "a magnitude of one number";
  return same_shape(c.in[0], c.out[0]) ? nullptr : "a result shaped like the sum";
}

bool batch_independent_value(const Call&, uint64_t batched) {
  return batched == 1;
}

}  // namespace

extern const OpContract contract_fixed_sum, contract_fixed_magnitude, contract_fixed_value,
    contract_fixed_matmul;
extern const CpuKernel row_fixed_sum_reference, row_fixed_magnitude_reference, row_fixed_value_reference,
    row_fixed_matmul_reference;
const OpContract contract_fixed_sum = {.op = "fixed_sum", .check = check_sum};
const OpContract contract_fixed_magnitude = {.op = "fixed_magnitude", .check = check_magnitude};
const OpContract contract_fixed_value = {
    .op = "fixed_value", .check = check_value, .batch_independent = batch_independent_value};
const OpContract contract_fixed_matmul = {.op = "fixed_matmul", .check = check_matmul};
const CpuKernel row_fixed_matmul_reference = {
    .op = "fixed_matmul", .isa = "reference", .units = each, .run = run_matmul};
const CpuKernel row_fixed_sum_reference = {
    .op = "fixed_sum", .isa = "reference", .units = each, .run = run_sum};
const CpuKernel row_fixed_magnitude_reference = {
    .op = "fixed_magnitude", .isa = "reference", .units = each, .run = run_magnitude};
const CpuKernel row_fixed_value_reference = {
    .op = "fixed_value", .isa = "reference", .units = each, .run = run_value};

}  // namespace invar::ops
