// The largest value first, by lanes, then the first place that holds it.
#include "ops/lanes.h"

namespace invar::ops {
namespace INVAR_ISA_NS {
namespace {

int64_t units(const Call& call, int) {
  return row_count(call.in[0]);
}

int64_t first_max(const float* x, int64_t n) {
  float m = row_max(x, n);
  for (int64_t i = 0; i < n; ++i)  // argmax.2: the lowest index; -0 and +0 tie; argmax.3: the first NaN
    if (x[i] == m || (m != m && x[i] != x[i])) return i;
  return 0;
}

void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  int64_t n = last_dim(call.in[0]);
  for (int64_t r = begin; r < end; ++r)
    call.out[0].as<int64_t>()[r] = first_max(call.in[0].as<const float>() + r * n, n);
}

}  // namespace
}  // namespace INVAR_ISA_NS

extern const Kernel INVAR_ROW;
const Kernel INVAR_ROW = {
    .op = "argmax", .isa = INVAR_ISA, .units = INVAR_ISA_NS::units, .run = INVAR_ISA_NS::run};

}  // namespace invar::ops
