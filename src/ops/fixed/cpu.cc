// CPU fixed-point sums: columns of units, and the largest magnitudes of parts of units.
#include "kernels/cpu/fixed_sums.h"
#include "ops/fixed/fixed.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

constexpr int64_t kColumns = 512;  // their sums stay in the L1 cache while units are added
int64_t sum_units(const Call& call, int) {
  return (call.out[0].elements() + kColumns - 1) / kColumns;
}
void run_sum(const Call& call, int, int64_t begin, int64_t end, void*) {
  const FixedUnits s = fixed_units(call);
  for (int64_t block = begin; block < end; ++block) {
    const int64_t from = block * kColumns, n = s.n - from < kColumns ? s.n - from : kColumns;
    const float* x = call.in[0].as<const float>() + from;
    int64_t* out = call.out[0].as<int64_t>() + from;
    alignas(64) int64_t sum[kColumns] = {};
    for (int64_t u = 0; u < s.units; ++u, x += s.n) add_fixed(sum, x, n);
    for (int64_t i = 0; i < n; ++i) out[i] = sum[i];
  }
}

// Phase 0: the bits of the largest |x| of each part of a unit, into call.shared. Phase 1: the sum.
constexpr int64_t kPart = 16384;
int64_t parts(const FixedUnits& s) {
  return (s.n + kPart - 1) / kPart;
}
size_t magnitude_shared(const Call& call) {
  const FixedUnits s = fixed_units(call);
  return static_cast<size_t>(s.units * parts(s)) * sizeof(uint32_t);
}
int64_t magnitude_units(const Call& call, int phase) {
  const FixedUnits s = fixed_units(call);
  return phase ? 1 : s.units * parts(s);
}
void run_magnitude(const Call& call, int phase, int64_t begin, int64_t end, void*) {
  const FixedUnits s = fixed_units(call);
  const int64_t count = parts(s);
  auto* largest = static_cast<uint32_t*>(call.shared);
  if (phase == 0) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = i % count * kPart, n = s.n - from < kPart ? s.n - from : kPart;
      largest[i] = largest_bits(call.in[0].as<const float>() + i / count * s.n + from, n);
    }
    return;
  }
  if (begin == end) return;
  call.out[0].as<uint64_t>()[0] = sum_of_magnitudes(largest, s.units, count, count, 1);
}

void value_region(const Call& call, const Region& r) {
  const bool valid = num::fixed_is_valid(call.in[1].as<const int64_t>()[0]);
  for (int64_t row = 0; row < r.rows; ++row) {
    const int64_t* x = call.in[0].as<const int64_t>() + r.at + row * r.pitch;
    strip_exact(
        call.out[0].as<float>() + r.at + row * r.pitch,
        r.n, [&](int64_t i, int count) __attribute__((always_inline)) {
          if (!valid) return from_bits(set1_i(0x7fc00000));
          if (count == kW) return mul(to_float(load_l(x + i)), set1(0x1p-49f));  // exact
          alignas(64) int64_t part[kW] = {};
          for (int j = 0; j < count && j < kW; ++j) part[j] = x[i + j];
          return mul(to_float(load_l(part)), set1(0x1p-49f));
        });
  }
}
void run_value(const Call& call, int, int64_t begin, int64_t end, void*) {
  for_each_chunk(call, begin, end, [&](const Region& r) { value_region(call, r); });
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const CpuKernel INVAR_ROW_OF(fixed_sum), INVAR_ROW_OF(fixed_magnitude), INVAR_ROW_OF(fixed_value);
const CpuKernel INVAR_ROW_OF(fixed_sum) = {
    .op = "fixed_sum", .isa = INVAR_ISA, .units = INVAR_ISA_NS::sum_units, .run = INVAR_ISA_NS::run_sum};
const CpuKernel INVAR_ROW_OF(fixed_magnitude) = {.op = "fixed_magnitude",
                                                 .isa = INVAR_ISA,
                                                 .phases = 2,
                                                 .units = INVAR_ISA_NS::magnitude_units,
                                                 .run = INVAR_ISA_NS::run_magnitude,
                                                 .shared_bytes = INVAR_ISA_NS::magnitude_shared};
const CpuKernel INVAR_ROW_OF(fixed_value) = {.op = "fixed_value",
                                             .isa = INVAR_ISA,
                                             .units = chunk_units,
                                             .run = INVAR_ISA_NS::run_value,
                                             .epilogue = true};

}  // namespace invar::ops
