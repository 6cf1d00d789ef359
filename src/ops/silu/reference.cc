// spec: spec.md silu.1 - silu.4
#include "num/reference.h"
#include "ops/check.h"
#include "ops/reference.h"

namespace invar::ops {

static void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  each(call, begin, end, [&](int64_t i) {
    float x = value(call.in[0], i);
    float s = num::canon(1.0f / (1.0f + num::reference::exp(-x)));  // silu.2: stored, as sigmoid would
    return x * s;
  });
}

extern const Kernel row_silu_reference;
const Kernel row_silu_reference = {
    .op = "silu", .isa = "reference", .check = check_unary, .units = chunk_units, .run = run};

}  // namespace invar::ops
