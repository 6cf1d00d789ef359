// spec: spec.md mul.1 - mul.4
#include "ops/reference.h"
#include "ops/check.h"

namespace invar::ops {

static void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  each_pair(call, begin, end, [](float a, float b) { return a * b; });
}

extern const Kernel row_mul_reference;
const Kernel row_mul_reference = {
    .op = "mul", .isa = "reference", .check = check_pair, .units = chunk_units, .run = run};

}  // namespace invar::ops
