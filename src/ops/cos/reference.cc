// spec: spec.md cos.1 - cos.3
#include "num/reference.h"
#include "ops/check.h"
#include "ops/reference.h"

namespace invar::ops {

static void run(const Call& call, int, int64_t begin, int64_t end, void*) {
  each(call, begin, end, [&](int64_t i) {
    float x = value(call.in[0], i);
    return num::reference::cos(x);
  });
}

extern const Kernel row_cos_reference;
const Kernel row_cos_reference = {
    .op = "cos", .isa = "reference", .check = check_unary, .units = chunk_units, .run = run};

}  // namespace invar::ops
