// spec: fixed.1 - fixed.5.
#include "kernels/reference.h"
#include "kernels/batch_independence.h"
#include "kernels/check.h"
#include "num/fixed/reference.h"
#include "ops/fixed/fixed.h"

namespace invar::ops {
namespace {

void run_sum(const Call& call, int, int64_t begin, int64_t end, void*) {
  const FixedUnits s = fixed_units(call);
  for (int64_t i = begin; i < end; ++i) {
    uint64_t sum = 0;
    for (int64_t u = 0; u < s.units; ++u)
      sum += static_cast<uint64_t>(num::reference::fixed_point(call.in[0].as<const float>()[u * s.n + i]));
    call.out[0].as<uint64_t>()[i] = sum;
  }
}

void run_magnitude(const Call& call, int, int64_t begin, int64_t end, void*) {
  if (begin == end) return;
  const FixedUnits s = fixed_units(call);
  uint64_t sum = 0;
  for (int64_t u = 0; u < s.units; ++u)
    sum += num::reference::fixed_magnitude(
        s.n, [&](int64_t i) { return call.in[0].as<const float>()[u * s.n + i]; });
  call.out[0].as<uint64_t>()[0] = sum;
}

void run_value(const Call& call, int, int64_t begin, int64_t end, void*) {
  const int64_t magnitude = call.in[1].as<const int64_t>()[0];
  for (int64_t i = begin; i < end; ++i)
    call.out[0].as<float>()[i] = magnitude >= 0 && magnitude < (1 << 30)
                                     ? static_cast<float>(call.in[0].as<const int64_t>()[i]) * 0x1p-49f
                                     : num::f32_from_bits(0x7fc00000);
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

extern const OpContract contract_fixed_sum, contract_fixed_magnitude, contract_fixed_value;
extern const CpuKernel row_fixed_sum_reference, row_fixed_magnitude_reference, row_fixed_value_reference;
const OpContract contract_fixed_sum = {.op = "fixed_sum", .check = check_sum};
const OpContract contract_fixed_magnitude = {.op = "fixed_magnitude", .check = check_magnitude};
const OpContract contract_fixed_value = {
    .op = "fixed_value", .check = check_value, .batch_independent = batch_independent_value};
const CpuKernel row_fixed_sum_reference = {
    .op = "fixed_sum", .isa = "reference", .units = each, .run = run_sum};
const CpuKernel row_fixed_magnitude_reference = {
    .op = "fixed_magnitude", .isa = "reference", .units = each, .run = run_magnitude};
const CpuKernel row_fixed_value_reference = {
    .op = "fixed_value", .isa = "reference", .units = each, .run = run_value};

}  // namespace invar::ops
