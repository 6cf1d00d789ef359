// spec: scan.1 - scan.5; the order: spec/reduction.md reduction.12.
#include "kernels/reference.h"

#include "kernels/batch_independence.h"
#include "kernels/check.h"
#include "num/binary64.h"
#include "num/reduce/reference.h"
#include "ops/scan/scan.h"

namespace invar::ops {
namespace {

int64_t units(const Call& call, int) {
  const ScanShape s = scan_shape(call);
  return s.outer * s.inner;
}

template <class U, class Join>
void integers(const Call& call, const ScanShape& s, int64_t base, U start, Join join) {
  U all = start;
  for (int64_t i = 0; i < s.n; ++i) {
    int64_t at = base + scan_position(s, i) * s.inner;
    U next = join(all, call.in[0].as<const U>()[at]);
    call.out[0].as<U>()[at] = s.exclusive ? all : next;
    all = next;
  }
}

template <class Join>
void run(const Call& call, int64_t begin, int64_t end, int start, Join join) {
  const ScanShape s = scan_shape(call);
  for (int64_t row = begin; row < end; ++row) {
    int64_t base = row / s.inner * s.n * s.inner + row % s.inner;
    if (call.in[0].dtype == DType::i64) {
      integers<uint64_t>(call, s, base, static_cast<uint64_t>(start), join);
      continue;
    }
    if (call.in[0].dtype == DType::i32) {
      integers<uint32_t>(call, s, base, static_cast<uint32_t>(start), join);
      continue;
    }
    auto at = [&](int64_t i) { return base + scan_position(s, i) * s.inner; };
    if (call.in[0].dtype == DType::f64) {  // scan.5
      double last = start;
      num::reference::scan(
          s.n, last, [&](int64_t i) { return call.in[0].as<const double>()[at(i)]; }, join,
          [&](int64_t i, double v) {
            call.out[0].as<double>()[at(i)] = num::canonicalize64(s.exclusive ? last : v);
            last = v;
          });
      continue;
    }
    float before = static_cast<float>(start);
    num::reference::scan(
        s.n, before, [&](int64_t i) { return call.in[0].as<const float>()[at(i)]; }, join,
        [&](int64_t i, float v) {
          store_canonical(call.out[0], at(i), s.exclusive ? before : v);  // scan.2
          before = v;
        });
  }
}

void run_sum(const Call& call, int, int64_t begin, int64_t end, void*) {
  run(call, begin, end, 0, [](auto a, auto b) { return a + b; });
}
void run_product(const Call& call, int, int64_t begin, int64_t end, void*) {
  run(call, begin, end, 1, [](auto a, auto b) { return a * b; });
}

const char* check(const Call& c) {
  if (!has_operands(c, 1, 1)) return "one operand and one result";
  const View &x = c.in[0], &out = c.out[0];
  if (x.dtype != out.dtype ||
      (x.dtype != DType::f32 && x.dtype != DType::f64 && x.dtype != DType::i64 && x.dtype != DType::i32))
    return "f32, f64, i64 or i32";
  if (!same_shape(x, out)) return "a result shaped like the operand";
  const CumsumAttributes a(c);
  if (axis_in(x, a.axis) < 0) return "an axis of the operand";
  for (int64_t v : {a.exclusive, a.reverse})
    if (v != 0 && v != 1) return "exclusive and reverse of 0 or 1";
  return nullptr;
}

}  // namespace

extern const OpContract contract_cumsum, contract_cumprod;
extern const CpuKernel row_cumsum_reference, row_cumprod_reference;
const OpContract contract_cumsum = {
    .op = "cumsum", .check = check, .batch_independent = batch_independent_along_axis<CumsumAttributes>};
const CpuKernel row_cumsum_reference = {.op = "cumsum", .isa = "reference", .units = units, .run = run_sum};
const OpContract contract_cumprod = {
    .op = "cumprod", .check = check, .batch_independent = batch_independent_along_axis<CumsumAttributes>};
const CpuKernel row_cumprod_reference = {
    .op = "cumprod", .isa = "reference", .units = units, .run = run_product};

}  // namespace invar::ops
