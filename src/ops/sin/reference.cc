// spec: spec.md sin.1 - sin.3
#include "num/reference.h"
#include "ops/check.h"
#include "ops/reference.h"

namespace invar::ops {

static void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  each(call, begin, end, [&](int64_t i) {
    float x = value(call.in[0], i);
    return num::reference::sin(x);
  });
}

extern const Kernel row_sin_reference;
const Kernel row_sin_reference = {
    .op = "sin", .isa = "reference", .check = check_unary, .units = chunk_units, .run = run};

}  // namespace invar::ops
